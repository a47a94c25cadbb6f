"""The error function, the normal distribution, and their inverses.

Rational approximations of Cephes (Moshier, `ndtr.c`): erf(x) = x T(x^2) / U(x^2) for |x| <= 1,
erfc(x) = e^(-x^2) P(x) / Q(x) for 1 < x < 8 and e^(-x^2) R(x) / S(x) beyond; relative error 6e-16.
"""

from __future__ import annotations

import math

import numpy as np

from flambeau.ops.special.real import piecewise, polynomial, special

P = (2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
     4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
     9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2)
Q = (1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
     9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
     1.65666309194161350182e3, 5.57535340817727675546e2)
R = (5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0,
     6.16021097993053585195e0, 7.40974269950448939160e0, 2.97886665372100240670e0)
S = (1.0, 2.26052863220117276590e0, 9.39603524938001434673e0, 1.20489539808096656605e1,
     1.70814450747565897222e1, 9.60896809063285878198e0, 3.36907645100081516050e0)
T = (9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
     7.00332514112805075473e3, 5.55923013010394962768e4)
U = (1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3,
     2.26290000613890934246e4, 4.92673942608635921086e4)

ROOT_HALF, ROOT_TWO, ROOT_PI = math.sqrt(0.5), math.sqrt(2.0), math.sqrt(math.pi)


def erf_near(x):
    """|x| <= 1."""
    z = x * x
    return x * polynomial(z, T) / polynomial(z, U)


def scaled_tail(x):
    """e^(x^2) erfc(x) for x >= 1."""
    near = np.minimum(x, 8)
    far = np.maximum(x, 8)
    tail = polynomial(1 / far, R[::-1]) / polynomial(1 / far, S[::-1]) / far
    if not (x < 8).any():
        return tail
    return np.where(x < 8, polynomial(near, P) / polynomial(near, Q), tail)


def erf_values(x):
    size = np.abs(x)
    near = erf_near(np.where(size < 1, x, 0))
    size = np.minimum(np.maximum(size, 1), 6)  # erf(6) rounds to 1
    far = np.copysign(1 - np.exp(-size * size) * scaled_tail(size), x)
    return np.where(np.abs(x) < 1, near, np.where(x == x, far, x))


def erfc_values(x):
    return piecewise(x, (np.abs(x) < 1, lambda x: 1 - erf_near(x)),
                     (x >= 1, lambda x: exp_minus_square(x) * scaled_tail(x)),
                     (x <= -1, lambda x: 2 - exp_minus_square(x) * scaled_tail(-x)))


def exp_minus_square(x):
    """e^(-x^2), with the rounding error of the square put back."""
    high = np.round(np.clip(x, -40, 40) * 64) / 64
    low = np.clip(x, -40, 40) - high
    return np.exp(-high * high) * np.exp(-low * (2 * high + low))


def erfcx_values(x):
    return piecewise(x, (x >= 1, scaled_tail), (x < 1, lambda x: np.exp(x * x) * erfc_values(x)))


def log_erfc(x):
    """log erfc(x), also where erfc underflows."""
    return piecewise(x, (x >= 1, lambda x: np.log(scaled_tail(x)) - x * x),
                     (x < 1, lambda x: np.log(erfc_values(x))))


# Inverses: a start, then Newton steps on log erfc, which is concave --------------------------


def erfc_inverse_tail(z):
    """x with erfc(x) = z, for 0 < z <= 0.5."""
    target = np.log(z)
    bound = -target
    x = np.sqrt(np.maximum(bound - 0.5 * np.log(np.maximum(bound, 1)) - 0.5, 0.05))
    for _ in range(6):
        slope = -2 / (ROOT_PI * erfcx_values(x))
        x = x - (log_erfc(x) - target) / slope
    return x


def erfc_inverse_centre(y):
    """x with erf(x) = y, for |y| <= 0.5: Winitzki's start, then Halley's steps."""
    w = np.log1p(-y * y)
    a = 4.33 + w / 2
    x = np.copysign(np.sqrt(np.sqrt(a * a - 6.8 * w) - a), y)
    for _ in range(3):
        error = (erf_values(x) - y) * (ROOT_PI / 2) * np.exp(x * x)
        x = x - error / (1 + x * error)
    return x


def erfinv_values(y):
    size = np.abs(y)
    return piecewise(
        y, (size <= 0.5, erfc_inverse_centre), (size == 1, lambda y: np.copysign(np.inf, y)),
        ((size > 0.5) & (size < 1),
         lambda y: np.copysign(erfc_inverse_tail(1 - np.abs(y)), y)))


def ndtri_values(p):
    return piecewise(
        p, ((p > 0) & (p < 0.25), lambda p: -ROOT_TWO * erfc_inverse_tail(2 * p)),
        ((p >= 0.25) & (p <= 0.75), lambda p: ROOT_TWO * erfc_inverse_centre(2 * p - 1)),
        ((p > 0.75) & (p < 1), lambda p: ROOT_TWO * erfc_inverse_tail(2 * (1 - p))),
        (p == 0, lambda p: np.full_like(p, -np.inf)), (p == 1, lambda p: np.full_like(p, np.inf)))


def ndtr_values(x):
    return erfc_values(-x * ROOT_HALF) / 2


def log_ndtr_values(x):
    return piecewise(x, (x < -1, lambda x: log_erfc(-x * ROOT_HALF) - math.log(2)),
                     (x >= -1, lambda x: np.log1p(-erfc_values(x * ROOT_HALF) / 2)))


# Primitives ----------------------------------------------------------------------------------

erf = special("erf", erf_values, vjp=dict(
    x=lambda ct, x: ct * (2 / ROOT_PI) * (-x * x).exp()))
erfc = special("erfc", erfc_values, vjp=dict(
    x=lambda ct, x: ct * (-2 / ROOT_PI) * (-x * x).exp()))
erfcx = special("erfcx", erfcx_values, vjp=dict(
    x=lambda ct, x, out: ct * (2 * x * out - 2 / ROOT_PI)))
erfinv = special("erfinv", erfinv_values, low=-0.9, high=0.9, vjp=dict(
    x=lambda ct, out: ct * (ROOT_PI / 2) * (out * out).exp()))
ndtr = special("ndtr", ndtr_values, vjp=dict(
    x=lambda ct, x: ct * (1 / math.sqrt(2 * math.pi)) * (-0.5 * x * x).exp()))
ndtri = special("ndtri", ndtri_values, low=0.1, high=0.9, vjp=dict(
    x=lambda ct, out: ct * math.sqrt(2 * math.pi) * (0.5 * out * out).exp()))
log_ndtr = special("log_ndtr", log_ndtr_values, vjp=dict(
    x=lambda ct, x: ct / erfcx(x * -ROOT_HALF) * math.sqrt(2 / math.pi)))
