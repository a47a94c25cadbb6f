"""erf and erfc on ndarrays: W. J. Cody, "Rational Chebyshev approximations for the error
function", Math. Comp. 23 (1969). Within a few ulp in float64."""

from __future__ import annotations

import numpy as np

# erf(x) / x for |x| <= 0.46875, in x^2
A = (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2,
     3.77485237685302021e2, 3.20937758913846947e3)
B = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3,
     2.84423683343917062e3)
# exp(x^2) erfc(x) for 0.46875 <= x <= 4, in x
C = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0,
     6.61191906371416295e1, 2.98635138197400131e2, 8.81952221241769090e2,
     1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3)
D = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
     1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3,
     3.43936767414372164e3, 1.23033935480374942e3)
# (1 / sqrt(pi) - x exp(x^2) erfc(x)) x^2 for x > 4, in 1 / x^2
P = (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
     1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4)
Q = (1.0, 2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1,
     6.05183413124413191e-2, 2.33520497626869185e-3)
ONE_OVER_SQRT_PI = 5.6418958354775628695e-1
SMALL = 0.46875


def polynomial(coefficients: tuple, x: np.ndarray) -> np.ndarray:
    """Horner's rule, highest power first."""
    y = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        y *= x
        y += c
    return y


def ratio(top: tuple, bottom: tuple, x: np.ndarray) -> np.ndarray:
    return polynomial(top, x) / polynomial(bottom, x)


def scaled_tail(y: np.ndarray) -> np.ndarray:
    """exp(y^2) erfc(y) for y >= 0.46875."""
    middle = ratio(C, D, np.minimum(y, 4.0))
    z = 1 / np.square(np.maximum(y, 4.0))
    far = (ONE_OVER_SQRT_PI - z * ratio(P, Q, z)) / np.maximum(y, 4.0)
    return np.where(y <= 4.0, middle, far)


def squared_exponential(y: np.ndarray) -> np.ndarray:
    """exp(-y^2) without losing the low bits of y^2: y is split into sixteenths and a rest."""
    head = np.trunc(y * 16) / 16
    return np.exp(-head * head) * np.exp(-(y - head) * (y + head))


def erfcx(x: np.ndarray) -> np.ndarray:
    """exp(x^2) erfc(x)."""
    x = np.asarray(x, np.float64)
    y = np.abs(x)
    near = y <= SMALL
    inner = np.exp(np.square(np.where(near, x, 0))) * (1 - _near(np.where(near, x, 0)))
    tail = scaled_tail(np.maximum(y, SMALL))
    outer = np.where(x < 0, 2 * np.exp(x * x) - tail, tail)
    return np.where(near, inner, outer)


def _near(x: np.ndarray) -> np.ndarray:
    return x * ratio(A, B, x * x)


def erfc64(x: np.ndarray) -> np.ndarray:
    y = np.abs(x)
    near = y <= SMALL
    tail = scaled_tail(np.maximum(y, SMALL)) * squared_exponential(np.minimum(y, 27.5))
    tail = np.where(y > 27.3, 0.0, tail)
    far = np.where(x < 0, 2 - tail, tail)
    return np.where(near, 1 - _near(np.where(near, x, 0)), far)


def erf64(x: np.ndarray) -> np.ndarray:
    y = np.abs(x)
    near = y <= SMALL
    cut = np.clip(y, SMALL, 6.0)
    far = 1 - scaled_tail(cut) * squared_exponential(cut)
    return np.where(near, _near(np.where(near, x, 0)), np.copysign(np.where(y != y, y, far), x))


def erf(x: np.ndarray) -> np.ndarray:
    """The error function, in the dtype of `x`."""
    x = np.asarray(x)
    return erf32(x) if x.dtype == np.float32 else erf64(x.astype(np.float64))


def erfc(x: np.ndarray) -> np.ndarray:
    """1 - erf(x) without cancellation, in the dtype of `x`."""
    x = np.asarray(x)
    y = erfc64(x.astype(np.float64))
    return np.where(x != x, x, y).astype(x.dtype if x.dtype.kind == "f" else np.float64)


def erf32(x: np.ndarray) -> np.ndarray:
    """Computed in float64, in blocks that keep the temporaries in cache."""
    flat = np.ascontiguousarray(x).reshape(-1)
    out = np.empty_like(flat)
    for start in range(0, flat.size, 8192):
        out[start:start + 8192] = erf64(flat[start:start + 8192].astype(np.float64))
    return out.reshape(x.shape)
