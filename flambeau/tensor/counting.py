"""Histograms, membership, sorted search and distinct values under PyTorch's names.

Where the size of the result depends on the data, the work is done on the spot.
"""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import FLOAT, INTEGER
from flambeau.core.errors import ArgumentError, OpError, UnsupportedError, complaint
from flambeau.ops import counting
from flambeau.ops.dims import normal_dim
from flambeau.tensor import return_types
from flambeau.tensor.forms import tensor_argument
from flambeau.tensor.interop import tensor
from flambeau.tensor.public import FUNCTIONS, public
from flambeau.tensor.tensor import Tensor, from_array

# Sorted search -------------------------------------------------------------------------------


def place_right(right: bool, side: str | None) -> bool:
    if side is not None and side not in ("left", "right"):
        raise OpError(complaint("searchsorted", "side can only be 'left' or 'right'",
                                dict(side=side)))
    if side == "left" and right:
        raise OpError(complaint("searchsorted", "side and right can't be set to opposites",
                                dict(side=side, right=right)))
    return right or side == "right"


@public(method=False)
def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None):
    """Where each value would go in the sorted last dimension of `sorted_sequence`."""
    sequence = tensor_argument("searchsorted", sorted_sequence, "sorted_sequence")
    check_search(sequence, input, sorter)
    return counting.searchsorted(sequence, input, sorter, right=place_right(right, side),
                                 dtype=dtypes.int32 if out_int32 else dtypes.int64)


def check_search(sequence: Tensor, values, sorter) -> None:
    if not sequence.ndim:
        raise OpError(complaint("searchsorted", "boundaries tensor should have positive dimension"))
    if not isinstance(values, Tensor):
        if sequence.ndim > 1:
            raise OpError(complaint("searchsorted", "a number needs a 1-dimensional sequence",
                                    dict(shape=list(sequence.shape))))
    else:
        if sequence.ndim > 1 and sequence.shape[:-1] != values.shape[:-1]:
            raise OpError(complaint(
                "searchsorted", "boundaries tensor should be 1 dimension or the first N-1 "
                "dimensions of boundaries tensor and input value tensor must match",
                dict(boundaries=list(sequence.shape), input=list(values.shape))))
        if values.dtype is not sequence.dtype:
            raise OpError(complaint("searchsorted", "boundary and input value tensors should have "
                                    "the same dtype", dict(boundaries=sequence.dtype,
                                                           input=values.dtype)))
    if sorter is not None and (sorter.shape != sequence.shape or
                               sorter.dtype is not dtypes.int64):
        raise OpError(complaint("searchsorted", "sorter must be int64 and of the sequence's shape",
                                dict(sorter=list(sorter.shape), dtype=sorter.dtype)))


@public(method=False)
def bucketize(input, boundaries, *, out_int32=False, right=False):
    """Which interval of the 1-dimensional `boundaries` each value lies in."""
    if boundaries.ndim != 1:
        raise OpError(complaint("bucketize", "boundaries tensor must be 1 dimension",
                                dict(shape=list(boundaries.shape))))
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@public(method=False)
def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Is each of `elements` among `test_elements`?"""
    if not isinstance(elements, Tensor):
        if not isinstance(test_elements, Tensor):
            raise ArgumentError(complaint("isin", "one of the arguments must be a Tensor"))
        elements = tensor(elements, dtype=test_elements.dtype)
    return counting.isin(elements, test_elements, invert=bool(invert))


# Histograms ----------------------------------------------------------------------------------


def check_float(op: str, x: Tensor) -> None:
    if x.dtype.category != FLOAT:
        raise UnsupportedError(complaint(op, "not implemented for this dtype",
                                         dict(dtype=x.dtype), "Convert with .float()."))


@public
def histc(input, bins=100, min=0, max=0):
    """Counts in equal bins of [min, max]; equal limits mean the range of the data."""
    check_float("histc", input)
    if bins <= 0:
        raise OpError(complaint("histc", "bins must be > 0", dict(bins=bins)))
    if max < min:
        raise OpError(complaint("histc", "max must be larger than min", dict(min=min, max=max)))
    return counting.histc(input, bins=int(bins), low=float(min), high=float(max))


@public
def bincount(input, weights=None, minlength=0):
    """How often each non-negative integer occurs, or the sum of its weights."""
    if input.ndim != 1 or input.dtype.category != INTEGER:
        raise OpError(complaint("bincount", "bincount only supports 1-d non-negative integral "
                                "inputs", dict(shape=list(input.shape), dtype=input.dtype)))
    values = input._array
    if values.size and values.min() < 0:
        raise OpError(complaint("bincount", "the values must not be negative",
                                dict(min=int(values.min()))))
    if minlength < 0:
        raise OpError(complaint("bincount", "minlength should be >= 0", dict(minlength=minlength)))
    if weights is None:
        return from_array(np.bincount(values, minlength=minlength).astype(np.int64))
    if weights.shape != input.shape:
        raise OpError(complaint("bincount", "weights must have the shape of input",
                                dict(weights=list(weights.shape), input=list(input.shape))))
    counts = np.bincount(values, weights.detach()._array, minlength)
    return from_array(counts if weights.dtype is not dtypes.float32 else counts.astype(np.float32))


def edges_of(x: Tensor, bins, range) -> Tensor:
    """Bin edges from a count (over the data's or a given range) or from a tensor."""
    if isinstance(bins, Tensor):
        if bins.ndim != 1 or not bins.numel():
            raise OpError(complaint("histogram", "bins tensor should have one dimension",
                                    dict(shape=list(bins.shape))))
        if bins.dtype is not x.dtype:
            raise OpError(complaint("histogram", "bins and input must have one dtype",
                                    dict(bins=bins.dtype, input=x.dtype)))
        return bins
    if bins <= 0:
        raise OpError(complaint("histogram", "bins must be > 0", dict(bins=bins)))
    if range is None:
        low, high = (float(x.min()), float(x.max())) if x.numel() else (0.0, 1.0)
        if low == high:
            low, high = low - 0.5, high + 0.5
    else:
        low, high = map(float, range)
        if not low <= high:
            raise OpError(complaint("histogram", "max must be larger than min", dict(range=range)))
        if low == high:
            low, high = low - 0.5, high + 0.5
    return FUNCTIONS[""]["linspace"](low, high, int(bins) + 1, dtype=x.dtype)


@public
def histogram(input, bins, *, range=None, weight=None, density=False):
    """(counts, bin edges)."""
    check_float("histogram", input)
    edges = edges_of(input.detach(), bins, range)
    hist = counting.histogram(input.detach(), edges,
                              None if weight is None else weight.detach(), density=bool(density))
    return return_types.histogram(hist, edges)


@public(out=False)
def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """(counts, list of bin edges) of points in the last dimension of `input`."""
    check_float("histogramdd", input)
    points = input.detach().reshape(-1, input.shape[-1])
    count = points.shape[1]
    bins = [bins] * count if isinstance(bins, int) else list(bins)
    limits = [None] * count if range is None else [tuple(range[2 * d:2 * d + 2])
                                                   for d in builtin_range(count)]
    if len(bins) != count:
        raise OpError(complaint("histogramdd", "bins needs one entry per dimension",
                                dict(bins=len(bins), dimensions=count)))
    edges = [edges_of(points[:, d].contiguous(), b, limit)
             for d, (b, limit) in enumerate(zip(bins, limits))]
    weights = None if weight is None else weight.detach()._array.reshape(-1)
    hist = counting.histogram_of_points(points._array, [e._array for e in edges], weights,
                                        bool(density))
    return return_types.histogramdd(from_array(hist.astype(points._array.dtype)), edges)


builtin_range = range

# Distinct values -----------------------------------------------------------------------------


def found(values: np.ndarray, inverse, counts) -> Tensor | tuple:
    """The values alone, or with what was asked for besides."""
    wanted = [from_array(np.asarray(a, order="C")) for a in (values, inverse, counts)
              if a is not None]
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


@public(out=False)
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct values in ascending order, or the distinct slices along `dim`."""
    x = tensor_argument("unique", input).detach()._array
    axis = None if dim is None else normal_dim("unique", dim, x.ndim)
    narrow = input.dtype.is_narrow_float
    values, inverse, counts = np.unique(
        x.astype(np.float32) if narrow else x, return_inverse=True, return_counts=True, axis=axis,
        equal_nan=False)
    if narrow:
        values = values.astype(x.dtype)
    if axis is None:
        inverse = inverse.reshape(x.shape)
    return found(values, inverse if return_inverse else None, counts if return_counts else None)


@public(out=False)
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """Runs of equal values (or of equal slices along `dim`) made one."""
    x = tensor_argument("unique_consecutive", input).detach()._array
    lines = x.reshape(-1) if dim is None else np.moveaxis(
        x, normal_dim("unique_consecutive", dim, x.ndim), 0)
    rows = lines.reshape(len(lines), -1)
    starts = np.ones(len(rows), bool)
    starts[1:] = (rows[1:] != rows[:-1]).any(1)
    first = np.flatnonzero(starts)
    values = lines[first] if dim is None else np.moveaxis(lines[first], 0, dim)
    inverse = np.cumsum(starts) - 1
    counts = np.diff(np.append(first, len(rows)))
    return found(values, (inverse.reshape(x.shape) if dim is None else inverse)
                 if return_inverse else None, counts if return_counts else None)
