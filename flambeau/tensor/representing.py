"""Signs, digits, neighbours, whole numbers and angles under PyTorch's names."""

from __future__ import annotations

import math

from flambeau.core import context
from flambeau.core import dtype as dtypes
from flambeau.core.dtype import COMPLEX, FLOAT
from flambeau.core.errors import OpError, UnsupportedError, complaint
from flambeau.ops import pointwise, representation
from flambeau.tensor import return_types
from flambeau.tensor.forms import NOTHING, binary, tensor_argument, unary
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor

copysign = binary(representation.copysign, "|input| with the sign of `other`.")
nextafter = binary(representation.nextafter, "The next number after `input` towards `other`.",
                   numbers=False)
gcd = binary(representation.gcd, "The greatest common divisor.", numbers=False,
             inplace_function=True)
lcm = binary(representation.lcm, "The least common multiple.", numbers=False,
             inplace_function=True)
frac = unary(representation.frac, "The fractional part, with the sign of `input`.")


def check_heaviside(x, values) -> None:
    tensor_argument("heaviside", values, "values")
    if tensor_argument("heaviside", x).dtype is not values.dtype:
        raise OpError(complaint("heaviside", "heaviside is not yet implemented for tensors with "
                                "different dtypes", dict(input=x.dtype, values=values.dtype)))
    if x.dtype.is_complex:
        raise OpError(complaint("heaviside", "complex numbers have no order", dict(dtype=x.dtype)))


def heaviside_(self, values):
    """self <- 0 below zero, `values` at zero, 1 above."""
    check_heaviside(self, values)
    return context.bind_inplace(representation.heaviside, self, (self, values), NOTHING)


@public(inplace=heaviside_)
def heaviside(input, values):
    """0 below zero, `values` at zero, 1 above."""
    check_heaviside(input, values)
    return representation.heaviside(input, values)


def replacements(x: Tensor, nan, posinf, neginf) -> dict:
    """What stands for NaN and the infinities: 0 and the limits of the dtype by default."""
    if x.dtype.category >= FLOAT:
        limits = dtypes.finfo(x.dtype)
        posinf = limits.max if posinf is None else posinf
        neginf = limits.min if neginf is None else neginf
    return dict(nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


def nan_to_num_(self, nan=None, posinf=None, neginf=None):
    """self <- self with NaN and infinities replaced."""
    return context.bind_inplace(representation.nan_to_num, self, (self,),
                                replacements(self, nan, posinf, neginf))


@public(inplace=nan_to_num_, inplace_function=True)
def nan_to_num(input, nan=None, posinf=None, neginf=None):
    """NaN becomes `nan` (0), infinities `posinf` and `neginf` (the largest finite numbers)."""
    x = tensor_argument("nan_to_num", input)
    return representation.nan_to_num(x, **replacements(x, nan, posinf, neginf))


# Rounding ------------------------------------------------------------------------------------


def round_(self, *, decimals=0):
    """self <- self rounded half to even."""
    if not decimals:
        return context.bind_inplace(pointwise.round, self, (self,), NOTHING)
    return context.bind_inplace(representation.round_decimals, self, (self,),
                                dict(decimals=decimals))


@public(inplace=round_, inplace_function=True, special=("round",))
def round(input, *, decimals=0):
    """Half to even, at the given decimal place."""
    x = tensor_argument("round", input)
    return representation.round_decimals(x, decimals=decimals) if decimals else pointwise.round(x)


@public
def frexp(input):
    """(mantissa, exponent): input = mantissa * 2 ** exponent, 0.5 <= |mantissa| < 1."""
    return return_types.frexp(*representation.frexp(tensor_argument("frexp", input)))


@public(inplace=True, inplace_function=True)
def ldexp(input, other):
    """input * 2 ** other."""
    input, other = tensor_argument("ldexp", input), tensor_argument("ldexp", other, "other")
    if input.is_floating_point() and not other.is_floating_point():
        other = other.to(input.dtype)
    return pointwise.mul(input, pointwise.pow(2.0, other))


# Angles --------------------------------------------------------------------------------------


def angular(name: str, factor: float, doc: str):
    def function(input):
        x = tensor_argument(name, input)
        if x.dtype.category == COMPLEX:
            raise UnsupportedError(complaint(name, "not implemented for complex tensors",
                                             dict(dtype=x.dtype)))
        return pointwise.mul(x, factor)

    def in_place(self):
        return context.bind_inplace(pointwise.mul, self, (self, factor), NOTHING)

    function.__name__, function.__doc__ = name, doc
    return public(function, name=name, inplace=in_place, inplace_function=True)


deg2rad = angular("deg2rad", math.pi / 180, "Degrees as radians.")
rad2deg = angular("rad2deg", 180 / math.pi, "Radians as degrees.")
