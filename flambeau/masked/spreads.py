"""Means, variances and norms of selected elements."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.errors import ValueRangeError, complaint
from flambeau.masked.masks import all_dims, broadcast_mask, filled, floating_dtype
from flambeau.masked.reducing import masked
from flambeau.tensor.tensor import Tensor


def counts(op: str, input: Tensor, dims: tuple[int, ...], keepdim: bool, mask, dtype) -> Tensor:
    """How many elements are selected."""
    selected = broadcast_mask(op, input, mask)
    if selected is None:
        selected = input.new_ones((), dtype=dtypes.bool).expand(input.shape)
    found = selected.sum(dims, keepdim) if input.ndim else selected.sum()
    return found.to(dtype)


@masked
def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The mean of the selected elements; NaN if there are none."""
    op = "masked.mean"
    if (dtype or input.dtype).category < dtypes.FLOAT:
        raise ValueRangeError(complaint(op, "could not infer output dtype: it must be floating "
                                        "point or complex", dict(dtype=input.dtype)))
    kind, dims = dtype or input.dtype, all_dims(op, input, dim)
    total = filled(op, input.to(kind), mask, 0).sum(dims, keepdim=bool(keepdim))
    return total / counts(op, input, dims, bool(keepdim), mask, kind)


def squared_gaps(op: str, input, dim, unbiased, correction, keepdim, dtype, mask) -> Tensor:
    """The variance, computed from the mean of the selected."""
    kind = dtype or (input.dtype if input.dtype.category >= dtypes.FLOAT
                     else dtypes.default_dtype())
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    wide = kind.wide
    x, dims = input.to(wide), all_dims(op, input, dim)
    n = counts(op, input, dims, True, mask, wide.to_real())
    center = filled(op, x, mask, 0).sum(dims, keepdim=True) / n
    gaps = filled(op, x - center, mask, 0)
    squares = (gaps * gaps.conj()).real if gaps.is_complex() else gaps * gaps
    total = squares.sum(dims, keepdim=bool(keepdim))
    n = counts(op, input, dims, bool(keepdim), mask, wide.to_real())
    return (total / (n - correction).clamp(min=0)).to(kind)


@masked
def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The variance of the selected elements."""
    return squared_gaps("masked.var", input, dim, unbiased, correction, keepdim, dtype, mask)


@masked
def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The standard deviation of the selected elements."""
    return squared_gaps("masked.std", input, dim, unbiased, correction, keepdim, dtype,
                        mask).sqrt()


@masked
def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The vector norm of the selected elements."""
    op = "masked.norm"
    x = input.to(floating_dtype(op, input, dtype))
    x = filled(op, x, mask, math.inf if ord < 0 else 0)
    return x.norm(ord, all_dims(op, input, dim), bool(keepdim))
