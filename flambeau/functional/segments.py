"""Reductions over consecutive segments of a dimension."""

from __future__ import annotations

import itertools
import math

from flambeau.core.errors import OpError, complaint
from flambeau.tensor.joining import stack
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor

EMPTY = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf, "mean": math.nan}


@public(method=False, out=False, aliases=("_segment_reduce",))
def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0,
                   unsafe=False, initial=None):
    """max, mean, min, sum or prod over segments of `axis`, given by lengths or by offsets.

    `initial` takes part in every segment; without it empty segments give the neutral element.
    """
    op = "segment_reduce"
    if reduce not in EMPTY:
        raise OpError(complaint(op, f"reduce must be one of {tuple(EMPTY)}", dict(reduce=reduce)))
    if (lengths is None) == (offsets is None):
        raise OpError(complaint(op, "either lengths or offsets must be given"))
    given = lengths if offsets is None else offsets
    if given.ndim != axis + 1:
        raise OpError(complaint(op, "lengths must have axis + 1 dimensions", dict(
            axis=axis, ndim=given.ndim)))
    bounds = borders(given.tolist(), offsets is not None)
    check_bounds(op, bounds, data.shape[axis], axis, unsafe)
    return reduced(data, bounds, axis, reduce, initial)


def borders(given: list, are_offsets: bool) -> list:
    """Nested lists of (start, end) from lengths or offsets."""
    if given and isinstance(given[0], list):
        return [borders(row, are_offsets) for row in given]
    if are_offsets:
        return list(itertools.pairwise(given))
    ends = [sum(given[:k + 1]) for k in range(len(given))]
    return [(e - n, e) for n, e in zip(given, ends)]


def check_bounds(op: str, bounds: list, size: int, axis: int, unsafe: bool) -> None:
    if unsafe:
        return
    if axis:
        for row in bounds:
            check_bounds(op, row, size, axis - 1, unsafe)
        return
    if any(a > b for a, b in bounds) or (bounds and bounds[-1][1] != size):
        raise OpError(complaint(op, "lengths must be non-negative and sum to the size of data "
                                "along axis", dict(size=size)))


def reduced(data: Tensor, bounds: list, axis: int, reduce: str, initial) -> Tensor:
    if axis:
        return stack([reduced(data[i], row, axis - 1, reduce, initial)
                      for i, row in enumerate(bounds)])
    if not bounds:
        return data[:0].clone()
    return stack([segment(data[a:b], reduce, initial) for a, b in bounds])


def segment(part: Tensor, reduce: str, initial) -> Tensor:
    if not len(part):
        value = EMPTY[reduce] if initial is None else initial
        return part.sum(0) + value
    if reduce in ("max", "min"):
        best = part.amax(0) if reduce == "max" else part.amin(0)
        if initial is None:
            return best
        return best.clamp(min=initial) if reduce == "max" else best.clamp(max=initial)
    if reduce == "prod":
        y = part.prod(0)
        return y if initial is None else y * initial
    y = part.sum(0)
    y = y if initial is None else y + initial
    return y / len(part) if reduce == "mean" else y


_segment_reduce = segment_reduce  # PyTorch has both names
