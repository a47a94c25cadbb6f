"""Order along a dimension. NaN counts as the largest value; equal values keep their order."""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.spec import Spec, spec
from flambeau.ops.along import place
from flambeau.ops.registry import primitive


def order_of(x: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """Stable permutation that sorts `x` along dim."""
    if not x.ndim:
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    flipped = np.flip(np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)
    return x.shape[dim] - 1 - flipped


def sort_meta(x: Spec, *, dim, descending):
    """(values, indices)."""
    like = x.preserved()
    return like, spec(dtypes.int64, like.shape, like.strides, x.device)


def sort_ref(x, *, dim, descending):
    order = order_of(x, dim, descending)
    return (np.take_along_axis(x, order, dim) if x.ndim else x.copy()), order


def sort_vjp(cts, _x, out1, dim):
    if cts[0] is None:
        return (None,)
    return (place(cts[0], out1, shape=tuple(_x.shape), dim=dim),)


def sort_samples(rng):
    for shape, dim in [((5,), 0), ((2, 4), 1), ((3, 2), 0), ((0, 2), 0), ((), 0)]:
        for descending in (False, True):
            yield (rng.normal(size=shape),), dict(dim=dim, descending=descending)


sort = primitive("sort", meta=sort_meta, ref=sort_ref, vjp=sort_vjp, samples=sort_samples)


def topk_meta(x: Spec, *, k, dim, largest):
    shape = [k if d == dim and x.ndim else n for d, n in enumerate(x.shape)]
    return spec(x.dtype, shape, None, x.device), spec(dtypes.int64, shape, None, x.device)


def topk_ref(x, *, k, dim, largest):
    """The k largest (or smallest), in order; a partial sort narrows long rows first."""
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    n = x.shape[dim]
    if x.dtype.kind == "f" and n > 64 and k * 8 < n and not np.isnan(x).any():
        part = np.argpartition(-x if largest else x, k - 1 if k else 0, axis=dim)
        part = np.sort(np.take(part, range(k), axis=dim), axis=dim)
        near = np.take_along_axis(x, part, dim)
        order = np.take_along_axis(part, order_of(near, dim, largest), dim)
    else:
        order = np.take(order_of(x, dim, largest), range(k), axis=dim)
    return np.take_along_axis(x, order, dim), order


def topk_samples(rng):
    for shape, k, dim in [((5,), 2, 0), ((2, 4), 3, 1), ((3, 2), 1, 0), ((2, 100), 3, 1)]:
        for largest in (False, True):
            yield (rng.normal(size=shape),), dict(k=k, dim=dim, largest=largest)


topk = primitive("topk", meta=topk_meta, ref=topk_ref, vjp=sort_vjp, samples=topk_samples)
