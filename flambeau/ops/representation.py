"""Signs, digits and neighbours of floating-point numbers, and whole-number arithmetic."""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import BOOL, COMPLEX, FLOAT, INTEGER
from flambeau.core.errors import UnsupportedError, complaint
from flambeau.core.spec import Spec
from flambeau.loops.api import unary
from flambeau.ops.elementwise import pointwise
from flambeau.ops.registry import primitive

NOT_FLOAT = (BOOL, INTEGER, COMPLEX)

# Signs and neighbours ------------------------------------------------------------------------


def copysign_vjp(ct, x, out):
    """The ratio of the signs, and 0 at 0."""
    return (ct * (out / x)).masked_fill(x == 0, 0)


copysign = pointwise("copysign", np.copysign, rule="float", refuses=(COMPLEX,), low=0.2,
                     vjp=dict(x=copysign_vjp, y=lambda ct: ct * 0))
# In the operands' own dtype: the neighbour of a bfloat16 is not that of a float32.
nextafter = pointwise("nextafter", np.nextafter, refuses=NOT_FLOAT, native=True,
                      vjp=dict(x=lambda ct, x, y: ct.masked_fill(x == y, 0), y=lambda ct: ct * 0),
                      samples=lambda rng: (((rng.normal(size=n), rng.normal(size=n)), {})
                                           for n in (3, 0)))


def heaviside_ref(x, values):
    return np.where(x == 0, values, (x > 0).astype(x.dtype))


heaviside = pointwise("heaviside", heaviside_ref, refuses=(COMPLEX,), names=("x", "values"),
                      no_gradient="PyTorch defines none")


def nan_to_num_ref(x, nan, posinf, neginf):
    """NaN and infinities replaced."""
    if x.dtype.kind == "c":
        parts = [nan_to_num_ref(p, nan, posinf, neginf) for p in (x.real, x.imag)]
        return (parts[0] + 1j * parts[1]).astype(x.dtype)
    if x.dtype.kind != "f":
        return np.array(x)
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


nan_to_num = pointwise("nan_to_num", nan_to_num_ref, names=("x",), samples=lambda rng: (
    ((rng.normal(size=n),), dict(nan=0.0, posinf=1.0, neginf=-1.0)) for n in (3, 0)),
    vjp=dict(x=lambda ct, x: ct.masked_fill(~x.isfinite(), 0)))

# Digits --------------------------------------------------------------------------------------


def round_decimals_ref(x, decimals):
    """Half to even at the given decimal place."""
    scale = x.dtype.type(10.0 ** abs(decimals))
    return np.rint(x * scale) / scale if decimals > 0 else np.rint(x / scale) * scale


def round_samples(rng):
    for shape in [(), (3,), (0,)]:
        yield (rng.uniform(-9, 9, shape),), dict(decimals=1)


round_decimals = pointwise("round_decimals", round_decimals_ref, names=("x",),
                           refuses=NOT_FLOAT, samples=round_samples,
                           vjp=dict(x=lambda ct: ct * 0))
frac = pointwise("frac", lambda x: x - np.trunc(x), scalar=lambda x: x - unary("trunc", x),
                 refuses=NOT_FLOAT, low=0.1, high=0.9,
                 vjp=dict(x=lambda ct: ct))


def frexp_meta(x: Spec) -> tuple[Spec, Spec]:
    """x = mantissa * 2^exponent with |mantissa| in [0.5, 1)."""
    if x.dtype.category != FLOAT:
        raise UnsupportedError(complaint("frexp", "not implemented for this dtype",
                                         dict(dtype=x.dtype), "Convert with .float()."))
    return x.preserved(), x.preserved(dtypes.int32)


def frexp_ref(x):
    mantissa, exponent = np.frexp(x)
    return mantissa, exponent.astype(np.int32)


def frexp_samples(rng):
    for shape in [(), (3,), (0,)]:
        yield (rng.uniform(0.6, 0.9, shape),), {}


frexp = primitive("frexp", meta=frexp_meta, ref=frexp_ref, samples=frexp_samples,
                  vjp=dict(x=lambda ct, out1: ct / 2.0 ** out1))

# Whole numbers -------------------------------------------------------------------------------


def whole_samples(rng):
    for shape in [(), (3,), (0,)]:
        yield (rng.integers(-12, 12, shape), rng.integers(1, 12, shape)), {}


gcd = pointwise("gcd", np.gcd, refuses=(BOOL, FLOAT, COMPLEX), samples=whole_samples)
lcm = pointwise("lcm", np.lcm, refuses=(BOOL, FLOAT, COMPLEX), samples=whole_samples)
