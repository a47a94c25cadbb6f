"""Results rounded exactly as the C library and fused multiply-adds round them, at NumPy's speed.

A law in float64 is one formula over a `Mathematics`. `EXACT` gives the C library's bits and may
be slow. `FAST` is NumPy's, a few units in the last place away. `settled` evaluates fast and asks
the exact one only where those few units could change the rounded result.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)

NEAR = 2.0**-44  # relative error allowed to FAST: far above what its functions have
FEW = 32  # below this many arguments asking the exact formula alone is the quickest
PROBES = 4096  # arguments on which a NumPy function must agree to pass for the C library's
DOMAINS = {"log": (0.0, 1.0), "log1p": (-1.0, 0.0), "sin": (0.0, 6.3), "cos": (0.0, 6.3),
           "tan": (-1.57, 1.57), "exp": (-30.0, 30.0)}


def stored(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """values cast to dtype; whatever the source, 16-bit floats are reached through float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype.itemsize == 2 and is_float(dtype):
            values = values.astype(F32, copy=False)
        return values.astype(dtype, copy=False)


def is_float(dtype: np.dtype) -> bool:
    """True for NumPy's floats and for bfloat16, which NumPy counts among neither kind."""
    return dtype.kind == "f" or (dtype.kind == "V" and dtype.name == "bfloat16")


@functools.cache
def limits(dtype: np.dtype) -> tuple[float, float]:
    """The least and the largest finite number of a type; ints for integer types."""
    if is_float(dtype):
        top = {"float64": 1.7976931348623157e308, "float32": 3.4028234663852886e38,
               "bfloat16": 3.3895313892515355e38, "float16": 65504.0}[dtype.name]
        return -top, top
    if dtype == np.bool_:
        return 0, 1
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def working(dtype: np.dtype) -> np.dtype:
    """The type in which arithmetic for `dtype` is done: float64 for itself, else float32."""
    return F64 if dtype == F64 else F32


# ------------------------------------------------------------------ fused multiply-add

def odd_sum(a: np.ndarray, b: np.ndarray | np.float64) -> np.ndarray:
    """a + b in float64 rounded to odd, hence safe to round again to fewer bits.

    Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", IEEE TC 57(4), 2008.
    """
    total, error = two_sum(a, b)
    bits = total.view(np.int64)
    toward = np.where((error > 0) == (total > 0), 1, -1)
    return np.where((error != 0) & (bits & 1 == 0), bits + toward, bits).view(F64)


def two_sum(a: np.ndarray, b: np.ndarray | np.float64) -> tuple[np.ndarray, np.ndarray]:
    """(s, e) with s = a + b rounded and s + e = a + b exactly."""
    total = np.asarray(a + b)
    part = total - a
    return total, (a - (total - part)) + (b - part)


def fused32(x: np.ndarray, scale: float, shift: float) -> np.ndarray:
    """x * scale + shift rounded once, float32.

    The product is exact in float64. Rounding the sum to 53 bits first matters only if that
    lands on the middle between two float32, or where float32 has fewer bits.
    """
    product = x.astype(F64)
    product *= scale
    total = product + shift
    middle = total.view(np.int64) & 0x1FFFFFFF
    risky = (middle == 0x10000000) | (np.abs(total) < 2.0**-126)
    if risky.any():
        total[risky] = odd_sum(product[risky], np.float64(shift))
    return total.astype(F32)


def fused64(x: np.ndarray, scale: float, shift: float) -> np.ndarray:
    """x * scale + shift rounded once, float64 (Boldo and Melquiond). Subnormals are not cared for.
    """
    if max(abs(scale), abs(shift)) > 2.0**900:  # splitting would overflow
        return fused64(x, scale * 2.0**-200, shift * 2.0**-200) * 2.0**200
    product = x * scale
    x_high, x_low = halves(x)
    s_high, s_low = halves(np.float64(scale))
    error = ((x_high * s_high - product) + x_high * s_low + x_low * s_high) + x_low * s_low
    low_total, low_error = two_sum(error, np.float64(shift))
    total, total_error = two_sum(product, low_total)
    return total + odd_sum(total_error, low_error)


def halves(x: np.ndarray | np.float64) -> tuple:
    """x as a sum of two numbers of 26 bits (Dekker)."""
    spread = x * 134217729.0
    high = spread - (spread - x)
    return high, x - high


def scaled(x: np.ndarray, scale: float, shift: float) -> np.ndarray:
    """fma(x, scale, shift) in x's own type, which scale and shift are rounded to first."""
    scale, shift = x.dtype.type(scale), x.dtype.type(shift)
    if shift == 0 or not (math.isfinite(scale) and math.isfinite(shift)):
        with np.errstate(invalid="ignore", over="ignore"):
            return x * scale + shift
    fused = fused32 if x.dtype == F32 else fused64
    return fused(x, float(scale), float(shift))


# ------------------------------------------------------------------ elementary functions

class Mathematics:
    """Elementary functions over float64 arrays, and the fused multiply-add to go with them."""

    __slots__ = ("function", "scaled")

    def __init__(self, function: Callable, scaled: Callable):
        self.function = function  # name -> ufunc
        self.scaled = scaled


def plainly_scaled(x: np.ndarray, scale: float, shift: float) -> np.ndarray:
    """x * scale + shift, rounded twice."""
    return x * scale + shift


@functools.cache
def c_function(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """The C library's function, bit for bit: NumPy's own where it agrees, else Python's.

    NumPy's vector versions (AVX512) differ in the last place at 0.3 to 8 arguments in a hundred;
    where it has none, NumPy calls the C library, as Python does.
    """
    ufunc, scalar = getattr(np, name), getattr(math, name)
    low, high = DOMAINS[name]
    probes = low + (high - low) * ((np.arange(1, PROBES + 1) * 0.6180339887498949) % 1.0)
    slow = functools.partial(mapped, scalar, ufunc)
    return ufunc if np.array_equal(ufunc(probes), slow(probes)) else slow


def mapped(scalar: Callable, ufunc: np.ufunc, x: np.ndarray) -> np.ndarray:
    """scalar over x; at poles and overflows, where Python raises, NumPy's infinities."""
    numbers = np.ravel(x).tolist()
    try:
        values = np.fromiter(map(scalar, numbers), F64, len(numbers))
    except (ValueError, OverflowError):
        def tolerant(number: float) -> float:
            try:
                return scalar(number)
            except (ValueError, OverflowError):
                return ufunc(number)
        with np.errstate(all="ignore"):
            values = np.fromiter(map(tolerant, numbers), F64, len(numbers))
    return values.reshape(np.shape(x))


EXACT = Mathematics(c_function, scaled)
FAST = Mathematics(functools.partial(getattr, np), plainly_scaled)


def settled(
    formula: Callable[[np.ndarray, Mathematics], np.ndarray],
    arguments: np.ndarray,
    dtype: np.dtype,
    settle: Callable[[np.ndarray], np.ndarray] | None = None,
    spread: Callable[[np.ndarray], np.ndarray] = np.abs,
) -> np.ndarray:
    """float64 values that `settle` to what formula(arguments, EXACT) would settle to.

    settle is the rounding that follows, by default the cast to float32 (none for wider types,
    which are then computed exactly). spread(values) * NEAR bounds the error of the fast values.
    The first axis of arguments and values runs over independent cases.
    """
    if settle is None:
        wider = dtype.itemsize > 4 or not is_float(dtype)
        settle = None if wider else to_float32
    if settle is None or len(arguments) < FEW:
        return formula(arguments, EXACT)
    with np.errstate(all="ignore"):
        values = formula(arguments, FAST)
        slack = spread(values)
        slack = slack * NEAR
        risky = settle(values - slack) != settle(values + slack)
    if risky.any():
        rows = risky.reshape(len(values), -1).any(axis=1)
        values[rows] = formula(arguments[rows], EXACT)
    return values


def to_float32(values: np.ndarray) -> np.ndarray:
    return values.astype(F32)
