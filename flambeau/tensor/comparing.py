"""Comparisons, logic and bits under PyTorch's names."""

from __future__ import annotations

from flambeau.core.errors import DtypeError, OpError, complaint
from flambeau.ops import bitwise, comparison
from flambeau.tensor.forms import binary, tensor_argument, unary
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor

eq = binary(comparison.eq, "input == other.")
ne = binary(comparison.ne, "input != other.", aliases=("not_equal",))
lt = binary(comparison.lt, "input < other.", aliases=("less",))
le = binary(comparison.le, "input <= other.", aliases=("less_equal",))
gt = binary(comparison.gt, "input > other.", aliases=("greater",))
ge = binary(comparison.ge, "input >= other.", aliases=("greater_equal",))

logical_and = binary(comparison.logical_and, "Both are nonzero.", numbers=False)
logical_or = binary(comparison.logical_or, "At least one is nonzero.", numbers=False)
logical_xor = binary(comparison.logical_xor, "Exactly one is nonzero.", numbers=False)
logical_not = unary(comparison.logical_not, "It is zero.")

isnan = unary(comparison.isnan, "Is it NaN?", inplace=False, out=False)
isinf = unary(comparison.isinf, "Is it infinite?", inplace=False, out=False)
isfinite = unary(comparison.isfinite, "Is it finite?", inplace=False, out=False)
signbit = unary(comparison.signbit, "Is the sign bit set?", inplace=False)

bitwise_and = binary(bitwise.bitwise_and, "Bitwise and.", number_first=True)
bitwise_or = binary(bitwise.bitwise_or, "Bitwise or.", number_first=True)
bitwise_xor = binary(bitwise.bitwise_xor, "Bitwise exclusive or.", number_first=True)
bitwise_not = unary(bitwise.bitwise_not, "Bitwise complement; `not` of bools.")
bitwise_left_shift = binary(bitwise.bitwise_left_shift, "input << other.", number_first=True)
bitwise_right_shift = binary(bitwise.bitwise_right_shift, "input >> other.", number_first=True)
isposinf = unary(comparison.isposinf, "Is it plus infinity?", inplace=False)
isneginf = unary(comparison.isneginf, "Is it minus infinity?", inplace=False)
isreal = unary(comparison.isreal, "Has it no imaginary part?", inplace=False, out=False)


def check_same_dtype(op: str, x: Tensor, y: Tensor) -> None:
    if tensor_argument(op, x).dtype is not tensor_argument(op, y, "other").dtype:
        raise DtypeError(complaint(op, "both tensors must have one dtype", dict(
            input=x.dtype, other=y.dtype), "Convert one with `.to(dtype)`."))


@public(out=False)
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """|input - other| <= atol + rtol |other|, element by element."""
    check_same_dtype("isclose", input, other)
    if rtol < 0 or atol < 0:
        raise OpError(complaint("isclose", "rtol and atol must not be negative",
                                dict(rtol=rtol, atol=atol)))
    return comparison.isclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)


@public(out=False)
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Are all elements close? See isclose."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@public(out=False)
def equal(input, other):
    """Have both the same shape and the same elements?"""
    tensor_argument("equal", other, "other")
    return input.shape == other.shape and bool(eq(input, other).all())
