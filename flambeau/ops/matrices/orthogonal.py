"""QR factorisations and products of Householder reflectors H = I - tau v v^H.

Reflectors are packed as LAPACK does: v_j is column j below the diagonal, with an implied one on
it.
"""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import AutogradError, OpError, complaint
from flambeau.core.spec import Spec
from flambeau.ops.joining import cat
from flambeau.ops.matrices.checks import adjoint, field, fresh, matrices, well_conditioned
from flambeau.ops.matrices.triangular import triangular_solve
from flambeau.ops.registry import primitive


def qr_meta(x: Spec, *, mode):
    """(Q, R); mode "r" gives an empty Q."""
    field("linalg.qr", x)
    matrices("linalg.qr", x)
    m, n = x.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    q = fresh(x, m, k)
    return (x.like(shape=(0,)) if mode == "r" else q), fresh(x, k, n)


def qr_ref(x, *, mode):
    if mode == "r":
        return np.zeros((0,), x.dtype), np.linalg.qr(x, mode="r")
    return tuple(np.linalg.qr(x, mode=mode))


def qr_vjp(cts, _x, out0, out1, mode):
    """gA = [gQ + Q herm(triu(gR R^H - Q^H gQ))] R^-H; of a wide A this is its square part."""
    m, n = _x.shape[-2:]
    if mode == "r" or (mode == "complete" and m > n):
        raise AutogradError(complaint(
            "linalg.qr", "there is no derivative when mode='r', nor when mode='complete' and "
            "nrows > ncols", dict(mode=mode, shape=list(_x.shape))))
    g, h = cts
    q, r = out0, out1
    if g is None and h is None:
        return (None,)
    square, rest = r[..., :m], None
    if n > m and h is not None:  # A2 = Q R2
        rest = q @ h[..., m:]
        turned = (q @ r[..., m:]) @ h[..., m:].mH
        g = turned if g is None else g + turned
        h = h[..., :m]
    inner = 0 if h is None else h @ square.mH
    if g is not None:
        inner = inner - q.mH @ g
    core = q @ mirrored(inner.triu())
    core = core if g is None else core + g
    core = triangular_solve(square, core.mH, upper=True, unit=False).mH
    if n > m:
        zero = core.new_zeros((*core.shape[:-1], n - m)) if rest is None else rest
        core = cat(core, zero, dim=core.ndim - 1)
    return (core,)


def mirrored(x):
    """x + x^H, with the real diagonal of x once."""
    both = x + x.mH
    return both - (both.diagonal(0, -2, -1) * 0.5).diag_embed()


def qr_samples(rng):
    for shape, mode in [((3, 3), "reduced"), ((2, 4, 2), "reduced"), ((2, 4), "reduced"),
                        ((3, 3), "complete"), ((2, 0, 3), "reduced"), ((3, 0), "reduced")]:
        yield (well_conditioned(rng, *shape),), dict(mode=mode)


qr = primitive("qr", meta=qr_meta, ref=qr_ref, vjp=qr_vjp, samples=qr_samples)


def geqrf_meta(x: Spec):
    """(R above packed reflectors, tau)."""
    field("geqrf", x)
    matrices("geqrf", x)
    return fresh(x, *x.shape[-2:]), fresh(x, min(x.shape[-2:]))


def geqrf_ref(x):
    packed, tau = np.linalg.qr(x, mode="raw")
    return np.swapaxes(packed, -1, -2), tau


geqrf = primitive("geqrf", meta=geqrf_meta, ref=geqrf_ref, samples=lambda rng: (
    ((well_conditioned(rng, *shape),), {}) for shape in [(3, 3), (2, 4, 2), (2, 4)]),
    no_gradient="PyTorch has none: use qr, whose outputs are determined by the input")

# Products of reflectors ----------------------------------------------------------------------


def apply_meta(packed: Spec, tau: Spec, x: Spec, *, left, transpose) -> Spec:
    """Q x, Q^H x, x Q or x Q^H, for Q the product of all reflectors."""
    field("ormqr", packed, tau, x)
    return fresh(x, *x.shape[-2:])


def product_meta(packed: Spec, tau: Spec) -> Spec:
    """The first columns of Q, as many as there are in `packed`."""
    field("linalg.householder_product", packed, tau)
    matrices("linalg.householder_product", packed)
    m, n = packed.shape[-2:]
    if m < n or tau.shape[-1:] > (n,) or tau.shape[:-1] != packed.shape[:-2]:
        raise OpError(complaint("linalg.householder_product", "input must have at least as many "
                                "rows as columns, and no more reflectors than columns", dict(
                                    input=list(packed.shape), tau=list(tau.shape))))
    return fresh(packed, m, n)


def apply_ref(packed, tau, x, *, left, transpose):
    """Reflectors from the last to the first make Q x; the other way round Q^H x."""
    y = (x if left else adjoint(x)).copy()
    transpose = transpose == left
    count = tau.shape[-1]
    for j in range(count) if transpose else reversed(range(count)):
        v = packed[..., j:, j:j + 1].copy()
        v[..., 0, :] = 1
        t = tau[..., j, None, None]
        y[..., j:, :] -= (t.conj() if transpose else t) * v * (adjoint(v) @ y[..., j:, :])
    return y if left else adjoint(y)


def apply_decomposed(packed, tau, x, *, left, transpose):
    y = x if left else x.mH
    transpose = transpose == left
    count = tau.shape[-1]
    for j in range(count) if transpose else reversed(range(count)):
        y = reflected(packed, tau, y, j, transpose)
    return y if left else y.mH


def reflected(packed, tau, y, j: int, transpose: bool):
    """y - tau v (v^H y), with column j's reflector."""
    below = packed[..., j + 1:, j:j + 1]
    top = below.new_ones((*below.shape[:-2], 1, 1))
    v = cat(top, below, dim=below.ndim - 2)
    if j:
        v = cat(v.new_zeros((*v.shape[:-2], j, 1)), v, dim=v.ndim - 2)
    t = tau[..., j, None, None]
    return y - (t.conj() if transpose else t) * v * (v.mH @ y)


def product_ref(packed, tau):
    m, n = packed.shape[-2:]
    eye = np.broadcast_to(np.eye(m, n, dtype=packed.dtype), packed.shape)
    return apply_ref(packed, tau, eye, left=True, transpose=False)


def product_decomposed(packed, tau):
    m, n = packed.shape[-2:]
    eye = packed.new_ones((m,)).diag_embed()[:, :n].expand(packed.shape)
    return apply_decomposed(packed, tau, eye, left=True, transpose=False)


def apply_samples(rng):
    for left in (True, False):
        for transpose in (True, False):
            yield ((rng.normal(size=(3, 2)), rng.normal(size=2), rng.normal(size=(3, 3))),
                   dict(left=left, transpose=transpose))


def product_samples(rng):
    for shape, count in [((3, 2), 2), ((2, 3, 3), 2), ((2, 0), 0)]:
        yield (rng.normal(size=shape), rng.normal(size=(*shape[:-2], count))), {}
    yield (rng.normal(size=(3, 2)) * (1 + 1j), rng.normal(size=2) + 1j), {}


apply_reflectors = primitive("apply_reflectors", meta=apply_meta, ref=apply_ref, vjp="decompose",
                             decompose=apply_decomposed, samples=apply_samples)
householder_product = primitive("householder_product", meta=product_meta, ref=product_ref,
                                vjp="decompose", decompose=product_decomposed,
                                samples=product_samples)
