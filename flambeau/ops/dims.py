"""Dimension and shape arguments, checked and normalised once for all ops."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flambeau.core.errors import ArgumentError, DimError, OpError, ShapeError, complaint


def normal_dim(op: str, dim, rank: int) -> int:
    """`dim` in [-rank, rank) counted from the front; rank 0 accepts 0 and -1."""
    if dim.__class__ is int and -rank <= dim < rank:
        return dim if dim >= 0 else dim + rank
    if not hasattr(dim, "__index__") or isinstance(dim, bool):
        raise ArgumentError(complaint(op, "dim must be an int", dict(dim=repr(dim))))
    limit = max(rank, 1)
    if not -limit <= dim < limit:
        raise DimError(complaint(op, f"dim must be in [{-limit}, {limit - 1}]", dict(dim=dim)))
    return dim.__index__() % limit


def normal_dims(op: str, dims, rank: int) -> tuple[int, ...]:
    """Sorted distinct dimensions; None or () mean all of them."""
    if dims is None:
        return tuple(range(rank))
    if hasattr(dims, "__index__"):
        dims = (dims,)
    elif isinstance(dims, float):
        raise ArgumentError(complaint(op, "dim must be an int or ints", dict(dim=dims)))
    found = sorted(normal_dim(op, d, rank) for d in dims)
    if len(set(found)) != len(found):
        raise OpError(complaint(op, "each dim may appear once", dict(dim=tuple(dims))))
    return tuple(found) if found else tuple(range(rank))


def normal_shape(op: str, sizes) -> tuple[int, ...]:
    """A tuple of non-negative ints from `(2, 3)`, `((2, 3),)` or ints with `__index__`."""
    if len(sizes) == 1 and not hasattr(sizes[0], "__index__"):
        sizes = sizes[0]
    if isinstance(sizes, float):
        raise ArgumentError(complaint(op, "sizes must be ints", dict(size=sizes)))
    shape = tuple(int_argument(op, "size", n) for n in sizes)
    if any(n < 0 for n in shape):
        raise OpError(complaint(op, "sizes must not be negative", dict(size=list(shape))))
    return shape


def int_argument(op: str, name: str, value) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError(complaint(op, f"{name} must be an int", {name: repr(value)}))
    return value.__index__()


def inferred_shape(op: str, sizes: Sequence[int], numel: int) -> tuple[int, ...]:
    """`sizes` with a single -1 filled in so that the product is `numel`."""
    known = math.prod(sizes)
    if known == numel and -1 not in sizes and (not sizes or min(sizes) >= 0):
        return tuple(sizes)
    unknown = [d for d, n in enumerate(sizes) if n == -1]
    known = math.prod(n for n in sizes if n != -1)
    if any(n < -1 for n in sizes) or len(unknown) > 1:
        raise OpError(complaint(op, "sizes must be non-negative, with at most one -1",
                                dict(shape=list(sizes))))
    if unknown:
        if known == 0 or numel % known:
            raise ShapeError(complaint(op, "the sizes must divide the number of elements",
                                       dict(shape=list(sizes), numel=numel)))
        sizes = [numel // known if n == -1 else n for n in sizes]
    elif known != numel:
        raise ShapeError(complaint(
            op, f"shape {list(sizes)} must hold as many elements as the input", dict(numel=numel)))
    return tuple(sizes)
