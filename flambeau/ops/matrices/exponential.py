"""The matrix exponential by scaling, a Pade approximant of order 13 and squaring (Higham 2005)."""

from __future__ import annotations

import numpy as np

from flambeau.core.spec import Spec
from flambeau.ops.joining import cat
from flambeau.ops.matrices.checks import field, fresh, square
from flambeau.ops.registry import primitive

PADE = (64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
        129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0,
        40840800.0, 960960.0, 16380.0, 182.0, 1.0)
RADIUS = 5.371920351148152  # the 1-norm up to which the approximant has full double accuracy


def exponential_meta(x: Spec) -> Spec:
    field("linalg.matrix_exp", x)
    square("linalg.matrix_exp", x)
    return fresh(x, *x.shape[-2:])


def exponential_ref(x):
    """Computed in double precision, where the approximant's coefficients live."""
    if not x.size:
        return x.copy()
    a = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    size = np.abs(a).sum(-2).max(-1)
    ratio = np.where(np.isfinite(size), size, 0) / RADIUS
    halvings = np.ceil(np.log2(np.maximum(ratio, 1))).astype(int)
    y = approximant(a * (0.5 ** halvings)[..., None, None])
    for k in range(int(halvings.max())):
        y = np.where((halvings > k)[..., None, None], y @ y, y)
    return y.astype(x.dtype)


def approximant(a: np.ndarray) -> np.ndarray:
    b, eye = PADE, np.eye(a.shape[-1])
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2
               + b[1] * eye)
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 \
        + b[0] * eye
    return np.linalg.solve(even - odd, even + odd)


def exponential_vjp(ct, x):
    """The upper right block of exp [[A^H, g], [0, A^H]]."""
    a, n = x.mH, x.shape[-1]
    top = cat(a, ct, dim=x.ndim - 1)
    bottom = cat(a * 0, a, dim=x.ndim - 1)
    return matrix_exp(cat(top, bottom, dim=x.ndim - 2))[..., :n, n:]


def exponential_samples(rng):
    for shape in [(3, 3), (2, 2, 2), (0, 0), (0, 2, 2), (1, 1)]:
        yield (rng.normal(size=shape),), {}
    yield (rng.normal(size=(2, 2)) * 4,), {}
    yield (rng.normal(size=(2, 2)) + 1j * rng.normal(size=(2, 2)),), {}


matrix_exp = primitive("matrix_exp", meta=exponential_meta, ref=exponential_ref,
                       vjp=dict(x=exponential_vjp), samples=exponential_samples)
