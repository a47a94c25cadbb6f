"""How a law fills an array: a piece at a time, in the order the numbers are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from flambeau.core.errors import OpError, complaint
from flambeau.runtime.mersenne import Engine

CHUNK = 1 << 14  # elements at a time: what they need stays in the second-level cache

Shape = int | Sequence[int]


def dims(shape: Shape) -> tuple[int, ...]:
    """shape as a tuple; an int is one dimension."""
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)


def demand(holds: bool, op: str, must: str, **got) -> None:
    """Raise unless a parameter of a law makes sense."""
    if not holds:
        raise OpError(complaint(op, must, got))


def by_chunks(
    engine: Engine, shape: Shape, dtype: np.dtype, draw: Callable[[int], np.ndarray]
) -> np.ndarray:
    """draw(n) over and over, n at most CHUNK, until shape is full."""
    shape = dims(shape)
    count = math.prod(shape)
    with engine.lock:
        if count <= CHUNK:
            return draw(count).reshape(shape)
        out = np.empty(count, dtype)
        for start in range(0, count, CHUNK):
            stop = min(start + CHUNK, count)
            out[start:stop] = draw(stop - start)
    return out.reshape(shape)


def as_complex(law: Callable, engine: Engine, shape: Shape, dtype: np.dtype, *params) -> np.ndarray:
    """A complex draw from a law of reals: real and imaginary parts in turn."""
    real = np.dtype(f"f{dtype.itemsize // 2}")
    parts = law(engine, (*dims(shape), 2), real, *params)
    return parts.view(dtype).reshape(dims(shape))
