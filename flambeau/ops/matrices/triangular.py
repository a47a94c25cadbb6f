"""Triangular systems, by halves: X1 = L11^-1 B1, then X2 = L22^-1 (B2 - L21 X1)."""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import ShapeError, complaint
from flambeau.core.spec import Spec
from flambeau.ops.matrices.checks import field, fresh, square, well_conditioned
from flambeau.ops.registry import primitive

LEAF = 16  # rows below which a system is solved row by row


def substituted(a: np.ndarray, b: np.ndarray, unit: bool) -> np.ndarray:
    """b <- a^-1 b for lower triangular `a`, in place; the upper triangle is not read."""
    n = a.shape[-1]
    if n > LEAF:
        h = n // 2
        substituted(a[..., :h, :h], b[..., :h, :], unit)
        b[..., h:, :] -= a[..., h:, :h] @ b[..., :h, :]
        substituted(a[..., h:, h:], b[..., h:, :], unit)
        return b
    for i in range(n):
        if i:
            b[..., i:i + 1, :] -= a[..., i:i + 1, :i] @ b[..., :i, :]
        if not unit:
            b[..., i, :] /= a[..., i, i, None]
    return b


def solved(a: np.ndarray, b: np.ndarray, upper: bool, unit: bool = False) -> np.ndarray:
    """a^-1 b for triangular `a`, in fresh memory."""
    if upper:  # reversed in both dimensions it is lower
        return substituted(a[..., ::-1, ::-1], b[..., ::-1, :].copy(), unit)[..., ::-1, :]
    return substituted(a, b.copy(), unit)


def triangular_meta(a: Spec, b: Spec, *, upper, unit) -> Spec:
    """A X = B with the named triangle of A alone."""
    field("solve_triangular", a, b)
    square("solve_triangular", a)
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise ShapeError(complaint("solve_triangular", "incompatible shapes of A and B for the "
                                   "equation AX = B", dict(A=list(a.shape), B=list(b.shape))))
    return fresh(b, *b.shape[-2:])


def triangular_ref(a, b, *, upper, unit):
    return solved(a, b, upper, unit)


def triangular_vjp(ct, a, out, upper, unit, needs):
    """gB = A^-H g, and gA = -gB X^H within the triangle."""
    g = triangular_solve(a.mH, ct, upper=not upper, unit=unit)
    if not needs[0]:
        return None, g
    outer, off = g @ out.mH, int(unit)
    return -(outer.triu(off) if upper else outer.tril(-off)), g


def triangular_samples(rng):
    for batch, n, k, upper, unit in [((), 3, 2, True, False), ((2,), 3, 1, False, False),
                                     ((), 2, 2, True, True), ((), 20, 2, False, True),
                                     ((0,), 2, 2, True, False), ((), 0, 2, True, False)]:
        a = well_conditioned(rng, *batch, n, n) * (0.1 if unit else 1)
        yield (a, rng.normal(size=(*batch, n, k))), dict(upper=upper, unit=unit)
    yield ((well_conditioned(rng, 3, 3, kind="c"), rng.normal(size=(3, 2)) * (1 + 1j)),
           dict(upper=True, unit=False))


triangular_solve = primitive("triangular_solve", meta=triangular_meta, ref=triangular_ref,
                             vjp=triangular_vjp, samples=triangular_samples)
