"""Putting tensors together."""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import ShapeError, complaint
from flambeau.core.spec import Spec, channels_last_strides, spec
from flambeau.loops.api import nest, store
from flambeau.ops import views
from flambeau.ops.elementwise import common_device
from flambeau.ops.promotion import result_dtype
from flambeau.ops.registry import primitive


def cat_meta(*tensors: Spec, dim) -> Spec:
    """Sizes agree except along `dim`, which is counted from the front."""
    first = tensors[0]
    for t in tensors[1:]:
        if t.ndim != first.ndim or any(
                a != b for d, (a, b) in enumerate(zip(t.shape, first.shape)) if d != dim):
            raise ShapeError(complaint(
                "cat", f"sizes of tensors must match except in dimension {dim}",
                dict(first=list(first.shape), other=list(t.shape))))
    shape = list(first.shape)
    shape[dim] = sum(t.shape[dim] for t in tensors)
    return spec(result_dtype(*tensors), shape, common_layout(tensors, shape),
                common_device("cat", list(tensors)))


def common_layout(tensors: tuple[Spec, ...], shape: list[int]) -> tuple | None:
    """channels_last if every operand is."""
    if all(t.ndim >= 4 and not t.is_contiguous and channels_innermost(t) for t in tensors):
        return channels_last_strides(shape)
    return None


def channels_innermost(t: Spec) -> bool:
    """Are the channels the innermost dimension, with or without gaps?"""
    least = 1
    for d in (1, *range(t.ndim - 1, 1, -1), 0):
        if t.strides[d] < least:
            return False
        least = t.strides[d] * t.shape[d]
    return True


def cat_ref(*tensors, dim):
    return np.concatenate(tensors, axis=dim)


MOST_NESTS = 64  # of one kernel: beyond, compiling it costs more than it saves


def cat_lower(outs, *tensors, dim):
    """One nest for each operand, which writes its slice of the result."""
    (out,) = outs
    if len(tensors) > MOST_NESTS or any(t.dtype is not out.dtype for t in tensors):
        return None
    nests, start = [], 0
    for t in tensors:
        if all(t.shape):
            nests.append(slice_stored(out, t, dim, start))
        start += t.shape[dim]
    return tuple(nests)


def slice_stored(out, t, dim: int, start: int):
    """out[.., start + i, ..] = t[.., i, ..]"""
    return nest(t.shape, lambda i: store(out, (*i[:dim], i[dim] + start, *i[dim + 1:]), t[i]))


def cat_vjp(ct, _tensors, dim, needs):
    """Each operand gets its slice of the cotangent."""
    grads, start = [], 0
    for s, needed in zip(_tensors, needs):
        stop = start + s.shape[dim]
        grads.append(views.slice(ct, dim=dim, start=start, stop=stop, step=1) if needed else None)
        start = stop
    return tuple(grads)


def cat_samples(rng):
    for shapes, dim in [(((2,), (3,)), 0), (((2, 3), (2, 1)), 1), (((0, 2), (1, 2)), 0),
                        (((2, 2),), 1)]:
        yield tuple(rng.normal(size=s) for s in shapes), dict(dim=dim)


cat = primitive("cat", meta=cat_meta, ref=cat_ref, vjp=cat_vjp, lower=cat_lower,
                samples=cat_samples, exact=True)


def stack_rows(tensors):
    """Tensors of one shape as rows of a new leading dimension."""
    return cat(*[views.view(t.contiguous(), shape=(1, *t.shape)) for t in tensors], dim=0)
