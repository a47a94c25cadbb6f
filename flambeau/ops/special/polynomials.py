"""Orthogonal polynomials by their three-term recurrences (DLMF 18.9); 0 for negative degrees.

The degree `n` is an operand: it may differ from element to element, and fractions are dropped.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flambeau.ops.special.real import special


def by_recurrence(x, n, first: Callable, following: Callable):
    """p[0] = 1, p[1] = first(x), p[k + 1] = following(x, k, p[k], p[k - 1])."""
    degree = np.where(np.isfinite(n), np.trunc(n), -1)
    out = np.where(degree == 0, 1.0, 0.0)
    before, now = np.ones_like(x), first(x)
    top = int(degree.max(initial=0))
    out = np.where(degree == 1, now, out)
    for k in range(1, top):
        before, now = now, following(x, k, now, before)
        out = np.where(degree == k + 1, now, out)
    return out


def chebyshev(first: Callable, shifted: bool = False) -> Callable:
    def values(x, n):
        x = 2 * x - 1 if shifted else x
        return by_recurrence(x, n, first, lambda x, k, now, before: 2 * x * now - before)

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


FIRST = dict(t=lambda x: x, u=lambda x: 2 * x, v=lambda x: 2 * x - 1, w=lambda x: 2 * x + 1)
FORMULAS = {
    **{f"chebyshev_polynomial_{kind}": chebyshev(first) for kind, first in FIRST.items()},
    **{f"shifted_chebyshev_polynomial_{kind}": chebyshev(first, shifted=True)
       for kind, first in FIRST.items()},
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
