"""Logarithms and exponentials of more than one operand, and of probabilities."""

from __future__ import annotations

import math

import numpy as np

from flambeau.core.dtype import BOOL, COMPLEX, INTEGER
from flambeau.loops.api import equal, maximum, unary
from flambeau.loops.api import where as select
from flambeau.ops.elementwise import pointwise
from flambeau.ops.pointwise import conj, log_of_number

# log(e^x + e^y) ------------------------------------------------------------------------------


def logaddexp_ref(x, y):
    if x.dtype.kind != "c":
        return np.logaddexp(x, y)
    top = np.where(x.real >= y.real, x, y)
    low = np.where(x.real >= y.real, y, x)
    return np.where(np.isneginf(top.real) & np.isneginf(low.real), top,
                    top + np.log1p(np.exp(low - top)))


def share(ct, x, y, out, scale: float = 1.0):
    """ct e^(x - out), as sigmoid(x - y) so that infinite operands have a derivative; 0 where both
    are -inf."""
    nothing = (out.real if out.dtype.is_complex else out) == -math.inf
    apart = x - y if scale == 1.0 else (x - y) * scale
    return ct * conj(apart.sigmoid().masked_fill(nothing, 0))


def logaddexp_form(x, y):
    """The larger plus log(1 + e^-difference); equal operands may be infinite."""
    apart = unary("log1p", unary("exp", -unary("abs", x - y)))
    return select(equal(x, y), x + math.log(2), maximum(x, y) + apart)


logaddexp = pointwise("logaddexp", logaddexp_ref, scalar=logaddexp_form, refuses=(BOOL, INTEGER),
                      vjp=dict(x=lambda ct, x, y, out: share(ct, x, y, out),
                               y=lambda ct, x, y, out: share(ct, y, x, out)))


def logaddexp2_ref(x, y):
    return np.logaddexp2(x, y)


logaddexp2 = pointwise("logaddexp2", logaddexp2_ref, refuses=(BOOL, INTEGER, COMPLEX), vjp=dict(
    x=lambda ct, x, y, out: share(ct, x, y, out, math.log(2)),
    y=lambda ct, x, y, out: share(ct, y, x, out, math.log(2))))

# x log y -------------------------------------------------------------------------------------


def xlogy_ref(x, y):
    """x log y, 0 where x is 0 (unless y is NaN)."""
    return np.where((x == 0) & (y == y), 0, x * np.log(y)).astype(np.result_type(x, y))


def xlog1py_ref(x, y):
    """x log(1 + y), 0 where x is 0 (unless y is NaN)."""
    return np.where((x == 0) & (y == y), 0, x * np.log1p(y)).astype(np.result_type(x, y))


def log_at(ct, x, y):
    """ct log y, and 0 where x is 0 and y has no logarithm."""
    if not hasattr(y, "dtype"):
        log = log_of_number(y)
        return ct * log if y > 0 else (ct * log).masked_fill(x == 0, 0)
    return ct * y.log().masked_fill((y <= 0) & (x == 0), 0)


def xlogy_form(x, y):
    return select(equal(x, 0) & equal(y, y), 0, x * unary("log", y))


xlogy = pointwise("xlogy", xlogy_ref, scalar=xlogy_form, rule="float", refuses=(COMPLEX,),
                  low=0.2, vjp=dict(
    x=lambda ct, x, y: log_at(ct, x, y),
    y=lambda ct, x, y: ct * x / y))
xlog1py = pointwise("xlog1py", xlog1py_ref, rule="float", refuses=(COMPLEX,), low=0.2, vjp=dict(
    x=lambda ct, x, y: log_at(ct, x, y + 1),
    y=lambda ct, x, y: ct * x / (y + 1)))


def entr_ref(x):
    """-x log x; 0 at 0 and -inf below."""
    positive = x > 0
    value = -x * np.log(np.where(positive, x, 1))
    return np.where(positive | (x != x), value, np.where(x == 0, 0, -np.inf)).astype(x.dtype)


entr = pointwise("entr", entr_ref, rule="float", refuses=(COMPLEX,), low=0.1,
                 vjp=dict(x=lambda ct, x: ct * (-x.log() - 1)))

# logit ---------------------------------------------------------------------------------------


def logit_ref(x, eps):
    """log(x / (1 - x)), with x first limited to [eps, 1 - eps]."""
    if eps is not None:
        x = np.clip(x, x.dtype.type(eps), x.dtype.type(1 - eps))
    return np.log(x / (1 - x))


def logit_vjp(ct, x, eps):
    grad = ct / (x * (1 - x))
    if eps is None:
        return grad.masked_fill((x < 0) | (x > 1), math.nan)
    return grad.masked_fill((x < eps) | (x > 1 - eps), 0)


def logit_samples(rng):
    for shape in [(), (3,), (0,)]:
        for eps in (None, 0.3):
            yield (rng.uniform(0.31, 0.69, shape),), dict(eps=eps)


logit = pointwise("logit", logit_ref, rule="float", refuses=(COMPLEX,), names=("x",),
                  samples=logit_samples, vjp=dict(x=logit_vjp))

# Others --------------------------------------------------------------------------------------

hypot = pointwise("hypot", np.hypot, refuses=(BOOL, INTEGER, COMPLEX), low=0.2, vjp=dict(
    x=lambda ct, x, out: ct * (x / out), y=lambda ct, y, out: ct * (y / out)))


def sinc_ref(x):
    """sin(pi x) / (pi x), 1 at 0."""
    scaled = x * np.pi
    return np.where(x == 0, 1, np.sin(scaled) / np.where(x == 0, 1, scaled)).astype(x.dtype)


def sinc_vjp(ct, x):
    scaled = x * math.pi
    slope = (scaled * scaled.cos() - scaled.sin()) / (scaled * x)
    return ct * conj(slope.masked_fill(x == 0, 0))


def sinc_form(x):
    scaled = x * math.pi
    return select(equal(x, 0), 1, unary("sin", scaled) / scaled)


sinc = pointwise("sinc", sinc_ref, scalar=sinc_form, rule="float", low=0.1, vjp=dict(x=sinc_vjp))
