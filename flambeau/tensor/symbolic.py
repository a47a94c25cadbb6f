"""`sym_int` and its like: arithmetic that PyTorch keeps symbolic under compilation.

Sizes are plain numbers in eager code, and flambeau's capture follows Python's own operators, so
these are those.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


class SymInt:
    """A size that is not known yet. Sizes are plain ints outside of capture: there are none."""


class SymFloat:
    """A number that is not known yet; see SymInt."""


class SymBool:
    """A truth that is not known yet; see SymInt."""


def sym_int(a: Any) -> int:
    """int(a)."""
    return int(a)


def sym_float(a: Any) -> float:
    """float(a)."""
    return float(a)


def sym_not(a: Any) -> bool:
    """not a."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger number; a float if one of them is."""
    found = max(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number; a float if one of them is."""
    found = min(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of numbers."""
    return sum(args)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """t if b else f."""
    return t if b else f


def sym_sqrt(a: Any) -> float:
    """The square root of a number."""
    return math.sqrt(a)


def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """true_fn(*operands) if pred else false_fn(*operands)."""
    return true_fn(*operands) if pred else false_fn(*operands)


def while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> Any:
    """Replace the carried values by body_fn(*carried) while cond_fn(*carried) holds."""
    carried = tuple(carried_inputs)
    while cond_fn(*carried):
        carried = body_fn(*carried)
        carried = carried if isinstance(carried, tuple) else (carried,)
    return carried
