"""An LSTM learns to add the two marked numbers of a sequence, far apart from each other.

The "adding problem" of Hochreiter and Schmidhuber (1997), in a short form.
"""

import torch
from torch import nn

LENGTH, HIDDEN = 8, 32


def sequences(count):
    """(count, LENGTH, 2) values and marks, and the sum of the two marked values."""
    values = torch.rand(count, LENGTH)
    marks = torch.zeros(count, LENGTH)
    half = LENGTH // 2
    first = torch.randint(0, half, (count, 1))
    second = torch.randint(half, LENGTH, (count, 1))
    marks.scatter_(1, first, 1.0).scatter_(1, second, 1.0)
    return torch.stack([values, marks], dim=2), (values * marks).sum(1)


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, x):
        _, (hidden, _) = self.lstm(x)
        return self.out(hidden[-1]).squeeze(1)


torch.manual_seed(0)
model = Adder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.MSELoss()
total = 0.0
for step in range(1, 501):
    inputs, sums = sequences(32)
    optimizer.zero_grad()
    loss = criterion(model(inputs), sums)
    loss.backward()
    optimizer.step()
    total += loss.item()
    if step % 100 == 0:
        print(f"step {step:3d}  mean loss {total / 100:.4f}")
        total = 0.0
