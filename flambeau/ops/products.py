"""Matrix products."""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import DtypeError, ShapeError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.ops.elementwise import common_device
from flambeau.ops.registry import primitive


def matmul_meta(x: Spec, y: Spec) -> Spec:
    """(*batch, n, k) @ (*batch, k, m) -> (*batch, n, m); batch dimensions are equal."""
    if x.dtype is not y.dtype:
        raise DtypeError(complaint("matmul", "expected m1 and m2 to have the same dtype",
                                   dict(m1=x.dtype, m2=y.dtype), "Convert one with `.to(dtype)`."))
    if x.shape[-1] != y.shape[-2] or x.shape[:-2] != y.shape[:-2]:
        raise ShapeError(complaint("matmul", "inner sizes must match: (n, k) @ (k, m)",
                                   dict(x=list(x.shape), y=list(y.shape))))
    return spec(x.dtype, (*x.shape[:-1], y.shape[-1]), None, common_device("matmul", [x, y]))


def matmul_ref(x, y):
    return np.matmul(x, y)


def matmul_samples(rng):
    for a, b in [((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 2)), ((2, 0), (0, 3)), ((1, 1), (1, 1))]:
        yield (rng.normal(size=a), rng.normal(size=b)), {}


matmul = primitive("matmul", meta=matmul_meta, ref=matmul_ref, samples=matmul_samples, vjp=dict(
    x=lambda ct, y: ct @ y.mH, y=lambda ct, x: x.mH @ ct))
