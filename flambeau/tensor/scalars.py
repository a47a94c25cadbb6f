"""Tensors of one element as Python numbers, and filling with one number."""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import ArgumentError, OpError, ValueRangeError, complaint
from flambeau.ops import choice
from flambeau.tensor.forms import number_or_tensor
from flambeau.tensor.interop import tensor
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor


def truth(self: Tensor) -> bool:
    """The truth of the only element."""
    n = self._spec.numel
    if n != 1:
        what = "no values" if n == 0 else "more than one value"
        raise OpError(complaint("bool", f"Boolean value of Tensor with {what} is ambiguous",
                                dict(shape=list(self.shape)), "Use .any() or .all()."))
    return bool(self.item())


def index(self: Tensor) -> int:
    """The only element of an integer tensor, as an index."""
    if self._spec.numel != 1 or self._spec.dtype.category > 1:
        raise ArgumentError(complaint(
            "index", "only integer tensors of a single element can be converted to an index",
            dict(dtype=self.dtype, shape=list(self.shape))))
    return int(self.item())


def as_number(self: Tensor, kind: type):
    """The only element as a Python int, float or complex."""
    if self._spec.numel != 1:
        raise ValueRangeError(complaint(
            kind.__name__, "only one element tensors can be converted to Python scalars",
            dict(shape=list(self.shape)), "Use .tolist() for several."))
    value = self.item()
    if isinstance(value, complex) and kind is not complex:
        if value.imag:
            raise OpError(complaint(kind.__name__, "the value cannot be converted without "
                                    "overflow", dict(value=value), "Use .real."))
        value = value.real
    return kind(value)


def contains(self: Tensor, element) -> bool:
    """Does any element equal `element`?"""
    if not isinstance(element, (Tensor, int, float, complex, np.generic)):
        raise OpError(complaint("contains", "only a Tensor or a number can be in a Tensor",
                                dict(element=type(element).__name__)))
    return bool((self == element).any())


Tensor.__contains__ = contains
Tensor.__bool__ = truth
Tensor.__int__ = lambda self: as_number(self, int)
Tensor.__float__ = lambda self: as_number(self, float)
Tensor.__complex__ = lambda self: as_number(self, complex)
Tensor.__index__ = index


def fill_(self, value):
    """self <- value, a number or a zero-dimensional tensor."""
    return choice.fill.inplace(self, self, scalar_value(value))


def scalar_value(value):
    value = number_or_tensor("fill", value, "value")
    if isinstance(value, Tensor) and value.ndim:
        raise OpError(complaint("fill", "fill only supports 0-dimension value tensor",
                                dict(shape=list(value.shape)), "Use copy_."))
    return value


@public(inplace=fill_, inplace_function=True, out=False)
def fill(input, value):
    """A tensor like `input` of one value."""
    return choice.fill(input, scalar_value(value))


@public(out=False)
def zero_(input):
    """input <- 0."""
    return choice.fill.inplace(input, input, 0)


@public(function=False, out=False)
def apply_(self, callable):
    """self <- callable(element), element by element in Python."""
    return map2_(self, None, None, callable)


@public(function=False, out=False)
def map_(self, other, callable):
    """self <- callable(element, element of other), element by element in Python."""
    return map2_(self, other, None, callable)


@public(function=False, out=False)
def map2_(self, x, y, callable):
    """self <- callable(element, element of x, element of y), element by element in Python."""
    columns = [t.expand_as(self).reshape(-1).tolist() for t in (self, x, y) if t is not None]
    values = [callable(*row) for row in zip(*columns)]
    return self.copy_(tensor(values, dtype=self.dtype).reshape(tuple(self.shape)))
