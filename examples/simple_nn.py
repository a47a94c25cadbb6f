"""A 784-256-10 network with ReLU, trained for ten epochs on random data.

python examples/simple_nn.py            # with PyTorch
flambeau run examples/simple_nn.py      # the same numbers, without it
"""

import time

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class SimpleNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 256)
        self.fc2 = nn.Linear(256, 10)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


torch.manual_seed(0)
data = TensorDataset(torch.randn(3200, 784), torch.randint(0, 10, (3200,)))
loader = DataLoader(data, batch_size=64, shuffle=True)

model = SimpleNN()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.01)

start = time.perf_counter()
for epoch in range(10):
    total = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1:2d}  loss {total / len(loader):.4f}")
print(f"training time: {time.perf_counter() - start:.2f} s")
