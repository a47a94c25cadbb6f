"""What is measured, written against the public torch API: `torch` is flambeau, or PyTorch.

A workload gives a closure that does the work once, and how much work that is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Work:
    """`run()` does `amount` units of work; the figure is units per second, or seconds for `s`."""

    unit: str  # GFLOP/s, GB/s, or s: the seconds of one run
    amount: float
    run: Callable[[], Any]


def matrix_product(torch: Any, dtype: str, size: int = 1024) -> Work:
    a, b = (torch.randn(size, size).to(getattr(torch, dtype)) for _ in range(2))
    return Work("GFLOP/s", 2e-9 * size**3, lambda: a @ b)


def copy(torch: Any, count: int = 16 << 20) -> Work:
    """Reads and writes `count` floats."""
    source, target = torch.randn(count), torch.zeros(count)
    return Work("GB/s", 8e-9 * count, lambda: target.copy_(source))


def total(torch: Any, count: int = 16 << 20) -> Work:
    values = torch.randn(count)
    return Work("GB/s", 4e-9 * count, values.sum)


def small_add(torch: Any, grad: bool, repeat: int = 200) -> Work:
    """What one operation costs when there is next to nothing to compute."""
    x, y = torch.randn(64, requires_grad=grad), torch.randn(64)

    def run():
        for _ in range(repeat):
            x + y

    return Work("s", 1 / repeat, run)


def step(torch: Any, model: Any, inputs: Any, labels: Any, compiled: bool) -> Work:
    """One step of training: forward, cross-entropy, backward, Adam."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = torch.nn.functional.cross_entropy

    def run():
        optimizer.zero_grad()
        loss = loss_of(model(inputs).flatten(0, -2), labels.flatten())
        loss.backward()
        optimizer.step()
        return loss

    return Work("s", 1, torch.compile(run) if compiled else run)


def perceptron(torch: Any, compiled: bool = False) -> Work:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    return step(torch, model, torch.randn(64, 784), torch.randint(0, 10, (64,)), compiled)


def convolutions(torch: Any, compiled: bool = False) -> Work:
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(9216, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )
    return step(torch, model, torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,)), compiled)


def transformer(torch: Any, compiled: bool = False) -> Work:
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(128, 4, 512, 0.0, "gelu", batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    model = nn.Sequential(nn.Embedding(65, 128), encoder, nn.Linear(128, 65))
    letters = torch.randint(0, 65, (16, 64))
    return step(torch, model, letters, letters, compiled)


WORKLOADS: dict[str, Callable[[Any], Work]] = {
    "matmul float32 1024": lambda torch: matrix_product(torch, "float32"),
    "matmul float64 1024": lambda torch: matrix_product(torch, "float64"),
    "matmul bfloat16 1024": lambda torch: matrix_product(torch, "bfloat16"),
    "copy 64 MiB": copy,
    "sum 64 MiB": total,
    "add 64 floats": lambda torch: small_add(torch, False),
    "add 64 floats, grad": lambda torch: small_add(torch, True),
    "train 784-256-10": perceptron,
    "train MNIST CNN": convolutions,
    "train transformer": transformer,
    "train 784-256-10, compiled": lambda torch: perceptron(torch, compiled=True),
    "train MNIST CNN, compiled": lambda torch: convolutions(torch, compiled=True),
    "train transformer, compiled": lambda torch: transformer(torch, compiled=True),
}
