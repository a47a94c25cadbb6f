"""Operands that say where: tables and index tensors."""

from __future__ import annotations

from typing import Any

from flambeau.func.rules.register import joined, padded, rule_of, split, spread
from flambeau.ops.creation import arange
from flambeau.ops.registry import Primitive
from flambeau.tensor import Tensor


def counted(size: int, like: Tensor, rank: int) -> Tensor:
    """0 .. size - 1 along the first of `rank` dimensions, to index the batch with."""
    numbers = arange(start=0, step=1, count=size, dtype=like.dtype, device=like.device)
    return numbers.reshape((size,) + (1,) * (rank - 1))


def offset(size: int, i: Tensor, here: bool, rows: int) -> Tensor:
    """Indices into one table of size * rows rows."""
    i = spread(size, i, here)
    return i + counted(size, i, i.ndim) * rows


@rule_of("embedding")
def embedding(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    w, i = values
    if not here[0]:
        return primitive(w, i, **params)
    if params["by_frequency"] or params["padding"] >= 0:
        return NotImplemented
    return primitive(joined(w), offset(size, i, here[1], w.shape[1]), **params)


@rule_of("embedding_backward")
def embedding_backward(
    size: int, primitive: Primitive, values: list, here: list, params: dict
) -> Any:
    if params["by_frequency"]:
        return NotImplemented
    g, i = (spread(size, v, h) for v, h in zip(values, here))
    rows, padding = params["rows"], params["padding"]
    if padding >= 0:
        kept = (i != padding).reshape((*i.shape, *(1 for _ in g.shape[i.ndim :])))
        g = g * kept
    params = {**params, "rows": size * rows, "padding": -1}
    return split(primitive(g, offset(size, i, True, rows), **params), size)


@rule_of("index")
def index(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """The batch becomes one more indexed dimension."""
    x, *indices = values
    indices, block = _block(size, indices, here[1:])
    dims = params["dims"]
    out = primitive(spread(size, x, here[0]), *indices, dims=(0, *(d + 1 for d in dims)))
    return _block_in_place(out, block, dims)


def _block(size: int, indices: list, here: list) -> tuple[list, int]:
    """Indices with the batch's own in front, and the rank of what they broadcast to."""
    rank = max(i.ndim - h for i, h in zip(indices, here))
    lined = [padded(i, rank + 1) if h else i for i, h in zip(indices, here)]
    return [counted(size, lined[0], rank + 1), *lined], rank


def _block_in_place(out: Tensor, block: int, dims: tuple) -> Tensor:
    """Move the indexed block from behind the batch to where one slice has it."""
    at = _moved(dims)
    if at == 0:
        return out
    return out.movedim(tuple(range(1, block + 1)), tuple(range(at + 1, at + block + 1)))


def _block_in_front(src: Tensor, block: int, dims: tuple) -> Tensor:
    at = _moved(dims)
    if at == 0:
        return src
    return src.movedim(tuple(range(at + 1, at + block + 1)), tuple(range(1, block + 1)))


def _moved(dims: tuple) -> int:
    """Where one slice has the indexed block; with the batch's index it stands behind the batch."""
    return dims[0] if dims == tuple(range(dims[0], dims[0] + len(dims))) else 0


@rule_of("index_accumulate")
def index_accumulate(
    size: int, primitive: Primitive, values: list, here: list, params: dict
) -> Any:
    src, *indices = values
    indices, block = _block(size, indices, here[1:])
    dims = params["dims"]
    src = _block_in_front(spread(size, src, here[0]), block, dims)
    shape = (size, *params["shape"])
    return primitive(src, *indices, shape=shape, dims=(0, *(d + 1 for d in dims)))


@rule_of("index_put")
def index_put(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    x, src, *indices = values
    indices, block = _block(size, indices, here[2:])
    dims = params["dims"]
    x = spread(size, x, here[0])
    if here[1]:
        rank = block + x.ndim - 1 - len(dims)
        src = _block_in_front(padded(src, rank + 1), block, dims)
    elif isinstance(src, Tensor) and _moved(dims):
        return NotImplemented
    moved = (0, *(d + 1 for d in dims))
    return primitive(x, src, *indices, dims=moved, accumulate=params["accumulate"])
