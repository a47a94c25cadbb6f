"""LU factorisation with partial pivoting, general systems and inverses.

Pivots are LAPACK's: row i was exchanged with row pivots[i] (counted from 1). The factorisation
goes panel by panel: columns of a panel one at a time, the rest by one triangular solve and one
product.
"""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.errors import ShapeError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.ops.matrices.checks import field, flat, fresh, matrices, square, well_conditioned
from flambeau.ops.matrices.triangular import substituted, triangular_solve
from flambeau.ops.registry import primitive

PANEL = 32  # columns factored one by one before a product brings the rest up to date


def magnitude(x: np.ndarray) -> np.ndarray:
    """What LAPACK compares for a pivot: |re| + |im|."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def exchanged(a: np.ndarray, batch: np.ndarray, i: int, rows: np.ndarray) -> None:
    """Swap row i with row rows[b] of every matrix b."""
    kept = a[:, i].copy()
    a[:, i] = a[batch, rows]
    a[batch, rows] = kept


def factored(x: np.ndarray, pivot: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(LU, pivots, info) of a flat batch."""
    a = x.copy()
    count, m, n = a.shape
    k = min(m, n)
    pivots = np.tile(np.arange(1, k + 1, dtype=np.int32), (count, 1))
    info = np.zeros(count, np.int32)
    batch = np.arange(count)
    for start in range(0, k, PANEL):
        end = min(start + PANEL, k)
        for i in range(start, end):
            if pivot and count:
                rows = i + magnitude(a[:, i:, i]).argmax(1)
                pivots[:, i] = rows + 1
                exchanged(a, batch, i, rows)
            head = a[:, i, i]
            zero = head == 0
            info[zero & (info == 0)] = i + 1
            a[:, i + 1:, i] /= np.where(zero, 1, head)[:, None]
            a[:, i + 1:, i + 1:end] -= a[:, i + 1:, i, None] * a[:, i, None, i + 1:end]
        if end < n:
            substituted(a[:, start:end, start:end], a[:, start:end, end:], unit=True)
            a[:, end:, end:] -= a[:, end:, start:end] @ a[:, start:end, end:]
    return a, pivots, info


def lu_meta(x: Spec, *, pivot):
    """(LU, pivots, info)."""
    field("lu_factor", x)
    matrices("lu_factor", x)
    k = min(x.shape[-2:])
    return (fresh(x, *x.shape[-2:]), fresh(x, k, dtype=dtypes.int32),
            fresh(x, dtype=dtypes.int32))


def lu_ref(x, *, pivot):
    a, pivots, info = factored(flat(x), pivot)
    batch = x.shape[:-2]
    return a.reshape(x.shape), pivots.reshape((*batch, -1)) if pivots.size else np.zeros(
        (*batch, min(x.shape[-2:])), np.int32), info.reshape(batch)


def lu_vjp(cts, _x, out0, out1):
    """With P^T A = L U: the square part's gradient is L^-H [tril(L^H gL) + triu(gU U^H)] U^-H."""
    ct = cts[0]
    if ct is None:
        return (None,)
    m, n = _x.shape[-2:]
    k = min(m, n)
    lower, upper = out0[..., :k, :k], out0[..., :k, :k].triu()
    g = ct[..., :k, :k]
    below = (lower.mH.triu(1) @ g.tril(-1)) + g.tril(-1)
    above = g.triu() @ upper.mH
    rest = None
    if n > k:
        rest = triangular_solve(lower.mH, ct[..., k:], upper=True, unit=True)
        below = below - ct[..., k:] @ out0[..., k:].mH
    elif m > k:
        rest = triangular_solve(upper, ct[..., k:, :].mH, upper=True, unit=False).mH
        above = above - out0[..., k:, :].mH @ ct[..., k:, :]
    core = triangular_solve(lower.mH, below.tril(-1) + above.triu(), upper=True, unit=True)
    core = triangular_solve(upper, core.mH, upper=True, unit=False).mH
    if n > k:
        core = joined(core, rest, -1)
    elif m > k:
        core = joined(core, rest, -2)
    back = permutation(out1, rows=m, inverse=True)
    return (core.gather(-2, back.unsqueeze(-1).expand(core.shape)),)


def joined(x, y, dim: int):
    from flambeau.ops.joining import cat

    return cat(x, y, dim=dim % x.ndim)


def lu_samples(rng):
    for shape in [(3, 3), (2, 2, 4), (4, 2), (2, 0, 3), (0, 2, 2), (40, 34)]:
        yield (well_conditioned(rng, *shape),), dict(pivot=True)
    yield (well_conditioned(rng, 3, 3, kind="c"),), dict(pivot=True)
    yield (well_conditioned(rng, 3, 3),), dict(pivot=False)


lu_factor = primitive("lu_factor", meta=lu_meta, ref=lu_ref, vjp=lu_vjp, samples=lu_samples)


def permutation_meta(pivots: Spec, *, rows, inverse) -> Spec:
    """Row i of the permuted matrix is row p[i]; `inverse` gives the way back."""
    return spec(dtypes.int64, (*pivots.shape[:-1], rows), None, pivots.device)


def permutation_ref(pivots, *, rows, inverse):
    order = np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)).copy()
    at, swaps = flat(order, 1), flat(pivots, 1)
    batch = np.arange(len(at))
    for i in range(swaps.shape[1]):
        exchanged(at, batch, i, swaps[:, i] - 1)
    return np.argsort(order, axis=-1) if inverse else order


def permutation_samples(rng):
    for pivots, rows in [([1, 3, 3], 3), ([[2, 2], [1, 2]], 4)]:
        for inverse in (False, True):
            yield (np.array(pivots, np.int32),), dict(rows=rows, inverse=inverse)


permutation = primitive("pivot_permutation", meta=permutation_meta, ref=permutation_ref,
                        samples=permutation_samples)

# solve ---------------------------------------------------------------------------------------


def solve_meta(a: Spec, b: Spec):
    """(X with A X = B, info)."""
    field("linalg.solve", a, b)
    square("linalg.solve", a)
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise ShapeError(complaint("linalg.solve", "incompatible shapes of A and B for the "
                                   "equation AX = B", dict(A=list(a.shape), B=list(b.shape))))
    return fresh(b, *b.shape[-2:]), fresh(a, dtype=dtypes.int32)


def solve_ref(a, b):
    """LAPACK's gesv; only where a matrix is singular, our own factors, which say which."""
    try:
        return np.linalg.solve(a, b), np.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        factors, pivots, info = lu_ref(a, pivot=True)
        order = permutation_ref(pivots, rows=a.shape[-1], inverse=False)
        y = np.take_along_axis(b, order[..., None], -2)
        substituted(factors, y, unit=True)
        substituted(factors[..., ::-1, ::-1], y[..., ::-1, :], unit=False)
        return y, info


def solve_vjp(cts, a, out0, needs):
    """gB = A^-H g and gA = -gB X^H."""
    if cts[0] is None:
        return None, None
    g = solve(a.mH, cts[0])[0]
    return (-(g @ out0.mH) if needs[0] else None), g


def solve_samples(rng):
    for batch, n, k in [((), 3, 2), ((2,), 2, 1), ((0,), 2, 2), ((), 0, 2)]:
        yield (well_conditioned(rng, *batch, n, n), rng.normal(size=(*batch, n, k))), {}
    yield (well_conditioned(rng, 2, 2, kind="c"), rng.normal(size=(2, 2)) + 0j), {}


solve = primitive("solve", meta=solve_meta, ref=solve_ref, vjp=solve_vjp, samples=solve_samples)


def inverse_meta(x: Spec):
    """(inverse, info)."""
    field("linalg.inv", x)
    square("linalg.inv", x)
    return fresh(x, *x.shape[-2:]), fresh(x, dtype=dtypes.int32)


def inverse_ref(x):
    try:
        return np.linalg.inv(x), np.zeros(x.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        eye = np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)
        return solve_ref(x, eye)


def inverse_vjp(cts, out0):
    """-A^-H g A^-H."""
    if cts[0] is None:
        return (None,)
    return (-(out0.mH @ cts[0] @ out0.mH),)


def inverse_samples(rng):
    for shape in [(3, 3), (2, 2, 2), (0, 0), (0, 2, 2)]:
        yield (well_conditioned(rng, *shape),), {}
    yield (well_conditioned(rng, 2, 2, kind="c"),), {}


inverse = primitive("inverse", meta=inverse_meta, ref=inverse_ref, vjp=inverse_vjp,
                    samples=inverse_samples)
