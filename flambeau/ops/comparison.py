"""Comparisons, logic and tests of values: results are bool and have no derivative."""

from __future__ import annotations

from math import inf

import numpy as np

from flambeau.core.dtype import COMPLEX, FLOAT
from flambeau.loops.api import equal, not_equal
from flambeau.ops.elementwise import pointwise


def comparison(name: str, ufunc, refuses: tuple[int, ...] = (), **form):
    return pointwise(name, ufunc, rule="bool", refuses=refuses, **form)


def truth(x):
    return not_equal(x, 0)


ORDERED = (COMPLEX,)  # complex numbers have no order


eq, ne = comparison("eq", np.equal), comparison("ne", np.not_equal)
lt, le = comparison("lt", np.less, ORDERED), comparison("le", np.less_equal, ORDERED)
gt, ge = comparison("gt", np.greater, ORDERED), comparison("ge", np.greater_equal, ORDERED)
logical_and = comparison("logical_and", np.logical_and,
                         scalar=lambda x, y: truth(x) & truth(y))
logical_or = comparison("logical_or", np.logical_or,
                        scalar=lambda x, y: truth(x) | truth(y))
logical_xor = comparison("logical_xor", np.logical_xor,
                         scalar=lambda x, y: truth(x) ^ truth(y))
logical_not = comparison("logical_not", np.logical_not, scalar=lambda x: equal(x, 0))


def isnan_ref(x):
    return np.isnan(x) if x.dtype.kind in "fc" else np.zeros(x.shape, bool)


def isinf_ref(x):
    return np.isinf(x) if x.dtype.kind in "fc" else np.zeros(x.shape, bool)


def isfinite_ref(x):
    return np.isfinite(x) if x.dtype.kind in "fc" else np.ones(x.shape, bool)


def signbit_ref(x):
    return x < 0 if x.dtype.kind in "iub" else np.signbit(x)


isnan, isinf = comparison("isnan", isnan_ref), comparison("isinf", isinf_ref)
isfinite = comparison("isfinite", isfinite_ref)
signbit = comparison("signbit", signbit_ref, ORDERED)


def isposinf_ref(x):
    return np.isposinf(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)


def isneginf_ref(x):
    return np.isneginf(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)


def isreal_ref(x):
    return x.imag == 0 if x.dtype.kind == "c" else np.ones(x.shape, bool)


isposinf = comparison("isposinf", isposinf_ref, ORDERED, lowers=(FLOAT,),
                      scalar=lambda x: equal(x, inf))
isneginf = comparison("isneginf", isneginf_ref, ORDERED, lowers=(FLOAT,),
                      scalar=lambda x: equal(x, -inf))
isreal = comparison("isreal", isreal_ref)


def isclose_ref(x, y, rtol, atol, equal_nan):
    """|x - y| <= atol + rtol |y|; infinities only equal themselves."""
    same = x == y
    if equal_nan:
        same = same | ((x != x) & (y != y))
    if x.dtype.kind not in "fc":
        x, y = x.astype(np.float64), y.astype(np.float64)
    allowed = atol + np.abs(rtol * y)
    error = np.abs(x - y)
    return same | (np.isfinite(error) & (error <= allowed))


def isclose_samples(rng):
    for shape in [(), (3,), (0,)]:
        x = rng.normal(size=shape)
        yield (x, x + 1e-6), dict(rtol=1e-5, atol=1e-8, equal_nan=False)


isclose = pointwise("isclose", isclose_ref, rule="bool", names=("x", "y"),
                    samples=isclose_samples)
