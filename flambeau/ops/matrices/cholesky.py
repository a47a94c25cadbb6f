"""The Cholesky factor of Hermitian positive definite matrices; one triangle is read."""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.spec import Spec
from flambeau.ops.matrices.checks import (
    adjoint,
    field,
    flat,
    fresh,
    hermitian_part,
    positive_definite,
    square,
)
from flambeau.ops.matrices.triangular import solved, triangular_solve
from flambeau.ops.registry import primitive


def cholesky_meta(x: Spec, *, upper):
    """(factor, info); info i: the leading minor of order i is not positive."""
    field("linalg.cholesky", x)
    square("linalg.cholesky", x)
    return fresh(x, *x.shape[-2:]), fresh(x, dtype=dtypes.int32)


def cholesky_ref(x, *, upper):
    try:
        return np.linalg.cholesky(x, upper=upper), np.zeros(x.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        pass
    a, info = by_columns(flat(adjoint(x) if upper else x))
    a = a.reshape(x.shape)
    return adjoint(a) if upper else a, info.reshape(x.shape[:-2])


def by_columns(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A column of every matrix at a time, going on past those that fail."""
    a = np.tril(x)
    info = np.zeros(len(a), np.int32)
    for j in range(a.shape[-1]):
        a[:, j:, j] -= (a[:, j:, :j] @ a[:, j, :j, None].conj())[..., 0]
        top = a[:, j, j].real
        info[~(top > 0) & (info == 0)] = j + 1
        root = np.sqrt(np.where(top > 0, top, 1))
        a[:, j, j] = root
        a[:, j + 1:, j] /= root[:, None]
    return a, info


def cholesky_vjp(cts, out0, upper):
    """L^-H sym(L^H g) L^-1, sym halving the diagonal of the lower triangle."""
    ct = cts[0]
    if ct is None:
        return (None,)
    lower, g = (out0.mH, ct.mH) if upper else (out0, ct)
    inner = (lower.mH @ g).tril()
    inner = (inner + inner.tril(-1).mH) * 0.5
    diagonal = inner.diagonal(0, -2, -1)
    if inner.is_complex():
        inner = inner - diagonal.imag.mul(1j).diag_embed()
    left = triangular_solve(lower.mH, inner, upper=True, unit=False)
    return (triangular_solve(lower.mH, left.mH, upper=True, unit=False).mH,)


def cholesky_samples(rng):
    for shape in [(3, 3), (2, 2, 2), (0, 0), (0, 2, 2)]:
        yield (positive_definite(rng, *shape),), dict(upper=False)
    yield (positive_definite(rng, 3, 3),), dict(upper=True)
    yield (positive_definite(rng, 3, 3, kind="c"),), dict(upper=False)


cholesky = primitive("cholesky", meta=cholesky_meta, ref=cholesky_ref, vjp=cholesky_vjp,
                     samples=cholesky_samples, tangents=dict(x=hermitian_part))


def solve_meta(b: Spec, factor: Spec, *, upper) -> Spec:
    """X with A X = B, from the Cholesky factor of A."""
    field("cholesky_solve", b, factor)
    square("cholesky_solve", factor)
    return fresh(b, *b.shape[-2:])


def solve_ref(b, factor, *, upper):
    lower = adjoint(factor) if upper else factor
    return solved(adjoint(lower), solved(lower, b, upper=False), upper=True)


def solve_vjp(ct, factor, out, upper, needs):
    """gB = A^-1 g; with gA = -gB X^H, (gA + gA^H) L. Like PyTorch's it fills both triangles."""
    g = cholesky_solve(ct, factor, upper=upper)
    if not needs[1]:
        return g, None
    both = g @ out.mH
    both = -(both + both.mH)
    return g, factor @ both if upper else both @ factor


def solve_samples(rng):
    for batch, n, k in [((), 3, 2), ((2,), 2, 1), ((), 0, 2)]:
        for upper in (False, True):
            factor = np.linalg.cholesky(positive_definite(rng, *batch, n, n), upper=upper)
            yield (rng.normal(size=(*batch, n, k)), factor), dict(upper=upper)


def within_triangle(x: np.ndarray, upper: bool) -> np.ndarray:
    return np.triu(x) if upper else np.tril(x)


cholesky_solve = primitive("cholesky_solve", meta=solve_meta, ref=solve_ref, vjp=solve_vjp,
                           samples=solve_samples, tangents=dict(factor=within_triangle))
