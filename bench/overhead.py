"""What a call of a compiled function costs beyond its kernels.

    python bench/overhead.py             # flambeau alone
    python bench/overhead.py --torch     # PyTorch's compiled calls beside; it compiles for a while

The tensors are so small that kernels take next to nothing, and the program that a call runs is the
one that large tensors would run. Guards of a large step are timed apart: they are one comparison
of the words of memory that the step relies on.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import timeit
from collections.abc import Callable
from typing import Any

os.environ.setdefault("FLAMBEAU_TIER", "sync")


def microseconds(call: Callable[[], object], repeat: int = 7) -> float:
    for _ in range(40):  # captures, settles
        call()
    once = max(timeit.timeit(call, number=20) / 20, 1e-7)
    number = max(10, int(0.02 / once))
    return min(timeit.repeat(call, number=number, repeat=repeat)) / number * 1e6


def training_step(torch: Any, model: Any, optimizer: Any) -> Callable:
    loss = torch.nn.CrossEntropyLoss()

    def step(x, y):
        optimizer.zero_grad()
        found = loss(model(x), y)
        found.backward()
        optimizer.step()
        return found

    return step


def network(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))


def cases(torch: Any, whole_steps: bool) -> dict[str, Callable[[], object]]:
    """Calls by name. PyTorch compiles no whole step: there the model and its loss are compiled."""
    x, y = torch.randn(16), torch.randn(16)
    inputs, targets = torch.randn(2, 4), torch.randint(0, 2, (2,))
    add = torch.compile(lambda a, b: a + b)
    chain = torch.compile(lambda a, b: (a * b + a).sin().sum())
    found: dict[str, Callable[[], object]] = {
        "a + b": lambda: add(x, y),
        "sum(sin(a b + a))": lambda: chain(x, y),
    }
    for name, make in (("SGD", torch.optim.SGD), ("Adam", torch.optim.Adam)):
        model = network(torch)
        optimizer = make(model.parameters(), lr=1e-3)
        if whole_steps:
            step = torch.compile(training_step(torch, model, optimizer))
        else:
            step = training_step(torch, torch.compile(model), optimizer)
        found[f"training step, two layers, {name}"] = lambda step=step: step(inputs, targets)
    return found


def guards(torch: Any) -> float:
    """Microseconds of the guards of a training step of a network like ResNet-18: 62 parameters,
    20 batch norms with their counters, SGD with momentum."""
    from flambeau.capture import words
    from flambeau.capture.programs import Settled

    nn = torch.nn
    layers: list[Any] = []
    for _ in range(20):
        layers += [nn.Conv2d(2, 2, 3, padding=1, bias=False), nn.BatchNorm2d(2), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    step = torch.compile(training_step(torch, model, optimizer))
    x, y = torch.randn(2, 2, 4, 4), torch.randint(0, 2, (2,))
    for _ in range(60):
        step(x, y)
    settled = max((o for o in gc.get_objects() if isinstance(o, Settled)),
                  key=lambda o: len(o.table))
    compare = words.hold()
    if compare is None:
        raise SystemExit("this interpreter's memory is not known: guards are tested one by one.")
    return microseconds(lambda: compare(settled.table))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", action="store_true", help="PyTorch's compiled calls as well")
    arguments = parser.parse_args()
    flambeau = importlib.import_module("flambeau")
    guarded = guards(flambeau)
    columns = {"flambeau": cases(flambeau, True)}
    if arguments.torch:
        columns["PyTorch"] = cases(importlib.import_module("torch"), False)
    print(f"{'us a call':36}" + "".join(f"{name:>10}" for name in columns))
    for name in columns["flambeau"]:
        times = [microseconds(calls[name]) for calls in columns.values()]
        print(f"{name:36}" + "".join(f"{t:10.1f}" for t in times))
    print(f"{'guards of a step with 62 parameters':36}{guarded:10.1f}")


if __name__ == "__main__":
    main()
