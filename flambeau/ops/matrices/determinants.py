"""Determinants and their gradients, which are cofactors, also of singular matrices."""

from __future__ import annotations

import numpy as np

from flambeau.core.spec import Spec
from flambeau.ops.matrices.checks import field, fresh, square, well_conditioned
from flambeau.ops.matrices.lu import inverse
from flambeau.ops.registry import primitive


def det_meta(x: Spec) -> Spec:
    field("linalg.det", x)
    square("linalg.det", x)
    return fresh(x)


def det_vjp(ct, x):
    return ct[..., None, None] * cofactor(x).conj()


def square_samples(rng):
    for shape in [(3, 3), (2, 2, 2), (1, 1), (0, 0), (0, 2, 2)]:
        yield (well_conditioned(rng, *shape),), {}
    yield (well_conditioned(rng, 3, 3, kind="c"),), {}


def cofactor_meta(x: Spec) -> Spec:
    """d det / dx[i, j]."""
    field("linalg.det", x)
    square("linalg.det", x)
    return fresh(x, *x.shape[-2:])


def cofactor_ref(x):
    """With x = U S V^H: det(U) conj(det V) conj(U diag(products of the others) V^H)."""
    n = x.shape[-1]
    if not x.size:
        return x.copy()
    u, s, vh = np.linalg.svd(x)
    others = np.ones_like(s)
    for i in range(n):
        others[..., i] = np.prod(np.delete(s, i, -1), -1)
    turn = np.linalg.det(u) * np.linalg.det(vh)
    return turn[..., None, None] * ((u * others[..., None, :]) @ vh).conj()


def cofactor_decomposed(x):
    """det(x) x^-T, where x is invertible."""
    return det(x)[..., None, None] * inverse(x)[0].mT


det = primitive("det", meta=det_meta, ref=lambda x: np.linalg.det(x), vjp=dict(x=det_vjp),
                samples=square_samples)
cofactor = primitive("cofactor", meta=cofactor_meta, ref=cofactor_ref, vjp="decompose",
                     decompose=cofactor_decomposed, samples=square_samples)


def slogdet_meta(x: Spec):
    """(sign, log |det|)."""
    field("linalg.slogdet", x)
    square("linalg.slogdet", x)
    return fresh(x), fresh(x, dtype=x.dtype.to_real())


def slogdet_ref(x):
    sign, logabs = np.linalg.slogdet(x)
    return np.asarray(sign), np.asarray(logabs)


def slogdet_vjp(cts, x, out0):
    """A^-H times the cotangent of log |det| less i Im(conj(g_sign) sign)."""
    sign_ct, log_ct = cts
    total = log_ct
    if sign_ct is not None and x.is_complex():
        turn = (sign_ct.conj() * out0).imag * -1j
        total = turn if total is None else total + turn
    if total is None:
        return (None,)
    return (total[..., None, None] * inverse(x)[0].mH,)


slogdet = primitive("slogdet", meta=slogdet_meta, ref=slogdet_ref, vjp=slogdet_vjp,
                    samples=square_samples)
