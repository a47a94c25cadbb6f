"""Laws that turn each uniform number into one number: continuous ones, and yes or no.

Arithmetic is in float64 with the C library's functions, except where a law says otherwise.
"""

from __future__ import annotations

import math

import numpy as np

from flambeau.runtime.allocator import allocate
from flambeau.runtime.filling import Shape, as_complex, by_chunks, demand, dims
from flambeau.runtime.mersenne import MANY, Engine
from flambeau.runtime.rounding import (
    F32,
    F64,
    Mathematics,
    limits,
    scaled,
    settled,
    stored,
    working,
)

# ------------------------------------------------------------------ continuous laws

def uniform(
    engine: Engine, shape: Shape, dtype=F32, low: float = 0.0, high: float = 1.0
) -> np.ndarray:
    """Uniform in [low, high): a value that rounding takes up to high becomes low."""
    dtype = np.dtype(dtype)
    demand(low <= high, "uniform_", "from must be at most to", **{"from": low, "to": high})
    if dtype.kind == "c":
        return as_complex(uniform, engine, shape, dtype, low, high)
    units = engine.unit53 if dtype == F64 else engine.unit24
    least, largest = limits(dtype)
    demand(least <= low and high <= largest and high - low <= largest, "uniform_",
           "from, to and to - from must be finite numbers of the type",
           **{"from": low, "to": high, "dtype": dtype})
    kind = working(dtype).type
    scale, shift = kind(high) - kind(low), kind(low)
    plain = scale == 1 and shift == 0
    if plain and dtype.itemsize > 2:
        return by_chunks(engine, shape, dtype, units)
    first, last = stored(np.array([low, high], F64), dtype)

    def draw(n: int) -> np.ndarray:
        x = units(n)
        x = stored(x if plain else scaled(x, scale, shift), dtype)
        x[x == last] = first
        return x

    return by_chunks(engine, shape, dtype, draw)


def exponential(engine: Engine, shape: Shape, dtype=F32, rate: float = 1.0) -> np.ndarray:
    """-log(1 - u) / rate."""
    dtype = np.dtype(dtype)
    demand(rate > 0, "exponential_", "lambda must be positive", **{"lambda": rate})

    def formula(u: np.ndarray, of: Mathematics) -> np.ndarray:
        return (-1.0 / rate) * of.function("log1p")(-u)

    return by_chunks(engine, shape, dtype,
                     lambda n: stored(settled(formula, engine.unit53(n), dtype), dtype))


def geometric(engine: Engine, shape: Shape, dtype=F32, p: float = 0.5) -> np.ndarray:
    """ceil(log u / log(1 - p)): the number of trials up to the first success."""
    dtype = np.dtype(dtype)
    demand(0 < p < 1, "geometric_", "p must be in (0, 1)", p=p)
    rate = math.log1p(-p)

    def formula(u: np.ndarray, of: Mathematics) -> np.ndarray:
        return of.function("log")(u) / rate

    return by_chunks(
        engine, shape, dtype,
        lambda n: stored(np.ceil(settled(formula, engine.unit53(n), dtype, np.ceil)), dtype))


def cauchy(
    engine: Engine, shape: Shape, dtype=F32, median: float = 0.0, sigma: float = 1.0
) -> np.ndarray:
    """median + sigma tan(pi (u - 1/2))."""
    dtype = np.dtype(dtype)
    demand(sigma > 0, "cauchy_", "sigma must be positive", sigma=sigma)

    def formula(u: np.ndarray, of: Mathematics) -> np.ndarray:
        return of.scaled(of.function("tan")(math.pi * (u - 0.5)), sigma, median)

    def spread(x: np.ndarray) -> np.ndarray:
        return np.abs(x) + 2 * abs(median)

    return by_chunks(
        engine, shape, dtype,
        lambda n: stored(settled(formula, engine.unit53(n), dtype, spread=spread), dtype))


# ------------------------------------------------------------------ yes or no

def bernoulli(engine: Engine, shape: Shape, dtype=F32, p: float | np.ndarray = 0.5) -> np.ndarray:
    """1 with probability p, else 0.

    An array p (of shape, row-major) draws one word an element unless it is float64; a number p
    draws two.
    """
    dtype = np.dtype(dtype)
    if isinstance(p, np.ndarray):
        return bernoulli_each(engine, shape, dtype, p)
    demand(0 <= p <= 1, "bernoulli_", "p must be in [0, 1]", p=p)
    return yes_or_no(engine, shape, p, np.ones((), dtype))


def bernoulli_each(engine: Engine, shape: Shape, dtype: np.dtype, p: np.ndarray) -> np.ndarray:
    """bernoulli with a probability for each element."""
    demand(bool(((p >= 0) & (p <= 1)).all()), "bernoulli", "every p must be in [0, 1]")
    kind = working(p.dtype)
    p = np.broadcast_to(p, dims(shape)).reshape(-1).astype(kind, copy=False)
    units = engine.unit53 if kind == F64 else engine.unit24
    return (units(p.size) < p).astype(dtype).reshape(dims(shape))


def yes_or_no(engine: Engine, shape: Shape, p: float, value: np.ndarray) -> np.ndarray:
    """`value` with probability p, else 0; u < p on 53-bit integers, where it is exact."""
    shape, limit = dims(shape), math.ceil(p * 2.0**53)
    count = math.prod(shape)
    if 2 * count >= MANY and value.dtype.itemsize <= 8:
        out = np.ndarray(shape, value.dtype, allocate(count * value.dtype.itemsize))
        engine.choose(out, limit, value)
        return out
    return by_chunks(engine, shape, value.dtype,
                     lambda n: (engine.low53(n) < np.uint64(limit)).astype(value.dtype) * value)


def dropout_mask(engine: Engine, shape: Shape, dtype=F32, p: float = 0.5) -> np.ndarray:
    """0 with probability p, else 1 / (1 - p), rounded to dtype; multiply by it. Needs p < 1.

    PyTorch draws nothing for p of 0 or 1: the caller sees to that.
    """
    dtype = np.dtype(dtype)
    demand(0 <= p < 1, "dropout", "p must be in [0, 1)", p=p)
    kind = working(dtype).type
    kept = stored(np.array(kind(1) / kind(1 - p)), dtype)
    return yes_or_no(engine, shape, 1 - p, kept)


def rrelu_slopes(
    engine: Engine, x: np.ndarray, low: float = 1 / 8, high: float = 1 / 3
) -> np.ndarray:
    """A slope uniform in [low, high) where x <= 0, drawn in x's row-major order; 1 elsewhere.

    Slopes for 16-bit x are float32: the product with x is what gets rounded to x's type.
    """
    kind = working(x.dtype)
    low, high = float(kind.type(low)), float(kind.type(high))
    falling = x <= 0
    slopes = np.ones(x.shape, kind)
    slopes[falling] = engine.unit53(int(np.count_nonzero(falling))) * (high - low) + low
    return slopes
