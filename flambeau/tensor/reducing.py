"""Reductions under PyTorch's names."""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.ops import reductions
from flambeau.ops.dims import normal_dims
from flambeau.tensor.public import public


@public
def sum(input, dim=None, keepdim=False, *, dtype=None):
    """Sum over `dim` (all by default); integers and bools add up in int64."""
    kind = dtype or (dtypes.int64 if input.dtype.category <= dtypes.INTEGER else input.dtype)
    return reductions.sum(input, dim=normal_dims("sum", dim, input.ndim), keepdim=keepdim,
                          dtype=kind)
