"""Sums, products, extrema and scans of selected elements."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.errors import UnsupportedError, ValueRangeError, complaint
from flambeau.masked.masks import (
    all_dims,
    broadcast_mask,
    filled,
    highest,
    lowest,
    summed_dtype,
)
from flambeau.tensor.choosing import where
from flambeau.tensor.public import FUNCTIONS, public


def masked(f):
    return public(f, module="masked", out=False)


@masked
def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The sum of the selected elements."""
    kind = summed_dtype(input, dtype)
    x = filled("masked.sum", input.to(kind), mask, 0)
    return x.sum(all_dims("masked.sum", input, dim), bool(keepdim)) if input.ndim else x


@masked
def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The product of the selected elements."""
    kind = summed_dtype(input, dtype)
    x = filled("masked.prod", input.to(kind), mask, 1)
    for d in reversed(all_dims("masked.prod", input, dim)):
        x = x.prod(d, keepdim=bool(keepdim)) if x.ndim else x
    return x


@masked
def cumsum(input, dim, *, dtype=None, mask=None):
    """Sums so far of the selected elements."""
    kind = summed_dtype(input, dtype)
    return filled("masked.cumsum", input.to(kind), mask, 0).cumsum(dim)


@masked
def cumprod(input, dim, *, dtype=None, mask=None):
    """Products so far of the selected elements."""
    kind = summed_dtype(input, dtype)
    return filled("masked.cumprod", input.to(kind), mask, 1).cumprod(dim)


@masked
def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The largest of the selected elements."""
    x = input.to(dtype or input.dtype)
    x = filled("masked.amax", x, mask, lowest(x.dtype))
    return x.amax(all_dims("masked.amax", input, dim), bool(keepdim)) if input.ndim else x


@masked
def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The smallest of the selected elements."""
    x = input.to(dtype or input.dtype)
    x = filled("masked.amin", x, mask, highest(x.dtype))
    return x.amin(all_dims("masked.amin", input, dim), bool(keepdim)) if input.ndim else x


@masked
def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Where the largest selected element is; like PyTorch's in the dtype of the input."""
    x = filled("masked.argmax", input, mask, lowest(input.dtype))
    return x.argmax(dim, bool(keepdim)).to(dtype or input.dtype)


@masked
def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Where the smallest selected element is; like PyTorch's in the dtype of the input."""
    x = filled("masked.argmin", input, mask, highest(input.dtype))
    return x.argmin(dim, bool(keepdim)).to(dtype or input.dtype)


@masked
def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The lower median of the selected elements along `dim`."""
    x = input.to(dtype or input.dtype)
    if x.dtype.category < dtypes.FLOAT:
        raise UnsupportedError(complaint("masked.median", "the input must be floating point",
                                         dict(dtype=x.dtype)))
    selected = broadcast_mask("masked.median", x, mask)
    if selected is None:
        return x.median(dim, bool(keepdim)).values
    if bool(x.isnan().any()):
        raise ValueRangeError(complaint("masked.median", "expected no NaNs in the input"))
    y = where(selected, x, x.new_full((), math.nan))
    return y.nanmedian(dim, bool(keepdim)).values


@masked
def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The logarithm of the sum of exponentials of the selected elements."""
    kind = dtype or input.dtype
    x = input.to(kind if kind.category >= dtypes.FLOAT else dtypes.default_dtype())
    x = filled("masked.logsumexp", x, mask, -math.inf)
    return x.logsumexp(all_dims("masked.logsumexp", input, dim), bool(keepdim)).to(kind)


@masked
def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)) of what the masks select."""
    kind = dtype or input.dtype
    x = filled("masked.logaddexp", input.to(kind), input_mask, -math.inf)
    y = filled("masked.logaddexp", other.to(kind), other_mask, -math.inf)
    return FUNCTIONS[""]["logaddexp"](x, y)
