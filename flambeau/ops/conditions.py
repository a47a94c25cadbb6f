"""A condition on values, as an equation: a graph checks what eager code checks on the way."""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core import errors
from flambeau.core.spec import Spec, spec
from flambeau.ops.registry import primitive


def ensure_meta(holds: Spec, *, error: str, message: str) -> Spec:
    return spec(dtypes.bool, (), None, holds.device)


def ensure_ref(holds, *, error: str, message: str) -> np.ndarray:
    """True; raises the class of `core.errors` with this name unless all elements hold."""
    if not np.all(holds):
        raise getattr(errors, error)(message)
    return np.array(True)


def ensure_samples(rng):
    for shape in ((), (3,), (0, 2)):
        yield (np.ones(shape, bool),), dict(error="OpError", message="must hold")


ensure = primitive("ensure", meta=ensure_meta, ref=ensure_ref, samples=ensure_samples,
                   checks=True)
