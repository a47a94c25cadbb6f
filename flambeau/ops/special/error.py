"""The error function, the normal distribution, and their inverses, on Cody's rational functions."""

from __future__ import annotations

import math

import numpy as np

from flambeau.core.dtype import COMPLEX
from flambeau.ops import error_function
from flambeau.ops.elementwise import pointwise
from flambeau.ops.error_function import SMALL, erf64, erfc64, scaled_tail
from flambeau.ops.special.real import piecewise, special

ROOT_HALF, ROOT_TWO, ROOT_PI = math.sqrt(0.5), math.sqrt(2.0), math.sqrt(math.pi)


def erfcx_values(x):
    return piecewise(x, (x >= SMALL, scaled_tail), (x < SMALL, error_function.erfcx))


def log_erfc(x):
    """log erfc(x), also where erfc underflows."""
    return piecewise(x, (x >= 1, lambda x: np.log(scaled_tail(x)) - x * x),
                     (x < 1, lambda x: np.log(erfc64(x))))


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
        error = (erf64(x) - y) * (ROOT_PI / 2) * np.exp(x * x)
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
    return erfc64(-x * ROOT_HALF) / 2


def log_ndtr_values(x):
    return piecewise(x, (x < -1, lambda x: log_erfc(-x * ROOT_HALF) - math.log(2)),
                     (x >= -1, lambda x: np.log1p(-erfc64(x * ROOT_HALF) / 2)))


# Primitives ----------------------------------------------------------------------------------

erf = pointwise("erf", error_function.erf, rule="float", refuses=(COMPLEX,), vjp=dict(
    x=lambda ct, x: ct * (2 / ROOT_PI) * (-x * x).exp()))
erfc = pointwise("erfc", error_function.erfc, rule="float", refuses=(COMPLEX,), vjp=dict(
    x=lambda ct, x: ct * (-2 / ROOT_PI) * (-x * x).exp()))
erfcx = special("erfcx", erfcx_values, vjp=dict(
    x=lambda ct, x, out: ct * (2 * x * out - 2 / ROOT_PI)))
erfinv = special("erfinv", erfinv_values, lowers=(), low=-0.9, high=0.9, vjp=dict(
    x=lambda ct, out: ct * (ROOT_PI / 2) * (out * out).exp()))
ndtr = special("ndtr", ndtr_values, vjp=dict(
    x=lambda ct, x: ct * (1 / math.sqrt(2 * math.pi)) * (-0.5 * x * x).exp()))
ndtri = special("ndtri", ndtri_values, low=0.1, high=0.9, vjp=dict(
    x=lambda ct, out: ct * math.sqrt(2 * math.pi) * (0.5 * out * out).exp()))
log_ndtr = special("log_ndtr", log_ndtr_values, vjp=dict(
    x=lambda ct, x: ct / erfcx(x * -ROOT_HALF) * math.sqrt(2 / math.pi)))
