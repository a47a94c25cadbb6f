"""gather and scatter: positions along one dimension, given element by element."""

from __future__ import annotations

import numpy as np

from flambeau.core.bounds import out_of_range
from flambeau.core.dtype import BOOL
from flambeau.core.spec import Spec, spec
from flambeau.loops.api import Buf, cast, check, const, nest, store
from flambeau.ops.registry import primitive

# `index` may be smaller than the other operands outside of `dim`; positions are in [0, size).


def key_along(index: np.ndarray, dim: int) -> tuple:
    """NumPy's key for the element at index[i, ..] along dim and i, .. elsewhere."""
    key = list(np.ogrid[tuple(slice(0, n) for n in index.shape)])
    key[dim] = index
    return tuple(key)


def checked(op: str, index: np.ndarray, size: int, dim: int) -> np.ndarray:
    if index.size and (index.min() < 0 or index.max() >= size):
        bad = index[(index < 0) | (index >= size)].flat[0]
        raise out_of_range(f"{op}.{dim}", bad, size)
    return index


def gather_meta(x: Spec, index: Spec, *, dim) -> Spec:
    return spec(x.dtype, index.shape, None, x.device)


def gather_ref(x, index, *, dim):
    if not x.ndim or not index.ndim:
        checked("gather", index, 1 if not x.ndim else x.shape[0], 0)
        return x.reshape(-1)[index]
    return x[key_along(checked("gather", index, x.shape[dim], dim), dim)]


def place_along(op: str, index, size: int, dim: int, p: tuple) -> tuple:
    """p with the checked index at p in the place of its dim."""
    return (*p[:dim], check(index[p], size, f"{op}.{dim}"), *p[dim + 1:])


def gather_lower(outs, x, index, *, dim):
    if not x.shape or not index.shape:
        return None

    def body(p):
        return x[place_along("gather", index, x.shape[dim], dim, p)]

    return nest(index.shape, body, out=outs[0])


def gather_vjp(ct, index, _x, dim):
    return scatter_sum(ct, index, shape=tuple(_x.shape), dim=dim)


def gather_samples(rng):
    yield (rng.normal(size=(4,)), np.array([0, 3, 3])), dict(dim=0)
    yield (rng.normal(size=(3, 4)), rng.integers(0, 4, (3, 2))), dict(dim=1)
    yield (rng.normal(size=(3, 4)), rng.integers(0, 3, (5, 2))), dict(dim=0)
    yield (rng.normal(size=(3, 4)), np.zeros((0, 4), np.int64)), dict(dim=0)


gather = primitive(
    "gather",
    meta=gather_meta,
    ref=gather_ref,
    vjp=dict(x=gather_vjp),
    lower=gather_lower,
    samples=gather_samples,
    exact=True,
)


def scatter_sum_meta(src: Spec, index: Spec, *, shape, dim) -> Spec:
    return spec(src.dtype, shape, None, src.device)


def scatter_sum_ref(src, index, *, shape, dim):
    """The adjoint of gather: zeros with src added at the positions, in order."""
    out = np.zeros(shape, src.dtype)
    if not shape:
        return out + src.sum()
    np.add.at(out, key_along(index, dim), src)
    return out


def scatter_sum_lower(outs, src, index, *, shape, dim):
    """Zeros, then every value added in its order."""
    (out,) = outs
    if not shape or not index.shape or adds_bools(out, True):
        return None
    return zeros(out), scattered("gather", out, index, lambda p: src[p], dim, "add")


def zeros(out):
    return nest(out.shape, lambda p: const(0, out.dtype), out=out)


def adds_bools(out, add: bool) -> bool:
    """The sum of bools is whether one is true; a kernel would add them as integers of one bit."""
    return add and out.dtype.category == BOOL


def scattered(op: str, out, index, value, dim: int, combine: str | None):
    """value(p) stored, or folded in, at the index at p along dim."""
    def body(p):
        place = place_along(op, index, out.shape[dim], dim, p)
        return store(out, place, cast(value(p), out.dtype), combine)

    return nest(index.shape, body)


def scatter_sum_vjp(ct, index, dim):
    return gather(ct, index, dim=dim)


def scatter_sum_samples(rng):
    for (x, index), params in gather_samples(rng):
        yield (rng.normal(size=index.shape), index), dict(params, shape=x.shape)


scatter_sum = primitive(
    "scatter_sum",
    meta=scatter_sum_meta,
    ref=scatter_sum_ref,
    vjp=dict(src=scatter_sum_vjp),
    lower=scatter_sum_lower,
    samples=scatter_sum_samples,
)


# scatter: x with src at the positions ----------------------------------------------------------


def scatter_meta(x: Spec, index: Spec, src: Spec, *, dim, add) -> Spec:
    return x.preserved()


def scatter_ref(x, index, src, *, dim, add):
    out = x.copy()
    scatter_write(out, x, index, src, dim=dim, add=add)
    return out


def cut(src, shape: tuple):
    """The leading part of src that index covers; a number as it is."""
    return (
        src[tuple(slice(0, n) for n in shape)] if isinstance(src, np.ndarray) and src.ndim else src
    )


def scatter_write(target, x, index, src, *, dim, add) -> None:
    """Later writes to one position win; with `add` all of them count."""
    if not target.ndim or not index.ndim:
        checked("scatter", index, target.size if target.ndim else 1, 0)
        flat = target.reshape(-1)
        where = index.reshape(-1)
        value = src.reshape(-1) if isinstance(src, np.ndarray) else src
    else:
        flat, where, value = target, None, cut(src, index.shape)
    key = (
        where
        if where is not None
        else key_along(checked("scatter", index, target.shape[dim], dim), dim)
    )
    if add:
        np.add.at(flat, key, np.asarray(value).astype(target.dtype))
    else:
        flat[key] = value


def scatter_lower(outs, x, index, src, *, dim, add):
    """A copy of x, then the values in their order: the last of several stays."""
    (out,) = outs
    if not x.shape or not index.shape or adds_bools(out, add):
        return None
    value = src.__getitem__ if isinstance(src, Buf) and src.shape else lambda p: number(src)
    copy = nest(out.shape, lambda p: x[p], out=out)
    return copy, scattered("scatter", out, index, value, dim, "add" if add else None)


def number(src):
    return src[()] if isinstance(src, Buf) else src


def scatter_guard(target, x, index, src, *, dim, add) -> None:
    """Raise for a bad index before anything is written."""
    checked("scatter", index, target.shape[dim] if target.ndim else 1, dim)


def scatter_vjp(ct, _x, index, _src, dim, add, needs):
    gx = None
    if needs[0]:
        gx = ct if add else scatter(ct, index, 0, dim=dim, add=False)
    gs = None
    if needs[2]:
        gs = gather(ct, index, dim=dim)
        if _src.shape != index.shape and _src.ndim:
            gs = placed(gs, tuple(_src.shape))
    return gx, None, gs


def placed(g, shape: tuple):
    """A cotangent of the leading part, with zeros for what index left out."""
    from flambeau.ops.views import slice_scatter_zeros

    for d, n in enumerate(shape):
        if g.shape[d] != n:
            grown = (*g.shape[:d], n, *g.shape[d + 1 :])
            g = slice_scatter_zeros(g, shape=grown, dim=d, start=0, stop=g.shape[d], step=1)
    return g


def scatter_samples(rng):
    index = np.array([[0, 2], [1, 0], [3, 1]])
    yield (rng.normal(size=(3, 4)), index, rng.normal(size=(3, 2))), dict(dim=1, add=False)
    yield (rng.normal(size=(3, 4)), index, rng.normal(size=(3, 3))), dict(dim=1, add=True)
    yield (rng.normal(size=(4,)), np.array([0, 0, 2]), rng.normal(size=3)), dict(dim=0, add=True)


scatter = primitive(
    "scatter",
    meta=scatter_meta,
    ref=scatter_ref,
    write=scatter_write,
    vjp=scatter_vjp,
    lower=scatter_lower,
    guard=scatter_guard,
    samples=scatter_samples,
    exact=True,
)
