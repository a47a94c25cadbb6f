"""Bessel functions of orders 0 and 1, and Airy's function.

Power series near 0, Hankel's asymptotic series far out, Miller's backward recurrence or a
trapezoidal rule (which converges exponentially here) between; formula numbers are DLMF's.
"""

from __future__ import annotations

import math

import numpy as np

from flambeau.ops.special.real import piecewise, special

EULER = 0.57721566490153286061
FAR = 25.0  # Hankel's series is exact to rounding beyond this

# Ordinary ------------------------------------------------------------------------------------


def miller(x, count: int = 72):
    """J0(x) .. by downward recurrence, normalised by J0 + 2 J2 + 2 J4 + .. = 1 (10.12.4)."""
    high, low = np.zeros_like(x), np.full_like(x, 1e-250)
    rows = [low]
    for n in range(count, 0, -1):
        high, low = low, 2 * n / x * low - high
        rows.append(low)
        big = np.abs(low) > 1e200
        if big.any():
            shrink = np.where(big, 1e-200, 1.0)
            low, high = low * shrink, high * shrink
            rows = [r * shrink for r in rows]
    rows.reverse()
    total = rows[0] + 2 * sum(rows[2::2])
    return [r / total for r in rows]


def hankel(x, order: int):
    """(P, Q, phase) of the asymptotic expansions (10.17.3): J = sqrt(2/(pi x)) (P cos - Q sin)."""
    mu = 4.0 * order * order
    p, q, term = np.ones_like(x), np.zeros_like(x), np.ones_like(x)
    for k in range(1, 22):
        term = term * (mu - (2 * k - 1) ** 2) / (k * 8 * x)
        if k % 2:
            q += term * (1 if k % 4 == 1 else -1)
        else:
            p += term * (1 if k % 4 == 0 else -1)
    return p, q, x - (order / 2 + 0.25) * math.pi


def j_values(x, order: int):
    size = np.abs(x)
    sign = np.where(x < 0, -1.0, 1.0) if order else 1.0

    def near(x):
        tiny = x < 1e-6
        value = miller(np.where(tiny, 1, x))[order]
        return np.where(tiny, x / 2 if order else 1 - x * x / 4, value)

    def far(x):
        p, q, phase = hankel(x, order)
        return np.sqrt(2 / (math.pi * x)) * (p * np.cos(phase) - q * np.sin(phase))

    return sign * piecewise(size, (size <= FAR, near), ((size > FAR) & (size < np.inf), far),
                            (size == np.inf, np.zeros_like))


def y_values(x, order: int):
    """NaN below 0, -inf at 0."""
    def near(x):
        j = miller(x)
        log = np.log(x / 2) + EULER
        if not order:  # 10.8.3 in its Neumann form
            terms = sum((-1) ** k / k * j[2 * k] for k in range(1, 34))
            return 2 / math.pi * (log * j[0] - 2 * terms)
        terms = sum((-1) ** k * (2 * k + 1) / (k * (k + 1)) * j[2 * k + 1] for k in range(1, 34))
        return 2 / math.pi * ((log - 1) * j[1] - j[0] / x - terms)

    def far(x):
        p, q, phase = hankel(x, order)
        return np.sqrt(2 / (math.pi * x)) * (p * np.sin(phase) + q * np.cos(phase))

    return piecewise(x, (x == 0, lambda x: np.full_like(x, -np.inf)),
                     ((x > 0) & (x <= FAR), near), ((x > FAR) & (x < np.inf), far),
                     (x == np.inf, np.zeros_like))


# Modified ------------------------------------------------------------------------------------


def scaled_i(x, order: int):
    """e^-|x| I(x)."""
    size = np.abs(x)
    sign = np.where(x < 0, -1.0, 1.0) if order else 1.0

    def near(x):
        """10.25.2: all terms are positive."""
        z = x * x / 4
        term = x / 2 if order else np.ones_like(x)
        total = term.copy()
        for k in range(1, 60):
            term = term * z / (k * (k + order))
            total += term
        return total * np.exp(-x)

    def far(x):
        """10.40.1."""
        mu = 4.0 * order * order
        term, total = np.ones_like(x), np.ones_like(x)
        for k in range(1, 30):
            term = term * -(mu - (2 * k - 1) ** 2) / (k * 8 * x)
            total += term
        return total / np.sqrt(2 * math.pi * x)

    return sign * piecewise(size, (size <= 20, near), ((size > 20) & (size < np.inf), far),
                            (size == np.inf, np.zeros_like))


def i_values(x, order: int):
    """I(x); inf beyond the range of float64."""
    return scaled_i(x, order) * np.exp(np.abs(x))


def scaled_k(x, order: float):
    """e^x K(x) = integral of e^(-x (cosh t - 1)) cosh(order t) dt over t > 0 (10.32.9)."""
    def middle(x):
        h = 0.125
        t = np.arange(0, 5, h)
        weight = np.where(t == 0, 0.5, 1.0) * h * np.cosh(order * t)
        return np.exp(-np.multiply.outer(x, np.cosh(t) - 1)) @ weight

    def far(x):
        """10.40.2."""
        mu = 4.0 * order * order
        term, total = np.ones_like(x), np.ones_like(x)
        for k in range(1, 30):
            term = term * (mu - (2 * k - 1) ** 2) / (k * 8 * x)
            total += term
        return total * np.sqrt(math.pi / (2 * x))

    return piecewise(x, (x == 0, lambda x: np.full_like(x, np.inf)),
                     ((x > 0) & (x < 2), lambda x: k_near(x, int(order)) * np.exp(x)),
                     ((x >= 2) & (x <= 20), middle), ((x > 20) & (x < np.inf), far),
                     (x == np.inf, np.zeros_like))


def k_near(x, order: int):
    """Power series with a logarithm (10.31.1)."""
    z, log = x * x / 4, np.log(x / 2)
    if not order:
        term, harmonic = np.ones_like(x), 0.0
        total = -(log + EULER)
        for k in range(1, 25):
            term = term * z / (k * k)
            harmonic += 1 / k
            total = total + term * (harmonic - log - EULER)
        return total
    term = x / 2
    psi = -2 * EULER + 1
    total = 1 / x + term * (log - psi / 2)
    for k in range(1, 25):
        term = term * z / (k * (k + 1))
        psi += 1 / k + 1 / (k + 1)
        total = total + term * (log - psi / 2)
    return total


def k_values(x, order: int):
    return scaled_k(x, order) * np.exp(-x)


# Airy ----------------------------------------------------------------------------------------

C1, C2 = 0.35502805388781723926, 0.25881940379280679840  # Ai(0), -Ai'(0)


def airy_series(x):
    """9.4.1."""
    cube = x * x * x
    f, g = np.ones_like(x), x.copy()
    total = C1 * f - C2 * g
    for k in range(1, 40):
        f = f * cube / ((3 * k - 1) * (3 * k))
        g = g * cube / ((3 * k) * (3 * k + 1))
        total += C1 * f - C2 * g
    return total


def airy_right(x):
    """Ai(x) = sqrt(x / 3) K_(1/3)(zeta) / pi, zeta = 2/3 x^(3/2) (9.6.2)."""
    zeta = 2 / 3 * x ** 1.5
    return np.sqrt(x / 3) / math.pi * scaled_k(zeta, 1 / 3) * np.exp(-zeta)


# Nodes of the trapezoidal rule after t = e^(u - e^-u).
_U = np.arange(-4.5, 6.0, 1 / 16)
_T = np.exp(_U - np.exp(-_U))
_WEIGHT = _T ** (5 / 6) * np.exp(-_T) * (1 + np.exp(-_U)) / 16
_SCALE = 1 / (math.sqrt(math.pi) * 48 ** (1 / 6) * math.gamma(5 / 6))


def airy_left(x):
    """Ai(-z) = 2 Re(e^(i pi/3) Ai(z e^(i pi/3))) (9.2.14), by the integral of Gil, Segura and
    Temme (2002): Ai(z) ~ e^-zeta zeta^(-1/6) times that of (2 + t/zeta)^(-1/6) t^(-1/6) e^-t."""
    zeta = 2j / 3 * (-x) ** 1.5
    inner = (2 + _T / zeta[..., None]) ** (-1 / 6) @ _WEIGHT
    value = _SCALE * np.exp(-zeta) * zeta ** (-1 / 6) * inner
    return 2 * (np.exp(1j * math.pi / 3) * value).real


def airy_values(x):
    return piecewise(x, (np.abs(x) < 2.2, airy_series), ((x >= 2.2) & (x < np.inf), airy_right),
                     ((x <= -2.2) & (x > -np.inf), airy_left), (np.isinf(x), np.zeros_like))


def spherical_j0_values(x):
    """sin(x) / x."""
    return piecewise(x, (np.abs(x) < 1e-3, lambda x: 1 - x * x / 6 + x ** 4 / 120),
                     ((np.abs(x) >= 1e-3) & np.isfinite(x), lambda x: np.sin(x) / x),
                     (np.isinf(x), np.zeros_like))


# Primitives ----------------------------------------------------------------------------------


def at_zero(value, x, limit: float):
    return value.masked_fill(x == 0, limit)


bessel_j0 = special("bessel_j0", lambda x: j_values(x, 0),
                    vjp=dict(x=lambda ct, x: -ct * bessel_j1(x)))
bessel_j1 = special("bessel_j1", lambda x: j_values(x, 1), low=0.2, vjp=dict(
    x=lambda ct, x, out: ct * (bessel_j0(x) - at_zero(out / x, x, 0.5))))
bessel_y0 = special("bessel_y0", lambda x: y_values(x, 0), low=0.5,
                    vjp=dict(x=lambda ct, x: -ct * bessel_y1(x)))
bessel_y1 = special("bessel_y1", lambda x: y_values(x, 1), low=0.5,
                    vjp=dict(x=lambda ct, x, out: ct * (bessel_y0(x) - out / x)))
i0 = special("i0", lambda x: i_values(x, 0), vjp=dict(x=lambda ct, x: ct * i1(x)))
i1 = special("i1", lambda x: i_values(x, 1), low=0.2, vjp=dict(
    x=lambda ct, x, out: ct * (i0(x) - at_zero(out / x, x, 0.5))))
i0e = special("i0e", lambda x: scaled_i(x, 0), low=0.2,
              vjp=dict(x=lambda ct, x, out: ct * (i1e(x) - x.sgn() * out)))
i1e = special("i1e", lambda x: scaled_i(x, 1), low=0.2, vjp=dict(
    x=lambda ct, x, out: ct * (i0e(x) - x.sgn() * out - at_zero(out / x, x, 0.5))))
modified_bessel_k0 = special("modified_bessel_k0", lambda x: k_values(x, 0), low=0.5,
                             vjp=dict(x=lambda ct, x: -ct * modified_bessel_k1(x)))
modified_bessel_k1 = special("modified_bessel_k1", lambda x: k_values(x, 1), low=0.5, vjp=dict(
    x=lambda ct, x, out: -ct * (modified_bessel_k0(x) + out / x)))
scaled_modified_bessel_k0 = special(
    "scaled_modified_bessel_k0", lambda x: scaled_k(x, 0), low=0.5,
    vjp=dict(x=lambda ct, x, out: ct * (out - scaled_modified_bessel_k1(x))))
scaled_modified_bessel_k1 = special(
    "scaled_modified_bessel_k1", lambda x: scaled_k(x, 1), low=0.5,
    vjp=dict(x=lambda ct, x, out: ct * (out - scaled_modified_bessel_k0(x) - out / x)))
airy_ai = special("airy_ai", airy_values, no_gradient="PyTorch defines none")
spherical_bessel_j0 = special("spherical_bessel_j0", spherical_j0_values, low=0.2, vjp=dict(
    x=lambda ct, x, out: ct * at_zero((x.cos() - out) / x, x, 0.0)))
