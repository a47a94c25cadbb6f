"""Calls with bad input, one a line in bad_input.txt: the builtin class that PyTorch raises, and
the expression. `torch` in an expression is the package under test."""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

FILE = Path(__file__).with_name("bad_input.txt")


def cases() -> list[tuple[str, str]]:
    """(expression, name of the builtin class)."""
    lines = FILE.read_text().splitlines()
    return [(expression, kind) for kind, _, expression in (line.partition(": ") for line in lines)]


def operands(torch: ModuleType) -> dict[str, Any]:
    """What the expressions name: small tensors of every kind."""
    importlib.import_module(f"{torch.__name__}.utils.data")
    return {
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        "optim": torch.optim,
        "data": torch.utils.data,
        "x": torch.ones(2, 3),
        "y": torch.ones(4, 5),
        "ints": torch.ones(2, 3, dtype=torch.long),
        "bools": torch.ones(2, 3, dtype=torch.bool),
        "complexes": torch.ones(2, 3, dtype=torch.complex64),
        "empty": torch.empty(0),
        "scalar": torch.tensor(1.0),
        "meta": torch.empty(2, 3, device="meta"),
        "tracked": torch.ones(2, 3, requires_grad=True),
        "image": torch.ones(1, 2, 5, 5),
        "parameters": lambda: [torch.nn.Parameter(torch.ones(2))],
    }


def failure(torch: ModuleType, expression: str) -> tuple[Exception | None, dict[str, Any]]:
    """What evaluating the expression raises, and the operands afterwards."""
    names = operands(torch)
    try:
        eval(expression, dict(names))
    except Exception as error:
        return error, names
    return None, names


def class_names(error: Exception | None) -> set[str]:
    """The names of an error's classes: `except` with any of them catches it. PyTorch's own class
    for memory counts as the RuntimeError that it is."""
    return {cls.__name__ for cls in type(error).__mro__}
