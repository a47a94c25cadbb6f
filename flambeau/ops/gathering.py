"""Reading and writing at positions given by index tensors.

Indices are int64 and already non-negative or negative within bounds; every op here checks them,
because a bad index must raise and never reach memory.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable

import numpy as np

from flambeau.core.bounds import out_of_range
from flambeau.core.dtype import BOOL
from flambeau.core.errors import IndexOutOfRange, ShapeError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.loops.api import Buf, cast, check, const, nest, store
from flambeau.ops.promotion import broadcast_shapes
from flambeau.ops.registry import primitive


def check_bounds(op: str, index: np.ndarray, size: int, dim: int) -> None:
    """Every index in [-size, size)."""
    if index.size and (index.min() < -size or index.max() >= size):
        bad = index[(index < -size) | (index >= size)].flat[0]
        raise out_of_range(f"{op}.{dim}", bad, size)


# index: x[i, :, j] with integer tensors ------------------------------------------------------
# `dims` are the indexed dimensions; the index tensors broadcast against each other. When dims
# are adjacent the broadcast dimensions stand in their place, else they come first.


def indexed_shape(x: Spec, indices: tuple[Spec, ...], dims: tuple[int, ...]) -> list[int]:
    try:
        block = broadcast_shapes("index", *(i.shape for i in indices))
    except ShapeError as error:
        raise IndexOutOfRange(
            complaint(
                "index",
                "indexing tensors could not be broadcast together",
                dict(shapes=" and ".join(str(list(i.shape)) for i in indices)),
            )
        ) from error
    rest = [n for d, n in enumerate(x.shape) if d not in dims]
    at = dims[0] if adjacent(dims) else 0
    return [*rest[:at], *block, *rest[at:]]


def adjacent(dims: tuple[int, ...]) -> bool:
    return dims == tuple(range(dims[0], dims[0] + len(dims)))


def index_meta(x: Spec, *indices: Spec, dims) -> Spec:
    return spec(x.dtype, indexed_shape(x, indices, dims), None, x.device)


def index_key(op: str, shape: tuple, indices, dims) -> tuple:
    """NumPy's key for the same positions, after the bounds check."""
    key: list = [builtins.slice(None)] * len(shape)
    for d, i in zip(dims, indices):
        check_bounds(op, i, shape[d], d)
        key[d] = i
    return tuple(key)


def index_ref(x, *indices, dims):
    return np.asarray(x[index_key("index", x.shape, indices, dims)], order="C")


def places(op: str, shape: tuple, indices, dims) -> Callable[[tuple], tuple]:
    """Point of the indexed shape -> place in a tensor of `shape`, with checked indices."""
    rank = max(len(i.shape) for i in indices)
    at = dims[0] if adjacent(dims) else 0

    def place(p: tuple) -> tuple:
        block, rest = p[at : at + rank], iter((*p[:at], *p[at + rank :]))
        looked = {
            d: check(i.at(block), shape[d], f"{op}.{d}", wrap=True) for d, i in zip(dims, indices)
        }
        return tuple(looked[d] if d in looked else next(rest) for d in range(len(shape)))

    return place


def index_lower(outs, x, *indices, dims):
    place = places("index", x.shape, indices, dims)
    return nest(outs[0].shape, lambda p: x[place(p)], out=outs[0])


def index_vjp(ct, _x, indices, dims):
    return index_accumulate(ct, *indices, shape=tuple(_x.shape), dims=dims)


def index_samples(rng):
    i, j = np.array([0, 2, 0]), np.array([[1], [0]])
    yield (rng.normal(size=(3, 2)), i), dict(dims=(0,))
    yield (rng.normal(size=(2, 3)), i), dict(dims=(1,))
    yield (rng.normal(size=(3, 4, 2)), i, j), dict(dims=(0, 2))
    yield (rng.normal(size=(3, 2)), np.zeros((0,), np.int64)), dict(dims=(0,))


index = primitive(
    "index",
    meta=index_meta,
    ref=index_ref,
    vjp=dict(x=index_vjp),
    lower=index_lower,
    samples=index_samples,
    exact=True,
)


def accumulate_meta(src: Spec, *indices: Spec, shape, dims) -> Spec:
    return spec(src.dtype, shape, None, src.device)


def accumulate_ref(src, *indices, shape, dims):
    """Zeros with `src` added at the positions, repeated ones in order."""
    out = np.zeros(shape, src.dtype)
    add_at(out, index_key("index_put", shape, indices, dims), src)
    return out


def add_at(out: np.ndarray, key: tuple, src) -> None:
    """out[key] += src, where repeated positions accumulate.

    With one index array over leading rows, rows are sorted by position and summed run by run,
    which is much faster than `np.add.at` on rows.
    """
    arrays = [k for k in key if isinstance(k, np.ndarray)]
    if len(arrays) != 1 or key[0] is not arrays[0] or out.ndim < 2 or arrays[0].size < 32:
        np.add.at(out, key, src)
        return
    where = arrays[0].reshape(-1) % out.shape[0]
    rows = np.broadcast_to(src, (*arrays[0].shape, *out.shape[1:])).reshape(where.size, -1)
    order = np.argsort(where, kind="stable")
    ordered = where[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sums = np.add.reduceat(rows[order], starts, axis=0)
    out[ordered[starts]] += sums.reshape(len(starts), *out.shape[1:])


def accumulate_lower(outs, src, *indices, shape, dims):
    """Zeros, then every value added in its order."""
    (out,) = outs
    if out.dtype.category == BOOL:
        return None
    place = places("index_put", shape, indices, dims)
    zeros = nest(out.shape, lambda p: const(0, out.dtype), out=out)
    return zeros, nest(src.shape, lambda p: store(out, place(p), src[p], "add"))


def accumulate_vjp(ct, indices, dims):
    return index(ct, *indices, dims=dims)


def accumulate_samples(rng):
    for operands, params in index_samples(rng):
        x, *indices = operands
        key = index_key("index", x.shape, indices, params["dims"])
        yield (rng.normal(size=x[key].shape), *indices), dict(params, shape=x.shape)


# The adjoint of index.
index_accumulate = primitive(
    "index_accumulate",
    meta=accumulate_meta,
    ref=accumulate_ref,
    vjp=dict(src=accumulate_vjp),
    lower=accumulate_lower,
    samples=accumulate_samples,
)


def put_meta(x: Spec, src: Spec, *indices: Spec, dims, accumulate) -> Spec:
    broadcast_shapes("index_put", src.shape, tuple(indexed_shape(x, indices, dims)))
    return spec(x.dtype, x.shape, None, x.device)


def put_ref(x, src, *indices, dims, accumulate):
    out = np.array(x)
    put_write(out, x, src, *indices, dims=dims, accumulate=accumulate)
    return out


def put_write(target, x, src, *indices, dims, accumulate) -> None:
    key = index_key("index_put", target.shape, indices, dims)
    if accumulate:
        add_at(target, key, np.asarray(src).astype(target.dtype))
    else:
        target[key] = src


def put_lower(outs, x, src, *indices, dims, accumulate):
    """A copy of x, then the values in their order: the last of several stays."""
    (out,) = outs
    if accumulate and out.dtype.category == BOOL:
        return None  # a kernel would add bools as integers of one bit
    shape = indexed_shape(x, indices, dims)
    place = places("index_put", x.shape, indices, dims)

    def body(p):
        value = src.at(p) if isinstance(src, Buf) else src
        return store(out, place(p), cast(value, out.dtype), "add" if accumulate else None)

    return nest(out.shape, lambda p: x[p], out=out), nest(tuple(shape), body)


def put_guard(target, x, src, *indices, dims, accumulate) -> None:
    """Raise for a bad index before anything is written."""
    index_key("index_put", target.shape, indices, dims)


def put_vjp(ct, src, indices, dims, accumulate, needs):
    """Overwritten positions pass nothing to x; with accumulate all of ct passes."""
    gx = None
    if needs[0]:
        gx = ct if accumulate else index_put(ct, 0, *indices, dims=dims, accumulate=False)
    return (gx, index(ct, *indices, dims=dims) if needs[1] else None) + (None,) * len(indices)


def put_samples(rng):
    for operands, params in index_samples(rng):
        x, *indices = operands
        if indices[0].size and len({*indices[0].reshape(-1)}) < indices[0].size:
            accumulates = (True,)
        else:
            accumulates = (False, True)
        key = index_key("index", x.shape, indices, params["dims"])
        for accumulate in accumulates:
            yield (x, rng.normal(size=x[key].shape), *indices), dict(params, accumulate=accumulate)


index_put = primitive(
    "index_put",
    meta=put_meta,
    ref=put_ref,
    write=put_write,
    vjp=put_vjp,
    lower=put_lower,
    guard=put_guard,
    samples=put_samples,
    exact=True,
)


# nonzero -------------------------------------------------------------------------------------


def nonzero_of(x: np.ndarray) -> np.ndarray:
    """Positions of the true elements, one a row, in row-major order."""
    return np.argwhere(x)
