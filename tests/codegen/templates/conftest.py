"""Arrays between canaries, and every level of vector features."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from flambeau.codegen import target
from flambeau.codegen.target import Target

CANARY, MARGIN = 7.5, 64


class Guarded:
    """An output array; `check` raises if memory before or after it was written."""

    def __init__(self, shape: tuple[int, ...], dtype: object = "float32") -> None:
        count = int(np.prod(shape))
        self.memory = np.full(count + 2 * MARGIN, CANARY, dtype)
        self.array = self.memory[MARGIN : MARGIN + count].reshape(shape)
        self.array[...] = -1 if np.issubdtype(self.memory.dtype, np.integer) else np.nan

    @property
    def address(self) -> int:
        return self.array.ctypes.data

    def check(self) -> np.ndarray:
        untouched = self.memory.dtype.type(CANARY)
        assert (self.memory[:MARGIN] == untouched).all()
        assert (self.memory[-MARGIN:] == untouched).all()
        return self.array


def relative(result: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference over the largest value; NaN counts as infinite."""
    if not expected.size:
        return 0.0
    scale = np.abs(expected).max() or 1.0
    difference = np.abs(result - expected).max() / scale
    return float(difference) if np.isfinite(difference) else float("inf")


@pytest.fixture(params=["avx512", "avx2", "baseline"])
def level(request: pytest.FixtureRequest) -> Iterator[Target]:
    """The test runs once for each level of features this machine has."""
    with target.restricted(request.param) as chosen:
        yield chosen


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
