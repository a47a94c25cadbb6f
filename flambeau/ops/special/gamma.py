"""The gamma function's logarithm and derivatives, Hurwitz's zeta, incomplete gamma functions."""

from __future__ import annotations

import math

import numpy as np

from flambeau.ops.error_function import erfc64
from flambeau.ops.special.real import piecewise, polynomial, special

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510,
             43867 / 798, -174611 / 330)  # B2, B4 .. B20
EULER = 0.57721566490153286061
HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)

# zeta(x, q) ----------------------------------------------------------------------------------


def zeta_values(x, q):
    """sum over k of (q + k)^-x, by Euler and Maclaurin's formula (DLMF 25.11.28)."""
    out = np.full(x.shape, np.nan)
    whole = q == np.floor(q)
    out[x == 1] = np.inf
    out[(x == np.inf) & (q > 0)] = np.where(q == 1, 1.0, np.where(q > 1, 0.0, np.inf))[
        (x == np.inf) & (q > 0)]
    out[(x > 1) & (q <= 0) & whole] = np.inf
    fine = (x > 1) & ((q > 0) | (~whole & (x == np.floor(x)))) & np.isfinite(q) & np.isfinite(x)
    if fine.any():
        out[fine] = _zeta(x[fine], q[fine])
    out[(x > 1) & (q == np.inf)] = 0
    return out


def _zeta(x, q):
    total = np.zeros_like(x)
    q = q.copy()
    for _ in range(100_000):
        low = q < 10
        if not low.any():
            break
        total[low] += q[low] ** -x[low]
        q[low] += 1
    power = q ** -x
    total += power * (q / (x - 1) + 0.5)
    factor, power = x.copy(), power / q
    for j, b in enumerate(BERNOULLI, 1):
        total += b / math.factorial(2 * j) * factor * power
        factor *= (x + 2 * j - 1) * (x + 2 * j)
        power /= q * q
    return total


ZETA = zeta_values(np.arange(2, 42, dtype=np.float64), np.ones(40))  # zeta(2), zeta(3) ..

# log gamma -----------------------------------------------------------------------------------


def lgamma_values(x):
    """log |gamma(x)|."""
    return piecewise(x, (x == np.inf, lambda x: x), (x == -np.inf, lambda x: -x),
                     ((x >= 0.5) & np.isfinite(x), lgamma_right),
                     ((x < 0.5) & np.isfinite(x), lgamma_left))


def lgamma_left(x):
    """Reflection (DLMF 5.5.3)."""
    distance = np.abs(x - np.round(x))
    return np.log(math.pi / np.sin(math.pi * distance)) - lgamma_right(1 - x)


def lgamma_right(x):
    """Stirling's series above 8 (DLMF 5.11.1), shifted there from below; Taylor's at 1 and 2."""
    out = np.zeros_like(x)
    shift, y = np.ones_like(x), x.copy()
    for _ in range(8):
        low = y < 8
        shift[low] *= y[low]
        y[low] += 1
    z = 1 / (y * y)
    series = polynomial(z, [b / (2 * k * (2 * k - 1)) for k, b in
                            reversed(list(enumerate(BERNOULLI[:8], 1)))]) / y
    out = (y - 0.5) * np.log(y) - y + HALF_LOG_TAU + series - np.log(shift)
    for centre in (1, 2):
        near = np.abs(x - centre) < 0.25
        if near.any():
            out[near] = lgamma_taylor(x[near] - centre, centre)
    return out


def lgamma_taylor(z, centre: int):
    """log gamma(1 + z) = -euler z + sum of zeta(k) (-z)^k / k (DLMF 5.7.3)."""
    terms = [ZETA[k - 2] / k * (-1) ** k for k in range(2, 30)]
    value = polynomial(z, [*reversed(terms), -EULER, 0.0])
    return value if centre == 1 else value + np.log1p(z)


# digamma -------------------------------------------------------------------------------------


def digamma_values(x):
    """d log gamma(x) / dx; -inf at 0, NaN at negative integers."""
    return piecewise(x, (x == 0, lambda x: np.copysign(np.inf, -x)),
                     ((x > 0) & (x < np.inf), digamma_right), (x == np.inf, lambda x: x),
                     ((x < 0) & (x != np.floor(x)), digamma_left))


def digamma_left(x):
    """Reflection (DLMF 5.5.4)."""
    return digamma_right(1 - x) - math.pi / np.tan(math.pi * (x - np.round(x)))


def digamma_right(x):
    """Recurrence up to 10, then the asymptotic series (DLMF 5.11.2)."""
    below, x = np.zeros_like(x), x.copy()
    for _ in range(10):
        low = x < 10
        below[low] -= 1 / x[low]
        x[low] += 1
    z = 1 / (x * x)
    series = polynomial(z, [b / (2 * k) for k, b in
                            reversed(list(enumerate(BERNOULLI[:8], 1)))]) * z
    return below + np.log(x) - 0.5 / x - series


# Incomplete gamma functions ------------------------------------------------------------------


def prefactor(a, x):
    """x^a e^-x / gamma(a + 1)."""
    return np.exp(a * np.log(x) - x - lgamma_values(a + 1))


def lower_series(a, x):
    """P(a, x) by its power series (DLMF 8.7.1), for x below a + 1."""
    total, term, k = np.ones_like(x), np.ones_like(x), a.copy()
    for _ in range(20_000):
        k += 1
        term *= x / k
        total += term
        if not (term > total * 1e-17).any():
            break
    return prefactor(a, x) * total


def upper_fraction(a, x):
    """Q(a, x) by its continued fraction (DLMF 8.9.2, Lentz's method), for x above a + 1."""
    tiny = 1e-300
    b = x + 1 - a
    c = np.full_like(x, 1 / tiny)
    d = 1 / np.where(b == 0, tiny, b)
    h = d.copy()
    for n in range(1, 20_000):
        factor = -n * (n - a)
        b += 2
        d = factor * d + b
        d = 1 / np.where(np.abs(d) < tiny, tiny, d)
        c = b + factor / c
        c = np.where(np.abs(c) < tiny, tiny, c)
        h *= d * c
        if not (np.abs(d * c - 1) > 1e-16).any():
            break
    return h * prefactor(a, x) * a


def uniform(a, x, lower: bool):
    """P or Q for a huge `a`: Temme's expansion about x = a (DLMF 8.12.3), two terms."""
    sigma = (x - a) / a
    half_square = np.where(np.abs(sigma) < 1e-4, sigma * sigma * (0.5 - sigma / 3 + sigma ** 2 / 4),
                           sigma - np.log1p(sigma))
    eta = np.copysign(np.sqrt(2 * half_square), sigma)
    near = np.abs(eta) < 0.05
    far_eta, far_sigma = np.where(near, 1.0, eta), np.where(near, 1.0, sigma)
    first = np.where(near, polynomial(eta, (1 / 2835, 1 / 864, -2 / 135, 1 / 12, -1 / 3)),
                     1 / far_sigma - 1 / far_eta)
    second = np.where(near, polynomial(eta, (1 / 378, -1 / 288, -1 / 540)),
                      far_eta ** -3 - far_sigma ** -3 - far_sigma ** -2 - 1 / (12 * far_sigma))
    rest = np.exp(-a * half_square) / np.sqrt(2 * math.pi * a) * (first + second / a)
    z = eta * np.sqrt(a / 2)
    return erfc64(-z) / 2 - rest if lower else erfc64(z) / 2 + rest


def incomplete(a, x, lower: bool):
    """P(a, x), or Q = 1 - P, regularised."""
    out = np.full(x.shape, np.nan)
    valid = (a >= 0) & (x >= 0)
    certain = valid & ((x == 0) | (a == 0) | np.isinf(x) | np.isinf(a))
    p = np.where(a == 0, 1.0, np.where(x == 0, 0.0, np.where(np.isinf(a), 0.0, 1.0)))
    undefined = ((a == 0) & (x == 0)) | (np.isinf(a) & np.isinf(x))
    p = np.where(undefined, np.nan, p)
    out[certain] = (p if lower else 1 - p)[certain]
    usual = valid & ~certain
    huge = usual & (a > 1e5)
    if huge.any():
        out[huge] = uniform(a[huge], x[huge], lower)
    usual &= ~huge
    small = usual & (x < a + 1)
    if small.any():
        value = lower_series(a[small], x[small])
        out[small] = value if lower else 1 - value
    large = usual & ~small
    if large.any():
        value = upper_fraction(a[large], x[large])
        out[large] = 1 - value if lower else value
    return out


def igamma_slope(ct, x, y):
    """d P(a, x) / dx = x^(a-1) e^-x / gamma(a)."""
    return ct * ((x - 1) * y.log() - y - x.lgamma()).exp()


def _igamma(a, x):
    return incomplete(a, x, True)


def _igammac(a, x):
    return incomplete(a, x, False)


# Primitives ----------------------------------------------------------------------------------

zeta = special("zeta", zeta_values, low=1.5, high=4,
               vjp=dict(y=lambda ct, x, y: ct * -x * zeta(x + 1, y)))
lgamma = special("lgamma", lgamma_values, low=0.2, high=4,
                 vjp=dict(x=lambda ct, x: ct * x.digamma()))
digamma = special("digamma", digamma_values, low=0.2, high=4, lowers=(),
                  vjp=dict(x=lambda ct, x: ct * x.polygamma(1)))
igamma = special("igamma", _igamma, low=0.3, high=3, vjp=dict(y=igamma_slope))
igammac = special("igammac", _igammac, low=0.3, high=3,
                  vjp=dict(y=lambda ct, x, y: -igamma_slope(ct, x, y)))
