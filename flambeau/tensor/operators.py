"""Python's operators on tensors: the shortest path from `x + y` to dispatch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flambeau.core import context
from flambeau.core.dtype import FLOAT
from flambeau.core.errors import ArgumentError, complaint
from flambeau.ops import bitwise, comparison, pointwise
from flambeau.tensor.arithmetic import (
    check_power,
    check_subtraction,
    fast_power,
    neg,
    positive,
    power,
)
from flambeau.tensor.comparing import bitwise_not
from flambeau.tensor.elementary import abs as absolute
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


# What `__torch_function__` is shown for an operator, where that is a named function.
SHOWN = dict(add="add", radd="add", sub="sub", mul="mul", rmul="mul", truediv="div",
             rtruediv="__rdiv__", mod="remainder", pow="pow", ne="ne", lt="lt", le="le", gt="gt",
             ge="ge", iadd="add_", isub="sub_", imul="mul_", itruediv="div_")


def shown(operator: Callable) -> Callable:
    """The public function that an operator is."""
    name = SHOWN.get(operator.__name__.strip("_"))
    return getattr(Tensor, name) if name else operator


def binary_operator(name: str, primitive) -> Callable:
    def forward(self, other):
        if switch.active:
            result = handle(shown(forward), (self, other), NOTHING)
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
            result = handle(shown(reflected), (self, other), NOTHING)
            if result is not NotImplemented:
                return result
        other = operand(other)
        if other is NotImplemented:
            return other
        if not isinstance(self, Tensor):
            raise ArgumentError(complaint(name, "self must be Tensor",
                                          dict(self=type(self).__name__)))
        return context.bind(primitive, (other, self), NOTHING)

    reflected.__name__ = reflected.__qualname__ = name
    return reflected


def inplace_operator(name: str, primitive) -> Callable:
    def inplace(self, other):
        if switch.active:
            result = handle(shown(inplace), (self, other), NOTHING)
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


for _symbol, _primitive in [
        ("add", pointwise.add), ("mul", pointwise.mul), ("truediv", pointwise.div),
        ("floordiv", pointwise.floor_divide), ("mod", pointwise.remainder),
        ("and", bitwise.bitwise_and), ("or", bitwise.bitwise_or), ("xor", bitwise.bitwise_xor),
        ("lshift", bitwise.bitwise_left_shift), ("rshift", bitwise.bitwise_right_shift)]:
    attach(_symbol, _primitive)

for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Tensor, f"__{_name}__", binary_operator(f"__{_name}__", getattr(comparison, _name)))


def needs_check(x: Tensor, y) -> bool:
    """Only integers and bools are ever refused."""
    if isinstance(y, Tensor):
        return x._spec.dtype.category < FLOAT or y._spec.dtype.category < FLOAT
    return y.__class__ is bool or (x._spec.dtype.category < FLOAT
                                   and operand(y) is not NotImplemented)


def checked_operators(symbol: str, primitive, check: Callable) -> None:
    """The three operators of `symbol`, where `check(x, y)` may refuse the operands."""
    plain = binary_operator(f"__{symbol}__", primitive)
    reflected = reflected_operator(f"__r{symbol}__", primitive)
    inplace = inplace_operator(f"__i{symbol}__", primitive)

    def forward(self, other):
        if needs_check(self, other):
            check(self, other)
        return plain(self, other)

    def backward(self, other):
        if needs_check(self, other):
            check(other, self)
        return reflected(self, other)

    def in_place(self, other):
        if needs_check(self, other):
            check(self, other)
        return inplace(self, other)

    for prefix, f in (("", forward), ("r", backward), ("i", in_place)):
        f.__name__ = f.__qualname__ = f"__{prefix}{symbol}__"
        setattr(Tensor, f.__name__, f)


checked_operators("sub", pointwise.sub, check_subtraction)
checked_operators("pow", pointwise.pow, check_power)


def power_operator(self, exponent):
    """self ** exponent."""
    if fast_power(self, exponent) and not switch.active:
        return power(self, exponent)
    return general_power(self, exponent)


def inverted(self):
    """~self, of integers and bools."""
    if self._spec.dtype.category >= FLOAT:
        raise ArgumentError(complaint("invert", "~ is only for integer and bool tensors", dict(
            dtype=self.dtype)))
    return bitwise_not(self)


general_power = Tensor.__pow__
Tensor.__pow__ = power_operator
Tensor.__neg__ = neg
Tensor.__pos__ = positive
Tensor.__abs__ = absolute
Tensor.__invert__ = inverted
Tensor.__rdiv__ = Tensor.__rtruediv__
Tensor.__idiv__ = Tensor.__itruediv__
Tensor.__div__ = Tensor.__truediv__
