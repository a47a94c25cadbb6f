"""Folding dimensions: sums, products, extrema, logical."""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import dtype as DType
from flambeau.core.spec import Spec, spec
from flambeau.ops.registry import primitive


def reduced_shape(shape: tuple, dim: tuple[int, ...], keepdim: bool) -> list[int]:
    """`dim` is sorted and counted from the front."""
    if keepdim:
        return [1 if d in dim else n for d, n in enumerate(shape)]
    return [n for d, n in enumerate(shape) if d not in dim]


def spread(ct, shape: tuple, dim: tuple[int, ...], keepdim: bool):
    """A reduced cotangent, broadcast back over the reduced dimensions."""
    if not keepdim:
        ct = ct.reshape(tuple(reduced_shape(shape, dim, True)))
    return ct.expand(tuple(shape))


# sum -----------------------------------------------------------------------------------------


def sum_meta(x: Spec, *, dim, keepdim, dtype: DType) -> Spec:
    return spec(dtype, reduced_shape(x.shape, dim, keepdim), None, x.device)


def sum_ref(x, *, dim, keepdim, dtype: DType):
    """Pairwise within NumPy; narrow floats arrive as float32."""
    wide = x.dtype if dtype.is_narrow_float and x.dtype.kind == "f" else dtype.numpy
    return np.sum(x, axis=dim, keepdims=keepdim, dtype=wide)


def sum_vjp(ct, _x, dim, keepdim):
    return spread(ct, _x.shape, dim, keepdim)


def reduction_samples(rng):
    for shape, dim in [((4,), (0,)), ((2, 3), (1,)), ((2, 3, 4), (0, 2)), ((2, 0), (1,)), ((), ())]:
        for keepdim in (False, True):
            yield (rng.normal(size=shape),), dict(dim=dim, keepdim=keepdim)


def sum_samples(rng):
    for operands, params in reduction_samples(rng):
        yield operands, dict(params, dtype=dtypes.float64)


sum = primitive("sum", meta=sum_meta, ref=sum_ref, vjp=dict(x=sum_vjp), samples=sum_samples)
