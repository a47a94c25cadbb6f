"""Public functions straight from primitives: function, method, in-place form and aliases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flambeau.core import context
from flambeau.core.dtype import BOOL
from flambeau.core.errors import ArgumentError, UnsupportedError, complaint
from flambeau.ops.registry import Primitive
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor

NOTHING: dict = {}
NUMBERS = frozenset((int, float, bool, complex))


def tensor_argument(op: str, value, name: str = "input") -> Tensor:
    """`value`, which must be a Tensor."""
    if not isinstance(value, Tensor):
        raise ArgumentError(complaint(op, f"{name} must be Tensor", {name: type(value).__name__}))
    return value


def ordered(op: str, x, bools: bool = True) -> None:
    """Refuse dtypes that have no order (complex), and bools where PyTorch does."""
    kind = tensor_argument(op, x)._spec.dtype
    if kind.is_complex or (not bools and kind.category == BOOL):
        raise UnsupportedError(complaint(op, f"does not support {kind} input"))


def number_or_tensor(op: str, value, name: str = "other"):
    """A Tensor or a Python number; NumPy scalars become numbers."""
    if isinstance(value, Tensor) or value.__class__ in NUMBERS:
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (int, float, complex)):
        return value
    raise ArgumentError(complaint(op, f"{name} must be a Tensor or a number",
                                  {name: type(value).__name__}))


def _tensor_other(op: str, value) -> Tensor:
    return tensor_argument(op, value, "other")


def unary(primitive: Primitive, doc: str, *, name: str | None = None, inplace: bool = True,
          **names) -> Callable:
    """`name(input)`, `input.name()` and `input.name_()` for a primitive of one operand."""
    name = name or primitive.name

    def function(input):
        return context.bind(primitive, (tensor_argument(name, input),), NOTHING)

    def in_place(self):
        return context.bind_inplace(primitive, self, (self,), NOTHING)

    function.__name__, function.__doc__ = name, doc
    in_place.__doc__ = doc
    return public(function, name=name, inplace=in_place if inplace else False,
                  inplace_function=inplace, **names)


def binary(primitive: Primitive, doc: str, *, name: str | None = None, inplace: bool = True,
           number_first: bool = False, numbers: bool = True, **names) -> Callable:
    """`name(input, other)` and its forms.

    `number_first` allows a number as `input`, `numbers=False` forbids one as `other`.
    """
    name = name or primitive.name
    first = number_or_tensor if number_first else tensor_argument
    second = number_or_tensor if numbers else _tensor_other

    def function(input, other):
        x, y = first(name, input, "input"), second(name, other)
        if number_first and not isinstance(x, Tensor) and not isinstance(y, Tensor):
            raise ArgumentError(complaint(name, "input must be Tensor",
                                          dict(input=type(x).__name__)))
        return context.bind(primitive, (x, y), NOTHING)

    def in_place(self, other):
        return context.bind_inplace(primitive, self, (self, second(name, other)), NOTHING)

    function.__name__, function.__doc__ = name, doc
    in_place.__doc__ = doc
    return public(function, name=name, inplace=in_place if inplace else False, **names)
