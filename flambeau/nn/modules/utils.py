"""Sizes per dimension, under the names that scripts import from `nn.modules.utils`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    def parse(value: Any) -> tuple:
        """value repeated n times, or value itself as a tuple."""
        return tuple(value) if isinstance(value, Iterable) else tuple(repeat(value, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(values: tuple, n: int) -> tuple:
    """(1, 2) with n=2 -> (2, 2, 1, 1): sizes per dimension in the order that F.pad takes them."""
    return tuple(value for value in reversed(values) for _ in range(n))
