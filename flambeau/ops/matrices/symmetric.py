"""Factors L D L^T of symmetric (or Hermitian) matrices with Bunch-Kaufman pivoting.

Layout and pivots are those of LAPACK's sytf2 and hetf2 for the lower triangle: D has blocks of
one or two; a block of one at k was exchanged with row pivots[k]; a block of two at k, k + 1 has
both pivots -p: row k + 1 was exchanged with row p.
"""

from __future__ import annotations

import math

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.spec import Spec
from flambeau.ops.matrices.checks import field, flat, fresh, positive_definite, square
from flambeau.ops.matrices.lu import magnitude
from flambeau.ops.registry import primitive

ALPHA = (1 + math.sqrt(17)) / 8  # the bound on growth is smallest for this (Bunch, Kaufman 1977)


def ldl_meta(x: Spec, *, hermitian):
    """(packed factors, pivots, info)."""
    field("linalg.ldl_factor", x)
    square("linalg.ldl_factor", x)
    n = x.shape[-1]
    return fresh(x, n, n), fresh(x, n, dtype=dtypes.int32), fresh(x, dtype=dtypes.int32)


def ldl_ref(x, *, hermitian):
    a = flat(np.tril(x)).copy()
    pivots = np.zeros((len(a), a.shape[-1]), np.int32)
    info = np.zeros(len(a), np.int32)
    conjugate = hermitian and a.dtype.kind == "c"
    for k in range(len(a)):
        info[k] = factored(a[k], pivots[k], conjugate)
    batch = x.shape[:-2]
    return a.reshape(x.shape), pivots.reshape(x.shape[:-1]), info.reshape(batch)


def pivot_of(a: np.ndarray, k: int) -> tuple[int, int]:
    """(row to bring to the block, size of the block) for column k."""
    n = len(a)
    here = magnitude(a[k, k])
    below = magnitude(a[k + 1:, k])
    if not below.size or below.max() == 0 or here >= ALPHA * below.max():
        return k, 1
    top = below.max()
    row = k + 1 + int(below.argmax())
    across = magnitude(a[row, k:row]).max()
    if row < n - 1:
        across = max(across, magnitude(a[row + 1:, row]).max())
    if here >= ALPHA * top * (top / across):
        return k, 1
    return (row, 1) if magnitude(a[row, row]) >= ALPHA * across else (row, 2)


def interchanged(a: np.ndarray, i: int, p: int, k: int, conjugate: bool) -> None:
    """Swap rows and columns i < p of the trailing matrix that starts at k, lower triangle only."""
    a[[i, p], k:i] = a[[p, i], k:i]
    kept = a[p + 1:, i].copy()
    a[p + 1:, i], a[p + 1:, p] = a[p + 1:, p], kept
    kept = a[i + 1:p, i].copy()
    a[i + 1:p, i] = a[p, i + 1:p].conj() if conjugate else a[p, i + 1:p]
    a[p, i + 1:p] = kept.conj() if conjugate else kept
    if conjugate:
        a[p, i] = a[p, i].conj()
    a[i, i], a[p, p] = a[p, p], a[i, i]


def factored(a: np.ndarray, pivots: np.ndarray, conjugate: bool) -> int:
    """Factor one matrix in place; returns info."""
    n, k, info = len(a), 0, 0
    while k < n:
        if conjugate:
            a[k, k] = a[k, k].real
        p, size = pivot_of(a, k)
        if magnitude(a[k:, k]).max() == 0:
            info = info or k + 1
            pivots[k] = k + 1
            k += 1
            continue
        if p != k + size - 1:
            interchanged(a, k + size - 1, p, k, conjugate)
        pivots[k:k + size] = p + 1 if size == 1 else -(p + 1)
        eliminated(a, k, size, conjugate)
        k += size
    return info


def eliminated(a: np.ndarray, k: int, size: int, conjugate: bool) -> None:
    """Columns of L for the block at k, and the matrix that remains."""
    rest = slice(k + size, len(a))
    block, columns = block_of(a, k, size, conjugate), a[rest, k:k + size].copy()
    if not len(columns):
        return
    # L D = columns, so L = columns D^-1.
    lower = np.linalg.solve(block.T, columns.T).T
    other = columns.conj() if conjugate else columns
    a[rest, rest] -= np.tril(lower @ other.T)
    a[rest, k:k + size] = lower


def block_of(a: np.ndarray, k: int, size: int, conjugate: bool) -> np.ndarray:
    block = a[k:k + size, k:k + size].copy()
    if size == 2:
        block[0, 1] = block[1, 0].conj() if conjugate else block[1, 0]
        if conjugate:
            block[1, 1] = block[1, 1].real
    return block


def ldl_samples(rng):
    for shape in [(3, 3), (2, 4, 4), (0, 0)]:
        x = rng.normal(size=shape)
        yield (x + np.swapaxes(x, -1, -2),), dict(hermitian=False)
    yield (positive_definite(rng, 3, 3, kind="c"),), dict(hermitian=True)


ldl_factor = primitive("ldl_factor", meta=ldl_meta, ref=ldl_ref, samples=ldl_samples,
                       no_gradient="pivoting decides by values; PyTorch has none either")


def solve_meta(factors: Spec, pivots: Spec, b: Spec, *, hermitian) -> Spec:
    field("linalg.ldl_solve", factors, b)
    square("linalg.ldl_solve", factors)
    return fresh(b, *b.shape[-2:])


def solve_ref(factors, pivots, b, *, hermitian):
    y = flat(b).copy()
    a, p = flat(factors), flat(pivots, 1)
    conjugate = hermitian and a.dtype.kind == "c"
    for k in range(len(a)):
        substituted(a[k], p[k], y[k], conjugate)
    return y.reshape(b.shape)


def substituted(a: np.ndarray, pivots: np.ndarray, y: np.ndarray, conjugate: bool) -> None:
    """y <- A^-1 y: down through L, the blocks of D, and up through L^T or L^H."""
    n, k, starts = len(a), 0, []
    while k < n:
        size = 1 if pivots[k] > 0 else 2
        starts.append((k, size))
        at, p = k + size - 1, abs(int(pivots[k])) - 1
        y[[at, p]] = y[[p, at]]
        y[k + size:] -= a[k + size:, k:k + size] @ y[k:k + size]
        y[k:k + size] = np.linalg.solve(block_of(a, k, size, conjugate), y[k:k + size])
        k += size
    for k, size in reversed(starts):
        lower = a[k + size:, k:k + size]
        y[k:k + size] -= (lower.conj() if conjugate else lower).T @ y[k + size:]
        at, p = k + size - 1, abs(int(pivots[k])) - 1
        y[[at, p]] = y[[p, at]]


def solve_samples(rng):
    for (x,), params in ldl_samples(rng):
        factors, pivots, _ = ldl_ref(x, **params)
        yield (factors, pivots, rng.normal(size=x.shape).astype(x.dtype)), params


ldl_solve = primitive("ldl_solve", meta=solve_meta, ref=solve_ref, samples=solve_samples,
                      no_gradient="PyTorch has none: use solve")
