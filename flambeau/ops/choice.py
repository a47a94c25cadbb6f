"""Choosing between values by a condition."""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.errors import DtypeError, complaint
from flambeau.core.spec import Spec
from flambeau.ops.elementwise import result_spec
from flambeau.ops.promotion import result_dtype
from flambeau.ops.registry import primitive


def where_meta(condition: Spec, x: Spec, y: Spec) -> Spec:
    """x where condition holds, else y; all broadcast, x and y promote."""
    if condition.dtype not in (dtypes.bool, dtypes.uint8):
        raise DtypeError(complaint("where", "condition must be a bool tensor",
                                   dict(dtype=condition.dtype), "Compare it with something."))
    return result_spec("where", (condition, x, y), result_dtype(x, y))


def where_ref(condition, x, y):
    return np.where(condition.astype(bool, copy=False), x, y)


def where_samples(rng):
    for a, b in [((3,), (3,)), ((2, 1), (2, 3)), ((), (2,)), ((0,), (0,))]:
        yield (rng.normal(size=a) > 0, rng.normal(size=b), rng.normal(size=b)), {}


where = primitive("where", meta=where_meta, ref=where_ref, samples=where_samples, exact=True,
                  vjp=dict(x=lambda ct, condition: where(condition, ct, 0),
                           y=lambda ct, condition: where(condition, 0, ct)))
