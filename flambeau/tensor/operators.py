"""Python's operators on tensors: the shortest path from `x + y` to dispatch."""

from __future__ import annotations

from typing import Callable

import numpy as np

from flambeau.core import context
from flambeau.ops import pointwise
from flambeau.tensor.overrides import handle, switch
from flambeau.tensor.tensor import Tensor, from_array

NUMBERS = frozenset((int, float, bool, complex))
NOTHING: dict = {}


def operand(value):
    """A tensor or a Python number from what stands beside an operator, or NotImplemented."""
    if isinstance(value, (Tensor, int, float, complex)):
        return value
    if isinstance(value, np.ndarray):
        return from_array(value)
    if isinstance(value, np.generic):
        return value.item()
    return NotImplemented


def binary_operator(name: str, primitive) -> Callable:
    def forward(self, other):
        if switch.active:
            result = handle(forward, (self, other), NOTHING)
            if result is not NotImplemented:
                return result
        if not isinstance(other, Tensor) and other.__class__ not in NUMBERS:
            other = operand(other)
            if other is NotImplemented:
                return other
        return context.bind(primitive, (self, other), NOTHING)

    forward.__name__ = forward.__qualname__ = name
    return forward


def reflected_operator(name: str, primitive) -> Callable:
    def reflected(self, other):
        if switch.active:
            result = handle(reflected, (self, other), NOTHING)
            if result is not NotImplemented:
                return result
        other = operand(other)
        if other is NotImplemented:
            return other
        return context.bind(primitive, (other, self), NOTHING)

    reflected.__name__ = reflected.__qualname__ = name
    return reflected


def inplace_operator(name: str, primitive) -> Callable:
    def inplace(self, other):
        if switch.active:
            result = handle(inplace, (self, other), NOTHING)
            if result is not NotImplemented:
                return result
        other = operand(other)
        if other is NotImplemented:
            return other
        return context.bind_inplace(primitive, self, (self, other), NOTHING)

    inplace.__name__ = inplace.__qualname__ = name
    return inplace


def attach(symbol: str, primitive) -> None:
    """Give Tensor `__symbol__`, `__rsymbol__` and `__isymbol__`."""
    setattr(Tensor, f"__{symbol}__", binary_operator(f"__{symbol}__", primitive))
    setattr(Tensor, f"__r{symbol}__", reflected_operator(f"__r{symbol}__", primitive))
    setattr(Tensor, f"__i{symbol}__", inplace_operator(f"__i{symbol}__", primitive))


for _symbol, _primitive in [("add", pointwise.add), ("sub", pointwise.sub),
                            ("mul", pointwise.mul), ("truediv", pointwise.div)]:
    attach(_symbol, _primitive)
