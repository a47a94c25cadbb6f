"""Laws that are sampled by rejection: Poisson, binomial, gamma, Dirichlet.

The distributions are right and the numbers follow from the engine's seed, but they are *not*
those that PyTorch draws from it: NumPy's algorithms run over the engine's words.
"""

from __future__ import annotations

import numpy as np

from flambeau.runtime.filling import demand
from flambeau.runtime.mersenne import Engine
from flambeau.runtime.rounding import F64, stored


def poisson(engine: Engine, rates: np.ndarray) -> np.ndarray:
    """Counts of events at these rates, in the rates' type. Not PyTorch's stream."""
    wide = rates.astype(F64)
    demand(bool((wide >= 0).all()), "poisson",
           "invalid Poisson rate: every rate must be at least 0")
    with engine.lock:
        return stored(np.asarray(engine.numbers().poisson(wide)), rates.dtype)


def binomial(engine: Engine, counts: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Successes in `counts` trials of probability p, in the counts' type. Not PyTorch's stream.

    Counts are cut to integers; negative ones count as 0, p outside of [0, 1] as its nearer end,
    NaN gives NaN.
    """
    wide, p = np.broadcast_arrays(counts.astype(F64), p.astype(F64))
    unknown = np.isnan(wide) | np.isnan(p)
    trials = np.where(unknown, 0, np.clip(wide, 0, 2.0**62)).astype(np.int64)
    chances = np.where(unknown, 0, np.clip(p, 0, 1))
    with engine.lock:
        successes = np.asarray(engine.numbers().binomial(trials, chances))
    return stored(np.where(unknown, np.nan, successes), counts.dtype)


def standard_gamma(engine: Engine, shapes: np.ndarray) -> np.ndarray:
    """Gamma numbers of these shape parameters and scale 1, at least the type's smallest normal
    number. Not PyTorch's stream."""
    wide = np.maximum(shapes.astype(F64), 0)
    with engine.lock:
        numbers = np.asarray(engine.numbers().standard_gamma(wide))
    return np.maximum(stored(numbers, shapes.dtype), smallest_normal(shapes.dtype))


def dirichlet(engine: Engine, concentrations: np.ndarray) -> np.ndarray:
    """Points on the simplex along the last axis. Not PyTorch's stream.

    log gamma(a) is drawn as log gamma(a + 1) + log(u) / a, so that small concentrations, whose
    gamma numbers are all below the smallest float, still give a point.
    """
    wide = concentrations.astype(F64)
    demand(bool((wide > 0).all()), "dirichlet", "every concentration must be positive")
    with engine.lock:
        gammas = np.asarray(engine.numbers().standard_gamma(wide + 1))
        units = 1 - engine.unit53(wide.size).reshape(wide.shape)
    logs = np.log(gammas) + np.log(units) / wide
    parts = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return stored(parts / parts.sum(axis=-1, keepdims=True), concentrations.dtype)


def smallest_normal(dtype: np.dtype) -> np.ndarray:
    exponents = {"float64": -1022, "float32": -126, "bfloat16": -126, "float16": -14}
    return np.array(2.0 ** exponents[dtype.name]).astype(dtype)
