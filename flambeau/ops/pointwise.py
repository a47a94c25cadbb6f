"""Arithmetic: one line per primitive."""

from __future__ import annotations

import numpy as np

from flambeau.ops.elementwise import pointwise

# Gradients name the operands they keep; see flambeau.ops.registry.

add = pointwise("add", np.add, vjp=dict(x=lambda ct: ct, y=lambda ct: ct))
sub = pointwise("sub", np.subtract, vjp=dict(x=lambda ct: ct, y=lambda ct: -ct))
mul = pointwise("mul", np.multiply,
                vjp=dict(x=lambda ct, y: ct * conj(y), y=lambda ct, x: ct * conj(x)))
div = pointwise("div", np.true_divide, rule="float", low=0.5,
                vjp=dict(x=lambda ct, y: ct / conj(y),
                         y=lambda ct, x, y: -ct * conj(x / (y * y))))
neg = pointwise("neg", np.negative, vjp=dict(x=lambda ct: -ct))
exp = pointwise("exp", np.exp, rule="float", vjp=dict(x=lambda ct, out: ct * conj(out)))
log = pointwise("log", np.log, rule="float", low=0.1, vjp=dict(x=lambda ct, x: ct / conj(x)))


def conj(x):
    """The complex conjugate; `x` itself when it is real or a Python number."""
    return x.conj() if getattr(x, "dtype", None) is not None and x.dtype.is_complex else x
