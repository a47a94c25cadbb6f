"""Orthogonal polynomials by their three-term recurrences (DLMF 18.9); 0 for negative degrees.

The degree `n` is an operand: it may differ from element to element, and fractions are dropped.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flambeau.ops.special.real import special

HIGHEST = 20_000  # degree that is still computed


def by_recurrence(x, n, first: Callable, following: Callable):
    """p[0] = 1, p[1] = first(x), p[k + 1] = following(x, k, p[k], p[k - 1])."""
    degree = np.where(np.isfinite(n), np.trunc(n), -1)
    out = np.where(degree == 0, 1.0, np.where(degree > HIGHEST, np.nan, 0.0))
    before, now = np.ones_like(x), first(x)
    out = np.where(degree == 1, now, out)
    for k in range(1, int(min(degree.max(initial=0), HIGHEST))):
        before, now = now, following(x, k, now, before)
        out = np.where(degree == k + 1, now, out)
    return out


def chebyshev(first: Callable, high: Callable, shifted: bool = False) -> Callable:
    """By recurrence up to degree 6, above by `high(angle, n)`, the form in x = cos(angle)."""
    def values(x, n):
        x, n = 2 * x - 1 if shifted else x, np.where(np.isfinite(n), n, -1)
        low = by_recurrence(x, np.minimum(n, 6), first,
                            lambda x, k, now, before: 2 * x * now - before)
        if not (n > 6).any():
            return low
        degree = np.trunc(n)
        angle = np.arccos(x.astype(complex))
        angle = np.where((x == 1) | (x == -1), angle + 1e-8, angle)  # the forms are even there
        return np.where(degree > 6, high(angle, degree).real, low)

    return values


def hermite_h(x, n):
    return by_recurrence(x, n, lambda x: 2 * x,
                         lambda x, k, now, before: 2 * (x * now - k * before))


def hermite_he(x, n):
    return by_recurrence(x, n, lambda x: x, lambda x, k, now, before: x * now - k * before)


def laguerre_l(x, n):
    return by_recurrence(x, n, lambda x: 1 - x, lambda x, k, now, before: (
        (2 * k + 1 - x) * now - k * before) / (k + 1))


def legendre_p(x, n):
    return by_recurrence(x, n, lambda x: x, lambda x, k, now, before: (
        (2 * k + 1) * x * now - k * before) / (k + 1))


# Kind -> degree 1, and any degree at x = cos(angle) (DLMF 18.5.1 to 18.5.4).
KINDS = dict(
    t=(lambda x: x, lambda a, n: np.cos(n * a)),
    u=(lambda x: 2 * x, lambda a, n: np.sin((n + 1) * a) / np.sin(a)),
    v=(lambda x: 2 * x - 1, lambda a, n: np.cos((n + 0.5) * a) / np.cos(a / 2)),
    w=(lambda x: 2 * x + 1, lambda a, n: np.sin((n + 0.5) * a) / np.sin(a / 2)))
FORMULAS = {
    **{f"chebyshev_polynomial_{kind}": chebyshev(*forms) for kind, forms in KINDS.items()},
    **{f"shifted_chebyshev_polynomial_{kind}": chebyshev(*forms, shifted=True)
       for kind, forms in KINDS.items()},
    "hermite_polynomial_h": hermite_h, "hermite_polynomial_he": hermite_he,
    "laguerre_polynomial_l": laguerre_l, "legendre_polynomial_p": legendre_p,
}


def polynomial_samples(rng):
    for shape in [(), (3,), (0,)]:
        yield (rng.uniform(-1, 1, shape), 3), {}
        yield (rng.uniform(-1, 1, shape), rng.integers(0, 6, shape).astype(float)), {}


POLYNOMIALS = {name: special(name, f, names=("x", "n"), samples=polynomial_samples,
                             no_gradient="PyTorch defines none")
               for name, f in FORMULAS.items()}
