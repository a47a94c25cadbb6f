"""Arithmetic and elementary functions: one line per primitive.

Gradients name the operands that they keep; see flambeau.ops.registry. For complex operands they
follow PyTorch's convention (the conjugate of the derivative).
"""

from __future__ import annotations

import numpy as np

from flambeau.ops.elementwise import pointwise


def conj(x):
    """The complex conjugate; `x` itself when it is real or a Python number."""
    return x.conj() if getattr(x, "dtype", None) is not None and x.dtype.is_complex else x


# Arithmetic ----------------------------------------------------------------------------------

add = pointwise("add", np.add, vjp=dict(x=lambda ct: ct, y=lambda ct: ct))
sub = pointwise("sub", np.subtract, vjp=dict(x=lambda ct: ct, y=lambda ct: -ct))
mul = pointwise("mul", np.multiply,
                vjp=dict(x=lambda ct, y: ct * conj(y), y=lambda ct, x: ct * conj(x)))
div = pointwise("div", np.true_divide, rule="float", low=0.5,
                vjp=dict(x=lambda ct, y: ct / conj(y),
                         y=lambda ct, x, y: -ct * conj(x / (y * y))))
neg = pointwise("neg", np.negative, vjp=dict(x=lambda ct: -ct))
reciprocal = pointwise("reciprocal", np.reciprocal, rule="float", low=0.5,
                       vjp=dict(x=lambda ct, out: -ct * conj(out * out)))

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
atan2 = pointwise("atan2", np.arctan2, rule="float", low=0.2,
                  vjp=dict(x=lambda ct, x, y: ct * y / (x * x + y * y),
                           y=lambda ct, x, y: -ct * x / (x * x + y * y)))


def sigmoid_ref(x):
    """1 / (1 + e^-x) without overflow: e^-|x| is at most one."""
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


sigmoid = pointwise("sigmoid", sigmoid_ref, rule="float",
                    vjp=dict(x=lambda ct, out: ct * conj(out * (1 - out))))

# Sign and rounding ---------------------------------------------------------------------------


def abs_ref(x):
    return np.abs(x) if x.dtype.kind != "b" else x.copy()


def sgn_ref(x):
    """x / |x|, and 0 at 0; NaN stays NaN."""
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)
    return x.copy() if x.dtype.kind == "b" else np.sign(x)


abs = pointwise("abs", abs_ref, rule="real", low=0.1, vjp=dict(x=lambda ct, x: ct * x.sgn()))
sgn = pointwise("sgn", sgn_ref, low=0.1, vjp=dict(x=lambda ct, x, out: sgn_vjp(ct, x, out)))


def sgn_vjp(ct, x, out):
    """Zero for reals; for complex the part of ct across x, over |x|."""
    if not x.dtype.is_complex:
        return ct * 0
    size = x.abs()
    size = size.masked_fill(size == 0, 1.0)
    return (ct / size - (ct / out).real / size * out).masked_fill(x == 0, 0.0)


def _step(name: str, ufunc):
    """A piecewise constant function: its derivative is zero."""
    def ref(x):
        return ufunc(x) if x.dtype.kind in "fc" else x.copy()

    return pointwise(name, ref, low=0.1, high=0.4, vjp=dict(x=lambda ct: ct * 0))


floor, ceil = _step("floor", np.floor), _step("ceil", np.ceil)
trunc, round = _step("trunc", np.trunc), _step("round", np.rint)

# Extrema -------------------------------------------------------------------------------------


def _share(ct, winner, tie):
    """The cotangent goes to the larger operand, half to each at a tie."""
    return (ct / 2).masked_fill(~tie, 0.0) + ct.masked_fill(~winner, 0.0)


maximum = pointwise("maximum", np.maximum, vjp=dict(
    x=lambda ct, x, y: _share(ct, x > y, x == y), y=lambda ct, x, y: _share(ct, y > x, x == y)))
minimum = pointwise("minimum", np.minimum, vjp=dict(
    x=lambda ct, x, y: _share(ct, x < y, x == y), y=lambda ct, x, y: _share(ct, y < x, x == y)))
