"""What each scalar operation means, in NumPy: PyTorch's edge cases included."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from flambeau.core import dtype as dtypes


def converted(x: np.ndarray, source: dtypes.dtype, target: dtypes.dtype) -> np.ndarray:
    """A cast: from floats toward zero (out of range as int64 wraps), to integers modulo 2**bits."""
    with np.errstate(all="ignore"):
        if target.category == dtypes.BOOL:
            return np.asarray(x != 0)
        if source.category == dtypes.FLOAT and target.category == dtypes.INTEGER:
            wide = x.astype(np.float64)
            if target is dtypes.uint64:
                return np.where(
                    wide >= 2.0**63,
                    (wide - 2.0**63).astype(np.int64) ^ np.int64(-(2**63)),
                    wide.astype(np.int64),
                ).astype(np.uint64)
            return wide.astype(np.int64).astype(target.numpy)
        if source.itemsize <= 2 and source.category == dtypes.FLOAT or target.itemsize <= 2:
            return (
                np.asarray(x).astype(np.float32).astype(target.numpy)
                if (source.category == dtypes.FLOAT)
                else np.asarray(x).astype(target.numpy)
            )
        return np.asarray(x).astype(target.numpy)


def elementwise(function: Callable[[float], float]) -> Callable:
    """A float function of the standard library over arrays, NaN where it has no value."""

    def one(x: float) -> float:
        try:
            return function(float(x))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    def apply(x: np.ndarray) -> np.ndarray:
        x = np.asarray(x)
        values = [one(v) for v in x.ravel().tolist()]
        return np.array(values, np.float64).reshape(x.shape).astype(x.dtype)

    return apply


def lgamma(x: float) -> float:
    """log |gamma(x)|, infinite at the poles and at both infinities."""
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def digamma(x: float) -> float:
    """Logarithmic derivative of gamma: recurrence up to 6, then the asymptotic series."""
    if x == 0:
        return math.copysign(math.inf, -x)
    if x < 0:
        if x == math.floor(x):
            return math.nan
        return digamma(1 - x) - math.pi / math.tan(math.pi * (x - round(x)))
    shift = 0.0
    while x < 10:
        shift -= 1 / x
        x += 1
    z = 1 / (x * x)
    series = 0.0
    for term in (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = series * z + term
    series *= z
    return shift + math.log(x) - 0.5 / x - series


def gelu_slope(x: float) -> float:
    """2 d gelu(x) / dx - 1 = erf(x / sqrt 2) + x sqrt(2 / pi) exp(-x**2 / 2)."""
    if abs(x) > 64:
        return math.copysign(1.0, x)
    return math.erf(x * math.sqrt(0.5)) + x * math.sqrt(2 / math.pi) * math.exp(-0.5 * x * x)


def erfinv(x: float) -> float:
    """Inverse of erf: a rough start, then Newton with the curvature of erf (Halley)."""
    if abs(x) >= 1 or x != x:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    if x == 0:
        return x
    log = math.log1p(-x * x)
    head = 2 / (math.pi * 0.147) + log / 2
    y = math.copysign(math.sqrt(math.sqrt(head * head - log / 0.147) - head), x)
    for _ in range(4):
        tail = 1 - abs(x) - math.erfc(abs(y))
        off = math.erf(y) - x if abs(x) < 0.5 else math.copysign(1, x) * tail
        slope = 2 / math.sqrt(math.pi) * math.exp(-y * y)
        y -= off / (slope + y * off)
    return y


def floordiv(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Division rounded down: integers exactly (by zero gives 0), floats as Python's `//`."""
    if x.dtype.kind in "iu":
        return np.where(y == 0, 0, np.floor_divide(x, np.where(y == 0, 1, y)))
    result = np.floor_divide(x, y)
    return np.where(y == 0, np.divide(x, y), result)


def mod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Remainder with the sign of the divisor; integers by zero give 0."""
    if x.dtype.kind in "iu":
        return np.where(y == 0, 0, np.remainder(x, np.where(y == 0, 1, y)))
    return np.remainder(x, y)


def truncdiv(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Division rounded toward zero; integers by zero give 0."""
    if x.dtype.kind not in "iu":
        return np.trunc(np.divide(x, y))
    safe = np.where(y == 0, 1, y).astype(x.dtype)
    low = np.floor_divide(x, safe)
    up = (low * safe != x) & ((x < 0) != (safe < 0))
    return np.where(y == 0, 0, low + up).astype(x.dtype)


def rem(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Remainder with the sign of the dividend; integers by zero give 0."""
    if x.dtype.kind in "iu":
        return np.where(y == 0, 0, np.fmod(x, np.where(y == 0, 1, y).astype(x.dtype)))
    return np.fmod(x, y)


def power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x ** y; integer powers wrap, negative integer exponents give the truncated reciprocal."""
    if x.dtype.kind not in "iu":
        return np.power(x, y)
    if x.dtype.kind == "u":
        return np.power(x, y)
    positive = np.power(x, np.where(y < 0, 0, y))
    odd = np.where(y % 2 == 0, 1, -1)
    return np.where(y >= 0, positive, np.where(x == 1, 1, np.where(x == -1, odd, 0)))


def shift(up: bool) -> Callable:
    """Shifts; by the width or more: 0 to the left, the sign to the right."""

    def apply(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        bits = 8 * x.dtype.itemsize
        by = np.where((y < 0) | (y >= bits), bits - 1, y).astype(x.dtype)
        outside = (y < 0) | (y >= bits)
        moved = np.left_shift(x, by) if up else np.right_shift(x, by)
        rest = 0 if up else np.where(x < 0, -1, 0)
        return np.where(outside, rest, moved).astype(x.dtype)

    return apply


def mulhi(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The upper half of the double-width product."""
    bits = 8 * x.dtype.itemsize
    x, y = np.broadcast_arrays(x, y)
    values = [int(a) * int(b) >> bits for a, b in zip(x.ravel(), y.ravel())]
    return np.array(values, x.dtype).reshape(x.shape)


def sign(x: np.ndarray) -> np.ndarray:
    """-1, 0 or 1; NaN gives 0, as PyTorch does."""
    return ((x > 0).astype(np.int8) - (x < 0).astype(np.int8)).astype(x.dtype)


def sigmoid(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    return np.asarray(1 / (1 + np.exp(-wide))).astype(x.dtype)


OPERATIONS: dict[str, Callable] = dict(
    add=np.add,
    sub=np.subtract,
    mul=np.multiply,
    div=np.divide,
    neg=np.negative,
    abs=np.abs,
    sign=sign,
    pow=power,
    min=np.minimum,
    max=np.maximum,
    fmin=np.fmin,
    fmax=np.fmax,
    floordiv=floordiv,
    mod=mod,
    truncdiv=truncdiv,
    rem=rem,
    atan2=np.arctan2,
    copysign=np.copysign,
    hypot=np.hypot,
    nextafter=np.nextafter,
    sqrt=np.sqrt,
    rsqrt=lambda x: 1 / np.sqrt(x),
    exp=np.exp,
    exp2=np.exp2,
    expm1=np.expm1,
    log=np.log,
    log2=np.log2,
    log10=np.log10,
    log1p=np.log1p,
    sin=np.sin,
    cos=np.cos,
    tan=np.tan,
    asin=np.arcsin,
    acos=np.arccos,
    atan=np.arctan,
    sinh=np.sinh,
    cosh=np.cosh,
    tanh=np.tanh,
    asinh=np.arcsinh,
    acosh=np.arccosh,
    atanh=np.arctanh,
    erf=elementwise(math.erf),
    erfc=elementwise(math.erfc),
    erfinv=elementwise(erfinv),
    lgamma=elementwise(lgamma),
    digamma=elementwise(digamma),
    gelu_slope=elementwise(gelu_slope),
    sigmoid=sigmoid,
    floor=np.floor,
    ceil=np.ceil,
    round=np.rint,
    trunc=np.trunc,
    xor=np.bitwise_xor,
    shl=shift(True),
    shr=shift(False),
    mulhi=mulhi,
    eq=np.equal,
    ne=np.not_equal,
    lt=np.less,
    le=np.less_equal,
    gt=np.greater,
    ge=np.greater_equal,
    isnan=np.isnan,
    isinf=np.isinf,
    isfinite=np.isfinite,
    signbit=np.signbit,
)
OPERATIONS |= {"and": np.bitwise_and, "or": np.bitwise_or, "not": np.invert}
