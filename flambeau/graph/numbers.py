"""Python numbers inside of graphs: learning rates, step counts, values taken from tensors.

A number is a Value whose spec is weak. Its equations are written `number_<function>` and compute on
Python numbers, so they give exactly what Python gives.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

PREFIX = "number_"


def item(tensor: Any) -> Any:
    """The only element of a tensor."""
    return tensor.item()


def float32(number: float) -> float:
    """The nearest number of 24 bits."""
    return float(np.float32(number))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "item": item,
    **{n: getattr(operator, n) for n in "add sub mul truediv floordiv mod pow neg pos".split()},
    **{n: getattr(operator, n) for n in "lt le gt ge eq ne".split()},
    **{n: getattr(math, n) for n in "sqrt exp log log2 log10 sin cos tan tanh floor ceil".split()},
    "abs": abs,
    "max": max,
    "min": min,
    "float32": float32,
    "round": round,
    "float": float,
    "int": int,
    "divmod": divmod,
    "math_pow": math.pow,
}


def function_of(op: str) -> Callable[..., Any]:
    """What a number equation computes."""
    return FUNCTIONS[op.removeprefix(PREFIX)]


def is_number(op: Any) -> bool:
    return isinstance(op, str) and op.startswith(PREFIX)
