"""Normal numbers, by Box and Muller's transform, in the two orders that PyTorch draws them.

Blocks: 16 or more numbers into contiguous memory. Sixteen uniforms make sixteen normals, number
j and j + 8 from uniforms j and j + 8, in the output's precision.
Pairs: fewer, or memory with gaps. Two uniforms make two normals in float64; the second may stay
in the engine for the next draw, of whatever type.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from flambeau.runtime import box_muller
from flambeau.runtime.allocator import allocate
from flambeau.runtime.cephes import log32, sincos32
from flambeau.runtime.filling import CHUNK, Shape, demand, dims
from flambeau.runtime.mersenne import Engine
from flambeau.runtime.rounding import (
    EXACT,
    F32,
    F64,
    Mathematics,
    c_function,
    scaled,
    settled,
    stored,
    working,
)

BLOCK = 16
NATIVE_FROM = 16

Finish = Callable[[np.ndarray, Mathematics], np.ndarray]


def normal(
    engine: Engine, shape: Shape, dtype=F32, mean: float = 0.0, std: float = 1.0,
    contiguous: bool = True,
) -> np.ndarray:
    """mean + std z. `contiguous` says whether the memory that is to be filled is.

    Complex types: real and imaginary part have that mean, and half of the variance each.
    """
    dtype = np.dtype(dtype)
    demand(std >= 0, "normal", "std must not be negative", std=std)
    shape = dims(shape)
    if dtype.kind == "c":
        real = np.dtype(f"f{dtype.itemsize // 2}")
        parts = normal(engine, (*shape, 2), real, mean, std / math.sqrt(2), contiguous)
        return parts.view(dtype).reshape(shape)
    count = math.prod(shape)
    with engine.lock:
        if contiguous and count >= BLOCK:
            return in_blocks(engine, count, dtype, mean, std).reshape(shape)
        values = in_pairs(engine, count, dtype, scaling(mean, std),
                          lambda x: np.abs(x) + 2 * abs(mean))
        return stored(values, dtype).reshape(shape)


def normal_around(
    engine: Engine, mean: float | np.ndarray, std: float | np.ndarray
) -> np.ndarray:
    """normal with an array of means, of standard deviations, or both (row-major, broadcast)."""
    dtype = np.asarray(mean if isinstance(mean, np.ndarray) else std).dtype
    shape = np.broadcast_shapes(np.shape(mean), np.shape(std))
    kind = working(dtype)
    if isinstance(std, np.ndarray):
        demand(bool((std >= 0).all()), "normal", "every std must be at least 0")
        numbers = normal(engine, shape, dtype)
        numbers = stored(numbers.astype(kind) * std.astype(kind), dtype)
    else:
        numbers = normal(engine, shape, dtype, 0.0, std)
    shift = stored(np.asarray(mean), dtype).astype(kind)
    return stored(numbers.astype(kind) + shift, dtype)


def log_normal(
    engine: Engine, shape: Shape, dtype=F32, mean: float = 1.0, std: float = 2.0
) -> np.ndarray:
    """exp(mean + std z), always in pairs."""
    dtype = np.dtype(dtype)
    demand(std > 0, "log_normal_", "std must be positive", std=std)
    exponent = scaling(mean, std)

    def finish(z: np.ndarray, of: Mathematics) -> np.ndarray:
        return of.function("exp")(exponent(z, of))

    def spread(x: np.ndarray) -> np.ndarray:
        return x * (1 + 2 * abs(mean) + np.abs(np.log(x)))

    shape = dims(shape)
    with engine.lock:
        values = in_pairs(engine, math.prod(shape), dtype, finish, spread)
    return stored(values, dtype).reshape(shape)


def scaling(mean: float, std: float) -> Finish:
    def finish(z: np.ndarray, of: Mathematics) -> np.ndarray:
        return of.scaled(z, std, mean)

    return finish


# ------------------------------------------------------------------ blocks

def in_blocks(
    engine: Engine, count: int, dtype: np.dtype, mean: float, std: float
) -> np.ndarray:
    """count >= 16 numbers. Where 16 does not divide count, 16 more uniforms fill the last 16
    places over again."""
    if dtype == F32 and count >= NATIVE_FROM and math.isfinite(mean) and math.isfinite(std) and (
            box_muller.is_supported()):
        return in_native_blocks(engine, count, mean, std)
    units = engine.unit53 if dtype == F64 else engine.unit24
    out = np.empty(count, dtype)
    whole = count - count % BLOCK
    for start in range(0, whole, 2 * CHUNK):
        stop = min(start + 2 * CHUNK, whole)
        if stop < whole or whole == count:
            out[start:stop] = stored(transformed(units(stop - start), mean, std), dtype)
            continue
        size = stop - start
        unused = count - whole if dtype.itemsize > 2 else 0  # 16-bit types do not draw these
        uniforms = units(size + unused + BLOCK)
        uniforms = np.concatenate([uniforms[:size], uniforms[size + unused:]])
        numbers = stored(transformed(uniforms, mean, std), dtype)
        out[start:stop], out[count - BLOCK:] = numbers[:size], numbers[size:]
    return out


def in_native_blocks(engine: Engine, count: int, mean: float, std: float) -> np.ndarray:
    """`in_blocks` of float32: the last 16 places are filled over again in the same way."""
    out = np.ndarray(count, F32, allocate(4 * count))
    whole = count - count % BLOCK
    engine.fill_normals(out[:whole], mean, std)
    if whole < count:
        engine.words(count - whole)
        engine.fill_normals(out[-BLOCK:], mean, std)
    return out


def transformed(uniforms: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Uniforms, a multiple of 16 of them, made normal in their own precision."""
    halves = uniforms.reshape(-1, 2, BLOCK // 2)
    first, second = 1 - halves[:, 0], np.ascontiguousarray(halves[:, 1])
    radius, cos, sin = (polar32 if uniforms.dtype == F32 else polar64)(first, second)
    cos *= radius
    sin *= radius
    halves[:, 0] = scaled(cos, std, mean)
    halves[:, 1] = scaled(sin, std, mean)
    return uniforms


def polar32(first: np.ndarray, second: np.ndarray):
    """sqrt(-2 log first), cos(2 pi second), sin(2 pi second)."""
    radius = log32(first)
    radius *= F32.type(-2)
    sin, cos = sincos32(F32.type(2 * math.pi) * second)
    return np.sqrt(radius), cos, sin


def polar64(first: np.ndarray, second: np.ndarray):
    """The same in float64, with the C library's functions."""
    angle = 2.0 * math.pi * second
    radius = np.sqrt(-2.0 * c_function("log")(first))
    return radius, c_function("cos")(angle), c_function("sin")(angle)


# ------------------------------------------------------------------ pairs

def in_pairs(
    engine: Engine, count: int, dtype: np.dtype, finish: Finish,
    spread: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """float64 values finish(z) that round to dtype as exact ones do; see `rounding.settled`."""
    out = np.empty(count, F64)
    done = 0
    if count and engine.cached_normal is not None:
        out[:1] = finish(np.array([engine.cached_normal]), EXACT)
        engine.cached_normal, done = None, 1

    def formula(units: np.ndarray, of: Mathematics) -> np.ndarray:
        return finish(pairs(units, of), of)

    whole = count - (count - done) % 2
    for start in range(done, whole, CHUNK):
        stop = min(start + CHUNK, whole)
        units = engine.unit53(stop - start).reshape(-1, 2)
        out[start:stop] = settled(formula, units, dtype, spread=spread).reshape(-1)
    if whole < count:
        last = pairs(engine.unit53(2).reshape(1, 2), EXACT)[0]
        out[whole:] = finish(last[:1], EXACT)
        engine.cached_normal = float(last[1])
    return out


def pairs(units: np.ndarray, of: Mathematics) -> np.ndarray:
    """(n, 2) normals from (n, 2) uniforms: the first gives the angle, the second the radius."""
    radius = np.sqrt(-2.0 * of.function("log1p")(-units[:, 1]))
    angle = 2.0 * math.pi * units[:, 0]
    return np.stack([radius * of.function("cos")(angle), radius * of.function("sin")(angle)], 1)
