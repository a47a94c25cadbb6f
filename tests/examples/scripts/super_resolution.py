"""Sub-pixel convolution: PixelShuffle, orthogonal initialisation, PSNR."""

from math import log10

import torch
import torch.nn as nn
import torch.nn.init as init
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super(Net, self).__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 16, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(16, 16, (3, 3), (1, 1), (1, 1))
        self.conv3 = nn.Conv2d(16, upscale_factor ** 2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        self._initialize_weights()

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        return self.pixel_shuffle(self.conv3(x))

    def _initialize_weights(self):
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv3.weight)


class Waves(Dataset):
    """Images of waves, and the same at half the size."""

    def __init__(self, count, size=16):
        grid = torch.linspace(0, 3.14, size)
        phase = torch.rand(count, 2) * 3
        rows = torch.sin(grid * (1 + phase[:, :1]))
        columns = torch.cos(grid * (1 + phase[:, 1:]))
        self.images = (rows[:, None, :, None] * columns[:, None, None, :] + 1) / 2

    def __getitem__(self, index):
        target = self.images[index]
        return target[:, ::2, ::2], target

    def __len__(self):
        return len(self.images)


torch.manual_seed(123)
loader = DataLoader(Waves(32), batch_size=8, shuffle=True)
test_loader = DataLoader(Waves(8), batch_size=4)
model = Net(upscale_factor=2)
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=0.003)

for epoch in range(1, 5):
    epoch_loss = 0
    for iteration, (input, target) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = criterion(model(input), target)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
    print("===> Epoch {} Complete: Avg. Loss: {:.4f}".format(epoch, epoch_loss / len(loader)))
    avg_psnr = 0
    with torch.no_grad():
        for input, target in test_loader:
            mse = criterion(model(input), target)
            avg_psnr += 10 * log10(1 / mse.item())
    print("===> Avg. PSNR: {:.3f} dB".format(avg_psnr / len(test_loader)))
