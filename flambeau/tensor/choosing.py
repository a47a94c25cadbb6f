"""Choosing between values: where, masked_fill, clamp, maximum and their kin."""

from __future__ import annotations

from flambeau.core import context
from flambeau.core.errors import OpError, complaint
from flambeau.ops import choice, pointwise
from flambeau.tensor.forms import NOTHING, binary, number_or_tensor, tensor_argument
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor


@public(method=False)
def where(condition, input=None, other=None):
    """input where condition holds, else other; with the condition alone, its true positions."""
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    tensor_argument("where", condition, "condition")
    return choice.where(condition, number_or_tensor("where", input, "input"),
                        number_or_tensor("where", other))


@public(function=False, name="where")
def where_method(self, condition, other):
    """self where condition holds, else other."""
    return where(condition, self, other)


def fill_value(op: str, x: Tensor, value):
    """`value` as something that fits in the dtype of `x`."""
    value = number_or_tensor(op, value, "value")
    if isinstance(value, Tensor) and value.ndim:
        raise OpError(complaint(op, "value must be a number or a 0-dimensional tensor",
                                dict(shape=list(value.shape)), "Use torch.where."))
    if not x.dtype.is_complex and (value.dtype.is_complex if isinstance(value, Tensor)
                                   else isinstance(value, complex)):
        raise OpError(complaint(op, f"value cannot be converted to type {x.dtype} without "
                                "overflow", dict(value=value)))
    return value


def masked_fill_(self, mask, value):
    """self <- value where mask holds."""
    return context.bind_inplace(choice.masked_fill, self, (
        self, mask, fill_value("masked_fill_", self, value)), NOTHING)


@public(inplace=masked_fill_, out=False)
def masked_fill(input, mask, value):
    """value where mask holds, else input."""
    return choice.masked_fill(input, mask, fill_value("masked_fill", input, value))


# Limits --------------------------------------------------------------------------------------


def limits(op: str, *bounds) -> tuple:
    if all(b is None for b in bounds):
        raise OpError(complaint(op, "At least one of 'min' or 'max' must not be None"))
    return tuple(None if b is None else number_or_tensor(op, b, "min") for b in bounds)


def clamp_(self, min=None, max=None):
    """self <- self limited to [min, max]."""
    return context.bind_inplace(choice.clamp, self, (self, *limits("clamp_", min, max)), NOTHING)


@public(inplace=clamp_, inplace_function=True, aliases=("clip",))
def clamp(input, min=None, max=None):
    """input limited to [min, max]; where the limits cross the upper one wins."""
    return choice.clamp(tensor_argument("clamp", input), *limits("clamp", min, max))


def clamp_min_(self, min):
    """self <- max(self, min)."""
    return clamp_(self, min)


def clamp_max_(self, max):
    """self <- min(self, max)."""
    return clamp_(self, None, max)


@public(inplace=clamp_min_, inplace_function=True)
def clamp_min(input, min):
    """max(input, min)."""
    return choice.clamp(tensor_argument("clamp_min", input), *limits("clamp_min", min, None))


@public(inplace=clamp_max_, inplace_function=True)
def clamp_max(input, max):
    """min(input, max)."""
    return choice.clamp(tensor_argument("clamp_max", input), *limits("clamp_max", None, max))


maximum = binary(pointwise.maximum, "The larger; NaN wins.", numbers=False, inplace=False)
minimum = binary(pointwise.minimum, "The smaller; NaN wins.", numbers=False, inplace=False)
fmax = binary(pointwise.fmax, "The larger; NaN loses against numbers.", numbers=False,
              inplace=False)
fmin = binary(pointwise.fmin, "The smaller; NaN loses against numbers.", numbers=False,
              inplace=False)
