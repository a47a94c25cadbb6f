"""Comparisons, logic and tests of values: results are bool and have no derivative."""

from __future__ import annotations

import numpy as np

from flambeau.ops.elementwise import pointwise


def comparison(name: str, ufunc):
    return pointwise(name, ufunc, rule="bool")


eq, ne = comparison("eq", np.equal), comparison("ne", np.not_equal)
lt, le = comparison("lt", np.less), comparison("le", np.less_equal)
gt, ge = comparison("gt", np.greater), comparison("ge", np.greater_equal)
logical_and = comparison("logical_and", np.logical_and)
logical_or = comparison("logical_or", np.logical_or)
logical_xor = comparison("logical_xor", np.logical_xor)
logical_not = comparison("logical_not", np.logical_not)


def isnan_ref(x):
    return np.isnan(x) if x.dtype.kind in "fc" else np.zeros(x.shape, bool)


def isinf_ref(x):
    return np.isinf(x) if x.dtype.kind in "fc" else np.zeros(x.shape, bool)


def isfinite_ref(x):
    return np.isfinite(x) if x.dtype.kind in "fc" else np.ones(x.shape, bool)


def signbit_ref(x):
    return x < 0 if x.dtype.kind in "iub" else np.signbit(x)


isnan, isinf = comparison("isnan", isnan_ref), comparison("isinf", isinf_ref)
isfinite, signbit = comparison("isfinite", isfinite_ref), comparison("signbit", signbit_ref)
