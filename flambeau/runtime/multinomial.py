"""Draws of categories in proportion to weights."""

from __future__ import annotations

import numpy as np

from flambeau.runtime.filling import demand
from flambeau.runtime.laws import exponential
from flambeau.runtime.mersenne import Engine
from flambeau.runtime.rounding import F64, stored, working


def multinomial(
    engine: Engine, weights: np.ndarray, count: int, replacement: bool = False
) -> np.ndarray:
    """int64 (count,) for weights (n,), or (rows, count) for (rows, n)."""
    rows = np.atleast_2d(weights)
    demand(count > 0, "multinomial", "cannot sample n_sample <= 0 samples", num_samples=count)
    demand(replacement or count <= rows.shape[1], "multinomial",
           "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
           num_samples=count, categories=rows.shape[1])
    wide = rows.astype(working(rows.dtype))
    demand(bool((np.isfinite(wide) & (wide >= 0)).all()), "multinomial",
           "every weight must be finite and at least 0")
    demand(bool((wide.sum(axis=1) > 0).all()), "multinomial",
           "invalid multinomial distribution: every row must have a sum > 0")
    if replacement and count > 1:
        out = with_replacement(engine, wide, count)
    else:
        out = without_replacement(engine, wide, count, rows.dtype)
    return out[0] if weights.ndim == 1 else out


def without_replacement(
    engine: Engine, weights: np.ndarray, count: int, dtype: np.dtype
) -> np.ndarray:
    """The places of the largest weight / exponential: a race that each weight wins in proportion.

    Of equal quotients, common in 16-bit types, the first wins; PyTorch's order may be another.
    """
    clocks = exponential(engine, weights.shape, dtype).astype(weights.dtype)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotients = stored(weights / clocks, dtype).astype(weights.dtype)
    if count == 1:
        return quotients.argmax(axis=1)[:, None]
    return np.argsort(-quotients, axis=1, kind="stable")[:, :count]


def with_replacement(engine: Engine, weights: np.ndarray, count: int) -> np.ndarray:
    """The first place whose running sum of weights reaches a uniform number, count times a row."""
    out = np.empty((len(weights), count), np.int64)
    with engine.lock:
        for row, places in zip(weights, out):
            sums = np.add.accumulate(row)
            sums /= sums[-1]
            sums[-1] = 1
            places[:] = np.searchsorted(sums.astype(F64), engine.unit53(count))
    return out
