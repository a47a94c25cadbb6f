"""Integers drawn from words: random_ and randint."""

from __future__ import annotations

import math

import numpy as np

from flambeau.runtime.filling import Shape, by_chunks, demand
from flambeau.runtime.mersenne import Engine
from flambeau.runtime.rounding import F64, is_float, limits, stored

DIGITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
NARROW = 1 << 28  # spans from here on take two words an element


def integers(
    engine: Engine, shape: Shape, dtype=np.int64, low: int | None = None, high: int | None = None
) -> np.ndarray:
    """Integers in [low, high), nearly uniform: words modulo the span, low added.

    high None reaches up to the type's largest (floats: 2^digits, the last integer before gaps);
    low None too starts at 0.
    """
    dtype = np.dtype(dtype)
    if low is None and high is None:
        return any_integers(engine, shape, dtype)
    low = 0 if low is None else int(low)
    high = largest(dtype) + 1 if high is None else representable(int(high), dtype)
    demand(low < high, "random_", "from must be less than to", **{"from": low, "to": high})
    check_fits(low, dtype, "from")
    check_fits(high - 1, dtype, "to - 1")
    span = high - low

    def draw(n: int) -> np.ndarray:
        words = engine.wide_words(n) if span >= NARROW else engine.words(n)
        if span == 1 << 64:  # all of int64: PyTorch takes the words as they are
            return words.view(np.int64)
        offsets = remainder(words, span)
        offsets = offsets.astype(np.uint64, copy=False)
        offsets += np.uint64(low % (1 << 64))
        return offsets if dtype == np.uint64 else stored(offsets.view(np.int64), dtype)

    return by_chunks(engine, shape, dtype, draw)


def any_integers(engine: Engine, shape: Shape, dtype: np.dtype) -> np.ndarray:
    """Any integer of the type from 0 up; floats 0 .. 2^digits, both ends included."""
    top = (1 << DIGITS[dtype.name]) if is_float(dtype) else largest(dtype)
    wide = dtype.itemsize == 8

    def draw(n: int) -> np.ndarray:
        words = engine.wide_words(n) if wide else engine.words(n)
        return stored(remainder(words, top + 1), dtype)

    return by_chunks(engine, shape, dtype, draw)


def remainder(words: np.ndarray, span: int) -> np.ndarray:
    """words mod span; NumPy divides by one number much faster than it takes remainders."""
    kind = words.dtype.type
    if span & (span - 1) == 0:
        return words & kind(span - 1)
    quotients = words // kind(span)
    quotients *= kind(span)
    return words - quotients


def largest(dtype: np.dtype) -> int:
    """The last integer up to which the type holds every one."""
    return 1 << DIGITS[dtype.name] if is_float(dtype) else int(limits(dtype)[1])


def representable(high: int, dtype: np.dtype) -> int:
    """high, lowered where the float type would round high - 1 up to high or beyond."""
    if not is_float(dtype) or abs(high - 1) <= 1 << (digits := DIGITS[dtype.name]):
        return high
    rounded = float(stored(np.array(high - 1, F64), dtype))
    if math.isfinite(rounded) and rounded >= high:
        return int(rounded) - (1 << (abs(high - 1).bit_length() - digits))
    return high


def check_fits(bound: int, dtype: np.dtype, name: str) -> None:
    """An error if the type cannot hold the bound at all."""
    least, most = limits(dtype)
    if not least <= bound <= most:
        demand(False, "random_", f"{name} is out of bounds for {dtype.name}", **{name: bound})
