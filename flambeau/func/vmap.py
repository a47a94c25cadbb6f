"""`vmap`: a function of one slice as a function of many."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from flambeau.core.context import pushed
from flambeau.core.errors import ArgumentError, OpError, ValueRangeError, complaint
from flambeau.core.pytree import broadcast_prefix, flatten, unflatten
from flambeau.func.batching import Batching, batched, is_batched
from flambeau.ops.joining import cat
from flambeau.tensor import Tensor

Dims = Any  # an int, None, or a tree of them


def vmap(
    func: Callable,
    in_dims: Dims = 0,
    out_dims: Dims = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable:
    """`func` over a dimension of its tensor arguments, as if looped and stacked.

    in_dims: for each positional argument (or leaf of it) the dimension to map, None for all of it;
    out_dims: where the results have it; randomness: "error", "same" or "different" draws for the
    slices; chunk_size: most slices at a time, to save memory.
    """
    if randomness not in ("error", "same", "different"):
        must = "randomness must be 'error', 'same' or 'different'"
        raise OpError(complaint("vmap", must, {"randomness": randomness}))
    if chunk_size is not None and chunk_size < 1:
        must = "chunk_size must be None or above 0"
        raise ValueRangeError(complaint("vmap", must, {"chunk_size": chunk_size}))

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        inputs = Inputs(in_dims, args, kwargs)
        if chunk_size is None or chunk_size >= inputs.size:
            return run(func, inputs, inputs.values, inputs.size, out_dims, randomness)
        return chunked(func, inputs, chunk_size, out_dims, randomness)

    return mapped


class Inputs:
    """The arguments' leaves with the mapped dimension in front, and how many slices there are."""

    def __init__(self, in_dims: Dims, args: tuple, kwargs: dict) -> None:
        self.kwargs = kwargs
        leaves, self.structure = flatten(args)
        in_dims = tuple(in_dims) if isinstance(in_dims, list) else in_dims
        if not isinstance(in_dims, int | tuple):
            must, facts = "in_dims must be an int or a tuple", {"in_dims": in_dims}
            raise ValueRangeError(complaint("vmap", must, facts))
        if not args and not kwargs:
            must = "there must be at least one argument"
            raise ValueRangeError(complaint("vmap", must))
        dims = broadcast_prefix(in_dims, self.structure)
        if dims is None:
            must = "in_dims must match the structure of the arguments"
            raise ValueRangeError(complaint("vmap", must, {"in_dims": in_dims}))
        self.mapped = [dim is not None for dim in dims]
        self.values = [_in_front(x, dim) for x, dim in zip(leaves, dims, strict=True)]
        self.size = self._size()

    def _size(self) -> int:
        sizes = {x.shape[0] for x, mapped in zip(self.values, self.mapped, strict=True) if mapped}
        if not sizes:
            must = "at least one argument must be mapped"
            raise ValueRangeError(complaint("vmap", must, {"in_dims": None}))
        if len(sizes) > 1:
            must = "mapped dimensions must have one size"
            raise ValueRangeError(complaint("vmap", must, {"sizes": sorted(sizes)}))
        return sizes.pop()


def _in_front(x: Any, dim: Any) -> Any:
    if dim is None:
        return x
    if not isinstance(dim, int):
        raise ValueRangeError(complaint("vmap", "in_dims must be ints or None", {"in_dim": dim}))
    if not isinstance(x, Tensor):
        must, facts = "a mapped argument must be a Tensor", {"type": type(x).__name__}
        raise ValueRangeError(complaint("vmap", must, facts, "Give it the in_dim None."))
    if not -x.ndim <= dim < x.ndim:
        must = f"in_dims must be within the argument's {x.ndim} dimensions"
        raise ValueRangeError(complaint("vmap", must, {"in_dim": dim}))
    return x if dim % x.ndim == 0 else x.movedim(dim, 0)


def run(
    func: Callable,
    inputs: Inputs,
    values: Sequence[Any],
    size: int,
    out_dims: Dims,
    randomness: str,
) -> Any:
    """`func` on all slices of the values at once."""
    level = Batching(size, randomness)
    with pushed(level):
        leaves = [
            batched(x, level) if mapped else x
            for x, mapped in zip(values, inputs.mapped, strict=True)
        ]
        outs, structure = flatten(func(*unflatten(leaves, inputs.structure), **inputs.kwargs))
    dims = _out_dims(out_dims, outs, structure)
    return unflatten([_placed(x, level, d) for x, d in zip(outs, dims, strict=True)], structure)


def _out_dims(out_dims: Dims, outs: Sequence[Any], structure: Any) -> list[Any]:
    for out in outs:
        if not isinstance(out, Tensor):
            must, facts = "the function must return tensors", {"type": type(out).__name__}
            raise ValueRangeError(complaint("vmap", must, facts))
    out_dims = tuple(out_dims) if isinstance(out_dims, list) else out_dims
    if isinstance(out_dims, tuple) and len(out_dims) == 1 and len(outs) == 1:
        out_dims = out_dims[0]
    dims = broadcast_prefix(out_dims, structure)
    if dims is None:
        must = "out_dims must match the structure of the results"
        raise ValueRangeError(complaint("vmap", must, {"out_dims": out_dims}))
    for dim in dims:
        if dim is not None and not isinstance(dim, int):
            facts = {"out_dim": dim}
            raise ArgumentError(complaint("vmap", "out_dims must be ints or None", facts))
    return dims


def _placed(out: Tensor, level: Batching, dim: int | None) -> Tensor:
    """The result with its slices along dimension `dim`."""
    here = is_batched(out, level)
    if dim is None:
        if here:
            must = "a result with out_dim None must not depend on mapped arguments"
            raise ValueRangeError(complaint("vmap", must, {"shape": tuple(out.shape)}))
        return out
    value = out.value if here else out.expand((level.size, *out.shape))
    if not -value.ndim <= dim < value.ndim:
        must = f"out_dims must be within the result's {value.ndim} dimensions"
        raise IndexError(complaint("vmap", must, {"out_dim": dim}))
    return value if dim % value.ndim == 0 else value.movedim(0, dim)


def chunked(
    func: Callable, inputs: Inputs, chunk_size: int, out_dims: Dims, randomness: str
) -> Any:
    """At most `chunk_size` slices at a time, the results joined."""
    parts: list[list[Any]] = []
    structure: Any = None
    for start in range(0, inputs.size, chunk_size):
        count = min(chunk_size, inputs.size - start)
        values = [
            x[start : start + count] if mapped else x
            for x, mapped in zip(inputs.values, inputs.mapped, strict=True)
        ]
        out = run(func, inputs, values, count, out_dims, randomness)
        leaves, structure = flatten(out)
        parts.append(leaves)
    dims = _out_dims(out_dims, parts[0], structure)
    return unflatten(
        [
            column[0] if dim is None else cat(*column, dim=dim % column[0].ndim)
            for column, dim in zip(zip(*parts, strict=True), dims, strict=True)
        ],
        structure,
    )
