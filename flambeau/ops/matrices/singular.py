"""Singular values, pseudo-inverses and least squares.

Gradients of singular vectors hold for functions that do not depend on their phase, and where
singular values are distinct and not zero.
"""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.spec import Spec
from flambeau.ops.creation import full
from flambeau.ops.matrices.checks import (
    adjoint,
    field,
    fresh,
    matrices,
    square,
    well_conditioned,
)
from flambeau.ops.matrices.eigen import finite
from flambeau.ops.registry import primitive


def svd_meta(x: Spec, *, full):
    """(U, S, V^H): S descending; `full` completes U and V to square matrices."""
    field("linalg.svd", x)
    matrices("linalg.svd", x)
    m, n = x.shape[-2:]
    k = min(m, n)
    return (fresh(x, m, m if full else k), fresh(x, k, dtype=x.dtype.to_real()),
            fresh(x, n if full else k, n))


def svd_ref(x, *, full):
    finite("linalg.svd", x)
    m, n = x.shape[-2:]
    if x.size:
        return tuple(np.linalg.svd(x, full_matrices=full))
    k, batch = min(m, n), x.shape[:-2]

    def eye(rows, columns):
        return np.broadcast_to(np.eye(rows, columns, dtype=x.dtype), (*batch, rows, columns))

    return eye(m, m if full else k), np.zeros((*batch, k), x.real.dtype), eye(n if full else k, n)


def svd_vjp(cts, _x, out0, out1, out2):
    """U [(skew(U^H gU) / E) S + S (skew(V^H gV) / E) + gS] V^H, and what leaves the spaces:
    (1 - U U^H) gU S^-1 V^H + U S^-1 gV^H (1 - V V^H). E[i, j] = s[j]^2 - s[i]^2."""
    gu, gs, gvh = cts
    if gu is None and gs is None and gvh is None:
        return (None,)
    m, n = _x.shape[-2:]
    k = min(m, n)
    u, s, vh = out0[..., :k], out1, out2[..., :k, :]
    core = None if gs is None else gs.diag_embed().to(u.dtype)
    if gu is not None or gvh is not None:
        square_s = s * s
        eye = s.new_ones((k,)).diag_embed()
        spread = square_s[..., None, :] - square_s[..., :, None] + eye
        gu = None if gu is None else gu[..., :k]
        gv = None if gvh is None else gvh[..., :k, :].mH
        turned = turning(u, s, vh, gu, gv, spread)
        core = turned if core is None else core + turned
    return (outside(u, s, vh, gu, None if gvh is None else gv, u @ core @ vh),)


def turning(u, s, vh, gu, gv, spread):
    """The part of the gradient that turns singular vectors within their spaces."""
    total = None
    if gu is not None:
        skew = u.mH @ gu
        skew = skew - skew.mH
        total = skew / spread * s.unsqueeze(-2)
        total = total - total.diagonal(0, -2, -1).diag_embed()
        if u.is_complex():
            total = total + (skew.diagonal(0, -2, -1) / (2 * s)).diag_embed()
    if gv is not None:
        skew = vh @ gv
        skew = skew - skew.mH
        part = s.unsqueeze(-1) * (skew / spread)
        part = part - part.diagonal(0, -2, -1).diag_embed()
        total = part if total is None else total + part
    return total


def outside(u, s, vh, gu, gv, total):
    """Add what leaves the spaces of U and V."""
    if gu is not None and u.shape[-2] > u.shape[-1]:
        away = gu / s.unsqueeze(-2)
        total = total + (away - u @ (u.mH @ away)) @ vh
    if gv is not None and vh.shape[-1] > vh.shape[-2]:
        away = (gv / s.unsqueeze(-2)).mH
        total = total + u @ (away - (away @ vh.mH) @ vh)
    return total


def svdvals_meta(x: Spec) -> Spec:
    field("linalg.svdvals", x)
    matrices("linalg.svdvals", x)
    return fresh(x, min(x.shape[-2:]), dtype=x.dtype.to_real())


def svdvals_ref(x):
    finite("linalg.svdvals", x)
    if not x.size:
        return np.zeros((*x.shape[:-2], min(x.shape[-2:])), x.real.dtype)
    return np.linalg.svd(x, compute_uv=False)


def svdvals_vjp(ct, x):
    u, _, vh = svd(x, full=False)
    return (u * ct.unsqueeze(-2)) @ vh


def svd_samples(rng):
    for shape, whole in [((3, 3), False), ((2, 3, 2), False), ((2, 4), False), ((2, 2), True),
                         ((0, 2), True), ((2, 0, 2), False)]:
        yield (well_conditioned(rng, *shape),), dict(full=whole)


def values_samples(rng):
    for (x,), _ in svd_samples(rng):
        yield (x,), {}
    yield (well_conditioned(rng, 3, 2, kind="c"),), {}


svd = primitive("svd", meta=svd_meta, ref=svd_ref, vjp=svd_vjp, samples=svd_samples)
svdvals = primitive("svdvals", meta=svdvals_meta, ref=svdvals_ref, vjp=dict(x=svdvals_vjp),
                    samples=values_samples)

# Pseudo-inverse ------------------------------------------------------------------------------


def pinv_meta(x: Spec, atol: Spec, rtol: Spec, *, hermitian) -> Spec:
    """Singular values up to max(atol, rtol * the largest) count as zero."""
    field("linalg.pinv", x)
    (square if hermitian else matrices)("linalg.pinv", x)
    return fresh(x, x.shape[-1], x.shape[-2])


def pinv_ref(x, atol, rtol, *, hermitian):
    finite("linalg.pinv", x)
    if not x.size:
        return np.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    if hermitian:
        w, v = np.linalg.eigh(x)
        return (v * inverted(w, atol, rtol)[..., None, :]) @ adjoint(v)
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return adjoint(vh) @ (inverted(s, atol, rtol)[..., None] * adjoint(u))


def inverted(s: np.ndarray, atol, rtol) -> np.ndarray:
    size = np.abs(s)
    limit = np.maximum(atol, rtol * size.max(-1, initial=0))[..., None]
    keep = size > limit
    return np.where(keep, 1 / np.where(keep, s, 1), 0).astype(s.dtype)


def pinv_vjp(ct, x, out, needs):
    """Golub and Pereyra: -P^H g P^H + (1 - A P) g^H P P^H + P^H P g^H (1 - P A)."""
    p, g = out, ct
    ph, gh = p.mH, g.mH
    first, last = gh @ (p @ ph), (ph @ p) @ gh
    total = -(ph @ g @ ph) + first - x @ (p @ first) + last - (last @ p) @ x
    return total, None, None


def pinv_samples(rng):
    for shape in [(3, 3), (2, 4, 2), (2, 3), (0, 2)]:
        yield ((well_conditioned(rng, *shape), np.zeros(()), np.full(shape[:-2], 1e-15)),
               dict(hermitian=False))
    yield ((well_conditioned(rng, 3, 2, kind="c"), np.zeros(()), np.zeros(())),
           dict(hermitian=False))


pinv = primitive("pinv", meta=pinv_meta, ref=pinv_ref, vjp=pinv_vjp, samples=pinv_samples)


# Least squares -------------------------------------------------------------------------------


def lstsq_meta(a: Spec, b: Spec, *, rcond):
    """(minimum-norm solution, rank, singular values)."""
    field("linalg.lstsq", a, b)
    k = min(a.shape[-2:])
    return (fresh(b, a.shape[-1], b.shape[-1]), fresh(a, dtype=dtypes.int64),
            fresh(a, k, dtype=a.dtype.to_real()))


def lstsq_ref(a, b, *, rcond):
    u, s, vh = svd_ref(a, full=False)
    limit = rcond * s.max(-1, initial=0)[..., None]
    keep = s > limit
    scale = np.where(keep, 1 / np.where(keep, s, 1), 0).astype(s.dtype)
    x = adjoint(vh) @ (scale[..., None] * (adjoint(u) @ b))
    return x, keep.sum(-1), s


def lstsq_vjp(cts, a, b, rcond, needs):
    """The solution's through pinv(A) B."""
    ct, _, gs = cts
    left = svdvals_vjp(gs, a) if gs is not None and needs[0] else None
    if ct is None:
        return left, None
    zero = full(shape=(), value=0.0, dtype=a.dtype.to_real(), device=a.device)
    p = pinv(a, zero, zero + rcond, hermitian=False)
    if needs[0]:
        part = pinv_vjp(ct @ b.mH, a, p, (True, False, False))[0]
        left = part if left is None else left + part
    return left, p.mH @ ct


def lstsq_samples(rng):
    for shape, k in [((3, 3), 2), ((2, 4, 2), 1), ((2, 3), 2)]:
        yield ((well_conditioned(rng, *shape), rng.normal(size=(*shape[:-1], k))),
               dict(rcond=1e-15))


lstsq = primitive("lstsq", meta=lstsq_meta, ref=lstsq_ref, vjp=lstsq_vjp, samples=lstsq_samples)
