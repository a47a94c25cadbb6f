"""Two towers that share weights, with custom initialisation and a triplet loss beside it."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class SiameseNetwork(nn.Module):
    def __init__(self):
        super(SiameseNetwork, self).__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
            nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d((2, 2)))
        self.fc = nn.Sequential(nn.Linear(128, 32), nn.ReLU(inplace=True), nn.Linear(32, 1))
        self.sigmoid = nn.Sigmoid()
        self.features.apply(self.init_weights)
        self.fc.apply(self.init_weights)

    def init_weights(self, m):
        if isinstance(m, nn.Linear):
            torch.nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def forward_once(self, x):
        output = self.features(x)
        return output.view(output.size()[0], -1)

    def forward(self, input1, input2):
        output1 = self.forward_once(input1)
        output2 = self.forward_once(input2)
        output = torch.cat((output1, output2), 1)
        return self.sigmoid(self.fc(output)), F.pairwise_distance(output1, output2)


class Pairs(Dataset):
    """Pairs of noisy patterns: label 1 where both are of one class."""

    def __init__(self, count):
        self.patterns = torch.randn(4, 1, 10, 10)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        one = random.randint(0, 3)
        same = index % 2 == 0
        two = one if same else (one + random.randint(1, 3)) % 4
        images = [self.patterns[k] + 0.1 * torch.randn(1, 10, 10) for k in (one, two)]
        return images[0], images[1], torch.tensor(float(same))


random.seed(5)
torch.manual_seed(5)
loader = DataLoader(Pairs(64), shuffle=True, batch_size=16)
model = SiameseNetwork()
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
criterion = nn.BCELoss()
triplet = nn.TripletMarginLoss(margin=1.0)

for epoch in range(3):
    model.train()
    for batch_idx, (images_1, images_2, targets) in enumerate(loader):
        optimizer.zero_grad()
        outputs, distances = model(images_1, images_2)
        loss = criterion(outputs.squeeze(), targets)
        loss.backward()
        optimizer.step()
        print("Epoch: {} [{}/{}]\tLoss: {:.4f}\tDistance: {:.4f}".format(
            epoch, batch_idx * len(images_1), len(loader.dataset), loss.item(),
            distances.mean().item()))
    scheduler.step()

model.eval()
anchor = model.forward_once(torch.ones(2, 1, 10, 10))
print("triplet {:.4f}".format(triplet(anchor, anchor + 0.1, anchor - 0.2).item()))
