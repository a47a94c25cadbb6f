"""Checks of values inside of functions, which must not end a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.errors import complaint
from flambeau.ops.conditions import ensure as ensure_primitive
from flambeau.tensor.tensor import Tensor


def has_values(t: Tensor) -> bool:
    """Whether there are numbers in memory to look at; not so in a graph, or on the meta device."""
    return isinstance(t._array, np.ndarray)


def ensure(holds: Tensor, error: type[Exception], op: str, must: str, facts: Any = None,
           hint: str = "", shown: Tensor | None = None) -> None:
    """Raise `error` unless all of `holds` is true, now or, in a graph, each time that it runs.

    shown: a tensor that the message shows, where it has values.
    """
    if holds._array is None:
        return
    if not has_values(holds):
        ensure_primitive(holds.detach(), error=error.__name__,
                         message=complaint(op, must, facts, hint))
    elif not np.all(holds._array):
        text = complaint(op, must, facts, hint)
        raise error(text if shown is None else f"{text}\n{shown}")
