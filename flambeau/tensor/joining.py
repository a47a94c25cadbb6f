"""Putting tensors together and taking them apart."""

from __future__ import annotations

import builtins

from flambeau.core.errors import (
    ArgumentError,
    IndexOutOfRange,
    OpError,
    ShapeError,
    ValueRangeError,
    complaint,
)
from flambeau.ops import joining, views
from flambeau.ops.casts import convert
from flambeau.ops.dims import normal_dim
from flambeau.ops.promotion import result_dtype
from flambeau.tensor.indexing import within
from flambeau.tensor.public import public
from flambeau.tensor.shaping import unsqueezed
from flambeau.tensor.tensor import Tensor


def tensor_list(op: str, tensors) -> list[Tensor]:
    if isinstance(tensors, Tensor) or not isinstance(tensors, (list, tuple)):
        raise ArgumentError(
            complaint(
                op,
                "tensors must be a tuple or list of Tensors",
                dict(tensors=type(tensors).__name__),
            )
        )
    if not tensors:
        error = ValueRangeError if op == "cat" else OpError
        raise error(complaint(op, "expected a non-empty list of Tensors"))
    for t in tensors:
        if not isinstance(t, Tensor):
            raise ArgumentError(
                complaint(op, "every element must be a Tensor", dict(element=type(t).__name__))
            )
    return list(tensors)


@public(method=False, aliases=("concat", "concatenate"))
def cat(tensors, dim=0):
    """Join along an existing dimension; one-dimensional empty tensors fit anything."""
    tensors = tensor_list("cat", tensors)
    if all(t.ndim == 0 for t in tensors[:1]):
        raise OpError(
            complaint(
                "cat",
                "zero-dimensional tensor (at position 0) cannot be concatenated",
                None,
                "Use torch.stack.",
            )
        )
    kind = result_dtype(*(t._spec for t in tensors))
    kept = [t for t in tensors if tuple(t.shape) != (0,)] or tensors[:1]
    d = normal_dim("cat", dim, kept[0].ndim)
    kept = [t if t.dtype is kind else convert(t, dtype=kind) for t in kept]
    return joining.cat(*kept, dim=d)


@public(method=False)
def stack(tensors, dim=0):
    """Join along a new dimension."""
    tensors = tensor_list("stack", tensors)
    first = tensors[0].shape
    for t in tensors:
        if t.shape != first:
            raise ShapeError(
                complaint(
                    "stack",
                    "stack expects each tensor to be equal size",
                    dict(first=list(first), other=list(t.shape)),
                )
            )
    d = normal_dim("stack", dim, len(first) + 1)
    return cat([unsqueezed(t, d) for t in tensors], d)


def pieces(x: Tensor, d: int, sizes) -> tuple[Tensor, ...]:
    """Consecutive slices of the given sizes."""
    found, start = [], 0
    for n in sizes:
        found.append(views.slice(x, dim=d, start=start, stop=start + n, step=1))
        start += n
    return tuple(found)


@public(out=False)
def split(tensor, split_size_or_sections, dim=0):
    """Views of at most split_size along dim, or of the given sizes."""
    d = normal_dim("split", dim, tensor.ndim)
    n = tensor.shape[d]
    if hasattr(split_size_or_sections, "__index__"):
        size = split_size_or_sections.__index__()
        if size < 0 or size == 0 and n:
            raise OpError(complaint("split", "split_size must be positive", dict(split_size=size)))
        sizes = [builtins.min(size, n - k) for k in builtins.range(0, n, size or 1)] or [n]
    else:
        sizes = [int(k) for k in split_size_or_sections]
        if builtins.sum(sizes) != n or builtins.any(k < 0 for k in sizes):
            raise OpError(
                complaint(
                    "split_with_sizes",
                    "sizes must add up to the dimension",
                    dict(sizes=sizes, size=n),
                )
            )
    return pieces(tensor, d, sizes)


@public(out=False)
def split_with_sizes(tensor, split_sizes, dim=0):
    """Views of the given sizes along dim."""
    return split(tensor, list(split_sizes), dim)


@public(out=False)
def chunk(input, chunks, dim=0):
    """At most `chunks` views of equal size; the last may be smaller."""
    d = normal_dim("chunk", dim, input.ndim)
    if chunks < 1:
        raise OpError(complaint("chunk", "chunks must be positive", dict(chunks=chunks)))
    n = input.shape[d]
    if n == 0:
        return pieces(input, d, [0] * chunks)
    return split(input, -(-n // chunks), d)


@public(out=False)
def tensor_split(input, indices_or_sections, dim=0):
    """Sections whose sizes differ by at most one, or cut at the given indices."""
    d = normal_dim("tensor_split", dim, input.ndim)
    n = input.shape[d]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if hasattr(indices_or_sections, "__index__"):
        k = indices_or_sections
        if k <= 0:
            raise OpError(
                complaint(
                    "tensor_split", "number of sections must be larger than 0", dict(sections=k)
                )
            )
        return pieces(input, d, [n // k + (i < n % k) for i in builtins.range(k)])
    cuts = [within(i, n) for i in indices_or_sections]
    starts, stops = [0, *cuts], [*cuts, n]
    return tuple(
        views.slice(input, dim=d, start=a, stop=builtins.max(a, b), step=1)
        for a, b in zip(starts, stops)
    )


@public(out=False)
def unbind(input, dim=0):
    """The slices along dim, without that dimension."""
    d = normal_dim("unbind", dim, input.ndim)
    return tuple(views.select(input, dim=d, index=i) for i in builtins.range(input.shape[d]))


@public(out=False)
def narrow(input, dim, start, length):
    """`length` elements of dim from `start`."""
    if not input.ndim:
        raise OpError(complaint("narrow", "cannot be applied to a 0-dim tensor"))
    d = normal_dim("narrow", dim, input.ndim)
    n = input.shape[d]
    start = int(start)
    if not -n <= start <= n:
        raise IndexOutOfRange(
            complaint("narrow", f"start must be in [{-n}, {n}]", dict(start=start))
        )
    start = start + n if start < 0 else start
    if length < 0 or start + length > n:
        raise OpError(
            complaint(
                "narrow",
                "start + length must not exceed the dimension",
                dict(start=start, length=length, size=n),
            )
        )
    return views.slice(input, dim=d, start=start, stop=start + length, step=1)


@public(out=False)
def select(input, dim, index):
    """One index of a dimension, which disappears."""
    d = normal_dim("select", dim, input.ndim)
    n = input.shape[d]
    if not -n <= index < n:
        raise IndexOutOfRange(
            complaint("select", f"index {index} is out of bounds for dimension {d} with size {n}")
        )
    return views.select(input, dim=d, index=int(index) % n)
