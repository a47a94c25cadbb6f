"""y = x W^T + b as one op, so that the bias needs no pass of its own."""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import DtypeError, ShapeError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.ops.elementwise import common_device
from flambeau.ops.pointwise import conj
from flambeau.ops.products import matmul
from flambeau.ops.reductions import sum
from flambeau.ops.registry import primitive
from flambeau.ops.views import permute


def linear_meta(x: Spec, w: Spec, b: Spec | None) -> Spec:
    """(*, k), (m, k), (m) -> (*, m)."""
    if x.ndim < 1 or x.shape[-1] != w.shape[1]:
        raise ShapeError(complaint(
            "linear", "mat1 and mat2 shapes cannot be multiplied: the last size of the input must "
            "be the weight's second", dict(input=list(x.shape), weight=list(w.shape))))
    if x.dtype is not w.dtype or (b is not None and b.dtype is not x.dtype):
        raise DtypeError(complaint(
            "linear", "mat1 and mat2 must have the same dtype", dict(
                input=x.dtype, weight=w.dtype), "Convert the input with `.to(weight.dtype)`."))
    tensors = [x, w] if b is None else [x, w, b]
    return spec(x.dtype, (*x.shape[:-1], w.shape[0]), None, common_device("linear", tensors))


def linear_ref(x, w, b):
    rows = np.matmul(x.reshape(-1, x.shape[-1]), w.T) if x.size else np.zeros(
        (int(np.prod(x.shape[:-1])), w.shape[0]), np.result_type(x, w))
    if b is not None:
        rows += b
    return rows.reshape(*x.shape[:-1], w.shape[0])


def linear_vjp(ct, x, w, needs):
    """gx = ct conj(W); gW = ct^T conj(x); gb = sum of ct over rows."""
    lead = x.shape[:-1]
    if len(lead) == 1:
        return matrix_vjp(ct, x, w, needs)
    rows = ct.reshape(lead.numel(), ct.shape[-1])
    gx, gw, gb = matrix_vjp(rows, x.reshape(lead.numel(), x.shape[-1]), w, needs)
    return None if gx is None else gx.reshape(x.shape), gw, gb


def matrix_vjp(ct, x, w, needs):
    """The same for a matrix x; primitives only, as small nets wait for little else."""
    gx = matmul(ct, conj(w)) if needs[0] else None
    gw = matmul(permute(ct, dims=(1, 0)), conj(x)) if needs[1] else None
    gb = sum(ct, dim=(0,), keepdim=False, dtype=ct.dtype) if needs[2] else None
    return gx, gw, gb


def linear_samples(rng):
    for lead in [(), (3,), (2, 3), (0,)]:
        yield (rng.normal(size=(*lead, 4)), rng.normal(size=(2, 4)), rng.normal(size=2)), {}
        yield (rng.normal(size=(*lead, 4)), rng.normal(size=(2, 4)), None), {}


linear = primitive("linear", meta=linear_meta, ref=linear_ref, vjp=linear_vjp,
                   samples=linear_samples)
