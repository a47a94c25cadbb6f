"""A convolutional network learns to read digits that this script draws itself.

Ten glyphs of 5 by 7 dots, enlarged, moved and covered with noise; batch norm, dropout, Adam, a
learning-rate schedule and a held-out set.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

GLYPHS = """
01110 00100 01110 11111 00010 11111 00110 11111 01110 01110
10001 01100 10001 00010 00110 10000 01000 00001 10001 10001
10011 00100 00001 00100 01010 11110 10000 00010 10001 10001
10101 00100 00010 00010 10010 00001 11110 00100 01110 01111
11001 00100 00100 00001 11111 00001 10001 01000 10001 00001
10001 00100 01000 10001 00010 10001 10001 01000 10001 00010
01110 01110 11111 01110 00010 01110 01110 01000 01110 01100
"""


def glyphs():
    """(10, 1, 14, 10): every dot becomes two by two."""
    lines = GLYPHS.strip().split("\n")
    rows = [[[float(dot) for dot in word] for word in line.split()] for line in lines]
    dots = torch.tensor(rows).permute(1, 0, 2).unsqueeze(1)
    return F.interpolate(dots, scale_factor=2, mode="nearest")


def draw(count):
    """`count` noisy pictures of 20 by 20, and which digit each one is."""
    labels = torch.randint(0, 10, (count,))
    pictures = torch.zeros(count, 1, 20, 20)
    corners = torch.randint(0, 6, (count, 2)).tolist()
    shapes = glyphs()
    for picture, label, (y, x) in zip(pictures, labels, corners):
        picture[:, y : y + 14, x : x + 10] += shapes[label]
    return pictures + 0.3 * torch.randn(pictures.shape), labels


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.dropout = nn.Dropout(0.2)
        self.out = nn.Linear(16 * 5 * 5, 10)

    def forward(self, x):
        return self.out(self.dropout(self.features(x).flatten(1)))


torch.manual_seed(0)
loader = DataLoader(TensorDataset(*draw(1600)), batch_size=64, shuffle=True)
unseen, truth = draw(400)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)

for epoch in range(4):
    model.train()
    for pictures, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
    schedule.step()
    model.eval()
    with torch.no_grad():
        logits = model(unseen)
        loss = F.cross_entropy(logits, truth).item()
    share = (logits.argmax(1) == truth).float().mean().item()
    print(f"epoch {epoch + 1}  loss {loss:.3f}  read right {share:.2f}")
