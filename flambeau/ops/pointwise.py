"""Arithmetic and elementary functions: one line per primitive.

Gradients name the operands that they keep; see flambeau.ops.registry. For complex operands they
follow PyTorch's convention (the conjugate of the derivative).
"""

from __future__ import annotations

import cmath
import math

import numpy as np

from flambeau.core.dtype import BOOL, COMPLEX, FLOAT
from flambeau.core.errors import OpError, complaint
from flambeau.ops.elementwise import pointwise


def conj(x):
    """The complex conjugate; `x` itself when it is real."""
    if isinstance(x, complex) or (hasattr(x, "dtype") and x.dtype.is_complex):
        return x.conjugate() if isinstance(x, complex) else x.conj()
    return x


# Arithmetic ----------------------------------------------------------------------------------

add = pointwise("add", np.add, vjp=dict(x=lambda ct: ct, y=lambda ct: ct))
sub = pointwise("sub", np.subtract, refuses=(BOOL,), vjp=dict(x=lambda ct: ct, y=lambda ct: -ct))
mul = pointwise("mul", np.multiply,
                vjp=dict(x=lambda ct, y: ct * conj(y), y=lambda ct, x: ct * conj(x)))
div = pointwise("div", np.true_divide, rule="float", low=0.5,
                vjp=dict(x=lambda ct, y: ct / conj(y),
                         y=lambda ct, x, y: -ct * conj(x / (y * y))))
neg = pointwise("neg", np.negative, refuses=(BOOL,), vjp=dict(x=lambda ct: -ct))
reciprocal = pointwise("reciprocal", np.reciprocal, scalar=lambda x: 1 / x, rule="float", low=0.5,
                       vjp=dict(x=lambda ct, out: -ct * conj(out * out)))
square = pointwise("square", np.square, scalar=lambda x: x * x,
                   vjp=dict(x=lambda ct, x: ct * conj(2 * x)))

# Exponentials and logarithms -----------------------------------------------------------------

exp = pointwise("exp", np.exp, rule="float", vjp=dict(x=lambda ct, out: ct * conj(out)))
exp2 = pointwise("exp2", np.exp2, rule="float",
                 vjp=dict(x=lambda ct, out: ct * conj(out) * 0.6931471805599453))
expm1 = pointwise("expm1", np.expm1, rule="float",
                  vjp=dict(x=lambda ct, out: ct * conj(out + 1)))
log = pointwise("log", np.log, rule="float", low=0.1, vjp=dict(x=lambda ct, x: ct / conj(x)))
log2 = pointwise("log2", np.log2, rule="float", low=0.1,
                 vjp=dict(x=lambda ct, x: ct / conj(x * 0.6931471805599453)))
log10 = pointwise("log10", np.log10, rule="float", low=0.1,
                  vjp=dict(x=lambda ct, x: ct / conj(x * 2.302585092994046)))
log1p = pointwise("log1p", np.log1p, rule="float", low=-0.9,
                  vjp=dict(x=lambda ct, x: ct / conj(x + 1)))
sqrt = pointwise("sqrt", np.sqrt, rule="float", low=0.1,
                 vjp=dict(x=lambda ct, out: ct / conj(2 * out)))


def rsqrt_ref(x):
    return 1 / np.sqrt(x)


rsqrt = pointwise("rsqrt", rsqrt_ref, rule="float", low=0.1,
                  vjp=dict(x=lambda ct, out: -0.5 * ct * conj(out * out * out)))

# Trigonometry --------------------------------------------------------------------------------

sin = pointwise("sin", np.sin, rule="float", vjp=dict(x=lambda ct, x: ct * conj(x.cos())))
cos = pointwise("cos", np.cos, rule="float", vjp=dict(x=lambda ct, x: -ct * conj(x.sin())))
tan = pointwise("tan", np.tan, rule="float", low=-1.0, high=1.0,
                vjp=dict(x=lambda ct, out: ct * conj(1 + out * out)))
asin = pointwise("asin", np.arcsin, rule="float", low=-0.9, high=0.9,
                 vjp=dict(x=lambda ct, x: ct * conj((1 - x * x).rsqrt())))
acos = pointwise("acos", np.arccos, rule="float", low=-0.9, high=0.9,
                 vjp=dict(x=lambda ct, x: -ct * conj((1 - x * x).rsqrt())))
atan = pointwise("atan", np.arctan, rule="float",
                 vjp=dict(x=lambda ct, x: ct / conj(1 + x * x)))
sinh = pointwise("sinh", np.sinh, rule="float", vjp=dict(x=lambda ct, x: ct * conj(x.cosh())))
cosh = pointwise("cosh", np.cosh, rule="float", vjp=dict(x=lambda ct, x: ct * conj(x.sinh())))
tanh = pointwise("tanh", np.tanh, rule="float",
                 vjp=dict(x=lambda ct, out: ct * conj(1 - out * out)))
asinh = pointwise("asinh", np.arcsinh, rule="float",
                  vjp=dict(x=lambda ct, x: ct * conj((x * x + 1).rsqrt())))
acosh = pointwise("acosh", np.arccosh, rule="float", low=1.1, high=3.0,
                  vjp=dict(x=lambda ct, x: ct * conj((x - 1).rsqrt() * (x + 1).rsqrt())))
atanh = pointwise("atanh", np.arctanh, rule="float", low=-0.9, high=0.9,
                  vjp=dict(x=lambda ct, x: ct / conj(1 - x * x)))


def inverse_square(x, y):
    """1 / (x^2 + y^2), and 0 at the origin."""
    square = x * x + y * y
    return (1 / square).masked_fill(square == 0, 0)


atan2 = pointwise("atan2", np.arctan2, refuses=(COMPLEX,), rule="float", low=0.2, vjp=dict(
    x=lambda ct, x, y: ct * y * inverse_square(x, y),
    y=lambda ct, x, y: -ct * x * inverse_square(x, y)))


def sigmoid_ref(x):
    """1 / (1 + e^-x); where e^-x overflows the quotient is 0."""
    return 1 / (1 + np.exp(-x))


sigmoid = pointwise("sigmoid", sigmoid_ref, rule="float",
                    vjp=dict(x=lambda ct, out: ct * conj(out * (1 - out))))

# Sign and rounding ---------------------------------------------------------------------------


def abs_ref(x):
    return np.abs(x) if x.dtype.kind != "b" else x.copy()


def sgn_ref(x):
    """x / |x|, and 0 at 0 (and at a real NaN)."""
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)
    return sign_ref(x)


def sign_ref(x):
    """-1, 0 or 1; 0 at NaN."""
    if x.dtype.kind == "b":
        return x.copy()
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


abs = pointwise("abs", abs_ref, rule="real", low=0.1, vjp=dict(x=lambda ct, x: ct * x.sgn()))
sgn = pointwise("sgn", sgn_ref, scalar="sign", low=0.1,
                vjp=dict(x=lambda ct, x, out: sgn_vjp(ct, x, out)))


def sgn_vjp(ct, x, out):
    """Zero for reals; for complex the part of ct across x, over |x|."""
    if not x.dtype.is_complex:
        return ct * 0
    size = x.abs()
    size = size.masked_fill(size == 0, 1.0)
    return (ct / size - (ct / out).real / size * out).masked_fill(x == 0, 0.0)


sign = pointwise("sign", sign_ref, refuses=(COMPLEX,), low=0.1, vjp=dict(x=lambda ct: ct * 0))


def _step(name: str, ufunc):
    """A piecewise constant function: its derivative is zero."""
    def ref(x):
        return ufunc(x) if x.dtype.kind in "fc" else x.copy()

    return pointwise(name, ref, low=0.1, high=0.4, refuses=(BOOL, COMPLEX), lowers=(FLOAT,),
                     vjp=dict(x=lambda ct: ct * 0))


floor, ceil = _step("floor", np.floor), _step("ceil", np.ceil)
trunc, round = _step("trunc", np.trunc), _step("round", np.rint)

# Powers and division -------------------------------------------------------------------------


def pow_ref(x, y):
    """x ** y; integers wrap and give 0 for a fraction."""
    if isinstance(y, np.ndarray):
        whole = y.dtype.kind in "iu"
        return integer_power(np.asarray(x, y.dtype), y) if whole else np.power(x, y)
    shortcut = SHORTCUTS.get(y)
    if shortcut is not None:
        return shortcut(x)
    return np.power(x, y)


SHORTCUTS = {2: np.square, 1: np.copy, 3: lambda x: x * x * x, -1: np.reciprocal, 0.5: np.sqrt,
             -0.5: rsqrt_ref}


def integer_power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x ** y where a negative exponent leaves 1 or -1 of those bases and 0 of others."""
    negative = y < 0
    if not negative.any():
        return np.power(x, y)
    odd = np.where(y & 1 == 1, x, 1).astype(x.dtype)
    return np.where(negative, np.where(np.abs(x) == 1, odd, 0),
                    np.power(x, np.where(negative, 0, y)))


def pow_base_vjp(ct, x, y):
    """y x^(y - 1), and 0 where y is 0."""
    if not hasattr(y, "dtype"):
        return ct * 0 if y == 0 else ct * conj(y * x ** (y - 1))
    return (ct * conj(y * x ** (y - 1))).masked_fill(y == 0, 0)


def pow_exponent_vjp(ct, x, y, out):
    """x^y log x, and 0 where x is 0 and the power is finite."""
    if not hasattr(x, "dtype"):
        slope = ct * conj(out * log_of_number(x))
        return slope.masked_fill((y.real if y.dtype.is_complex else y) >= 0, 0) if x == 0 else slope
    zero = (x == 0) & ((y.real if y.dtype.is_complex else y) >= 0)
    return (ct * conj(out * x.masked_fill(zero, 1).log())).masked_fill(zero, 0)


def log_of_number(x):
    """log x of a Python number; -inf at 0, NaN below."""
    if isinstance(x, complex):
        return cmath.log(x)
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def pow_samples(rng):
    for base, exponent in [((), ()), ((3,), (3,)), ((2, 1), (2, 3)), ((0,), (0,))]:
        yield (rng.uniform(0.2, 2, base), rng.uniform(-2, 2, exponent)), {}
    yield (rng.normal(size=3), 3), {}


pow = pointwise("pow", pow_ref, refuses=(BOOL,), lowers=(FLOAT,), samples=pow_samples,
                vjp=dict(x=pow_base_vjp, y=pow_exponent_vjp))


def checked_divisor(y) -> None:
    """Integers may not be divided by zero; floats give inf and NaN."""
    if np.result_type(y).kind in "iub" and not np.all(y):
        raise OpError(complaint("div", "ZeroDivisionError: integers cannot be divided by zero"))


def floor_divide_ref(x, y):
    checked_divisor(y)
    return np.floor_divide(x, y)


def trunc_divide_ref(x, y):
    """x / y rounded towards zero."""
    kind = np.result_type(x, y)
    if kind.kind == "f":
        return np.trunc(np.true_divide(x, y))
    checked_divisor(y)
    down = np.floor_divide(x, y)
    return down + ((down < 0) & (down * y != x)).astype(kind)


def remainder_ref(x, y):
    checked_divisor(y)
    return np.remainder(x, y)


def fmod_ref(x, y):
    checked_divisor(y)
    return np.fmod(x, y)


# Only floats have a loop form: integers must raise at a zero divisor.
DIVISION = dict(refuses=(BOOL, COMPLEX), lowers=(FLOAT,), low=0.3, high=2.9)
floor_divide = pointwise("floor_divide", floor_divide_ref, scalar="floordiv", **DIVISION,
                         vjp=dict(x=lambda ct: ct * 0, y=lambda ct: ct * 0))
trunc_divide = pointwise("trunc_divide", trunc_divide_ref, scalar="truncdiv", **DIVISION,
                         vjp=dict(x=lambda ct: ct * 0, y=lambda ct: ct * 0))
remainder = pointwise("remainder", remainder_ref, scalar="mod", **DIVISION, vjp=dict(
    x=lambda ct: ct, y=lambda ct, x, y: -ct * floor_divide(x, y)))
fmod = pointwise("fmod", fmod_ref, scalar="rem", **DIVISION, vjp=dict(
    x=lambda ct: ct, y=lambda ct, x, y: -ct * trunc_divide(x, y)))

# Extrema -------------------------------------------------------------------------------------


def _share(ct, x, y, loses):
    """The cotangent goes to the operand that wins, half to each at a tie; to both beside NaN."""
    half = ct.masked_fill(x != y, 0) / 2
    return ct.masked_fill(loses, 0) - half


maximum = pointwise("maximum", np.maximum, scalar="max", refuses=(COMPLEX,), vjp=dict(
    x=lambda ct, x, y: _share(ct, x, y, x < y), y=lambda ct, x, y: _share(ct, x, y, y < x)))
minimum = pointwise("minimum", np.minimum, scalar="min", refuses=(COMPLEX,), vjp=dict(
    x=lambda ct, x, y: _share(ct, x, y, x > y), y=lambda ct, x, y: _share(ct, x, y, y > x)))
fmax = pointwise("fmax", np.fmax, refuses=(COMPLEX,), vjp=dict(
    x=lambda ct, x, y: ct.masked_fill(~((x >= y) | y.isnan()), 0),
    y=lambda ct, x, y: ct.masked_fill((x >= y) | y.isnan(), 0)))
fmin = pointwise("fmin", np.fmin, refuses=(COMPLEX,), vjp=dict(
    x=lambda ct, x, y: ct.masked_fill(~((x <= y) | y.isnan()), 0),
    y=lambda ct, x, y: ct.masked_fill((x <= y) | y.isnan(), 0)))
