"""A mask over an input: True selects, what is not selected becomes the neutral element."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.errors import DtypeError, ValueRangeError, complaint
from flambeau.ops.dims import normal_dims
from flambeau.tensor.choosing import where
from flambeau.tensor.forms import tensor_argument
from flambeau.tensor.tensor import Tensor


def broadcast_mask(op: str, input: Tensor, mask: Tensor | None) -> Tensor | None:
    """The mask in the shape of the input; None stays None."""
    if mask is None:
        return None
    tensor_argument(op, mask, "mask")
    if mask.ndim > input.ndim:
        raise ValueRangeError(complaint(op, "mask dimensionality cannot be greater than that of "
                                        "input", dict(mask=mask.ndim, input=input.ndim)))
    return mask.to(dtypes.bool).expand(input.shape)


def filled(op: str, input: Tensor, mask: Tensor | None, value) -> Tensor:
    """`input` with `value` where the mask does not select."""
    mask = broadcast_mask(op, input, mask)
    if mask is None:
        return input
    return where(mask, input, input.new_full((), value).detach())


def lowest(d: dtypes.dtype):
    """The neutral element of a maximum."""
    if d is dtypes.bool:
        return False
    return -math.inf if d.category >= dtypes.FLOAT else dtypes.iinfo(d).min


def highest(d: dtypes.dtype):
    """The neutral element of a minimum."""
    if d is dtypes.bool:
        return True
    return math.inf if d.category >= dtypes.FLOAT else dtypes.iinfo(d).max


def all_dims(op: str, input: Tensor, dim) -> tuple[int, ...]:
    return normal_dims(op, dim, input.ndim)


def summed_dtype(input: Tensor, dtype):
    """Sums of integers and bools are int64."""
    if dtype is not None:
        return dtype
    return dtypes.int64 if input.dtype.category <= dtypes.INTEGER else input.dtype


def floating_dtype(op: str, input: Tensor, dtype):
    found = dtype or input.dtype
    if found.category < dtypes.FLOAT:
        raise DtypeError(complaint(op, "the dtype must be floating point or complex",
                                   dict(dtype=found), "Pass dtype=torch.float32."))
    return found
