"""scatter with a fold: several values for one position combine by product, maximum or minimum."""

from __future__ import annotations

import numpy as np

from flambeau.core.spec import Spec
from flambeau.loops.api import const, nest
from flambeau.ops.registry import primitive
from flambeau.ops.scattering import adds_bools, checked, cut, key_along, placed, scattered

FOLDS = {"sum": (np.add, 0), "prod": (np.multiply, 1), "mean": (np.add, 0),
         "amax": (np.maximum, None), "amin": (np.minimum, None)}


def least(kind: np.dtype, fold: str):
    """The value that never wins."""
    if kind.kind in "fV":  # V: bfloat16, as NumPy sees it
        return -np.inf if fold == "amax" else np.inf
    if kind.kind == "b":
        return fold == "amin"
    info = np.iinfo(kind)
    return info.min if fold == "amax" else info.max


def scatter_reduce_meta(x: Spec, index: Spec, src: Spec, *, dim, fold, include_self) -> Spec:
    return x.preserved()


def scatter_reduce_ref(x, index, src, *, dim, fold, include_self):
    flat = not x.ndim
    if flat:
        x, index, src = x.reshape(1), np.zeros(index.size, np.int64), src.reshape(-1)
    key = key_along(checked("scatter_reduce", index, x.shape[dim], dim), dim)
    ufunc, start = FOLDS[fold]
    out = x.copy()
    if not include_self:
        out[key] = least(x.dtype, fold) if start is None else start
    ufunc.at(out, key, cut(src, index.shape))
    if fold == "mean":
        count = np.full(x.shape, int(include_self), np.int64)
        np.add.at(count, key, 1)
        count = np.maximum(count, 1)
        out = np.floor_divide(out, count) if x.dtype.kind in "iu" else out / count
    return out.reshape(()) if flat else out


COMBINES = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def scatter_reduce_lower(outs, x, index, src, *, dim, fold, include_self):
    """A copy of x, without what is not to be included, then the values folded in, in order."""
    (out,) = outs
    if not x.shape or not index.shape or fold not in COMBINES or adds_bools(out, fold == "sum"):
        return None
    nests = [nest(out.shape, lambda p: x[p], out=out)]
    if not include_self:
        start = FOLDS[fold][1]
        first = const(least(x.dtype.numpy, fold) if start is None else start, out.dtype)
        nests.append(scattered("scatter_reduce", out, index, lambda p: first, dim, None))
    nests.append(scattered("scatter_reduce", out, index, src.__getitem__, dim, COMBINES[fold]))
    return tuple(nests)


def decomposed_counts(x, index, dim, include_self):
    """How many values each position combines."""
    from flambeau.ops.creation import full

    one = full(shape=tuple(index.shape), value=1, dtype=x.dtype, device=x.device)
    base = full(shape=tuple(x.shape), value=int(include_self), dtype=x.dtype, device=x.device)
    return base.scatter_add(dim, index, one)


def scatter_reduce_vjp(ct, x, index, src, out, dim, fold, include_self, needs):
    """sum and mean spread; amax and amin share among the winners; prod divides out zero-safe."""
    whole = tuple(src.shape)
    if whole != index.shape:
        src = src[tuple(slice(0, n) for n in index.shape)]
    if fold in ("sum", "mean"):
        if fold == "mean":
            ct = ct / decomposed_counts(x, index, dim, include_self).clamp(min=1)
        gx, gs = ct, ct.gather(dim, index)
    elif fold == "prod":
        gx, gs = product_gradients(ct, x, index, src, out, dim, include_self)
    else:
        mine = x == out
        theirs = src == out.gather(dim, index)
        start = mine.to(ct.dtype) if include_self else mine.to(ct.dtype).scatter(dim, index, 0.0)
        share = ct / start.scatter_add(dim, index, theirs.to(ct.dtype)).clamp(min=1)
        gx, gs = share * mine, share.gather(dim, index) * theirs
    if not include_self:
        gx = gx.scatter(dim, index, 0.0)
    return gx, None, placed(gs, whole)


def product_gradients(ct, x, index, src, out, dim, include_self):
    """Product of all other factors, from the product of the non-zero ones and their number."""
    ones, zeros = src.masked_fill(src == 0, 1.0), (src == 0).to(ct.dtype)
    base_zero = (x == 0).to(ct.dtype)
    base = x.masked_fill(x == 0, 1.0)
    if not include_self:
        base, base_zero = base.scatter(dim, index, 1.0), base_zero.scatter(dim, index, 0.0)
    rest = scatter_reduce(base, index, ones, dim=dim, fold="prod", include_self=True)
    count = base_zero.scatter_add(dim, index, zeros)
    others = count.gather(dim, index) - zeros
    gs = ct.gather(dim, index) * (rest.gather(dim, index) / ones).masked_fill(others != 0, 0.0)
    own = (count - base_zero) != 0
    gx = ct * (rest / base).masked_fill(own, 0.0)
    return gx, gs


def scatter_reduce_samples(rng):
    index = np.array([[0, 2], [1, 0], [3, 1]])
    for fold in FOLDS:
        for include_self in (False, True):
            yield ((rng.normal(size=(3, 4)), index, rng.normal(size=(3, 2))),
                   dict(dim=1, fold=fold, include_self=include_self))
    yield ((rng.normal(size=(3, 4)), index, rng.normal(size=(4, 3))),
           dict(dim=1, fold="amax", include_self=True))


scatter_reduce = primitive("scatter_reduce", meta=scatter_reduce_meta, ref=scatter_reduce_ref,
                           vjp=scatter_reduce_vjp, lower=scatter_reduce_lower,
                           samples=scatter_reduce_samples)
