"""Reordering elements: flip, roll, repeat, and the diagonal views."""

from __future__ import annotations

import numpy as np

from flambeau.core.spec import Spec, spec
from flambeau.loops.api import nest, store
from flambeau.ops.registry import primitive
from flambeau.ops.views import strided
from flambeau.ops.windows import window_add


def flip_meta(x: Spec, *, dims) -> Spec:
    return x.preserved()


def flip_ref(x, *, dims):
    return np.flip(x, dims) if dims else x.copy()


def flip_lower(outs, x, *, dims):
    """out[i] = x[n - 1 - i]"""
    def body(p):
        return x[tuple(n - 1 - i if d in dims else i for d, (i, n) in enumerate(zip(p, x.shape)))]

    return nest(x.shape, body, out=outs[0])


def flip_samples(rng):
    for shape, dims in [((3,), (0,)), ((2, 3), (0, 1)), ((2, 0), (1,)), ((2,), ())]:
        yield (rng.normal(size=shape),), dict(dims=dims)


flip = primitive("flip", meta=flip_meta, ref=flip_ref, lower=flip_lower, samples=flip_samples,
                 exact=True,
                 vjp=dict(x=lambda ct, dims: flip(ct, dims=dims)))


def roll_meta(x: Spec, *, shifts, dims) -> Spec:
    return x.preserved()


def roll_ref(x, *, shifts, dims):
    return np.roll(x, shifts, dims)


MOST_ROLLED = 3  # dimensions: every one doubles the nests


def roll_lower(outs, x, *, shifts, dims):
    """What stays in order moves as one block: two blocks for each rolled dimension."""
    moved = {d: s % n for s, d in zip(shifts, dims) if (n := x.shape[d]) and s % n}
    if len(moved) > MOST_ROLLED or len({*dims}) < len(dims):
        return None
    blocks = [()]
    for d, n in enumerate(x.shape):
        shift = moved.get(d, 0)
        parts = [(0, n - shift, shift), (n - shift, n, 0)] if shift else [(0, n, 0)]
        blocks = [(*b, part) for b in blocks for part in parts]
    return tuple(block_moved(outs[0], x, b) for b in blocks)


def block_moved(out, x, block: tuple):
    """The block of x from `start` to `stop` in each dimension, stored at `target`."""
    starts, stops, targets = zip(*block) if block else ((), (), ())

    def body(i):
        here = tuple(k + at for k, at in zip(i, starts))
        return store(out, tuple(k + at for k, at in zip(i, targets)), x[here])

    return nest(tuple(b - a for a, b in zip(starts, stops)), body)


def roll_samples(rng):
    for shape, shifts, dims in [((4,), (1,), (0,)), ((2, 3), (1, -2), (0, 1)), ((0,), (2,), (0,))]:
        yield (rng.normal(size=shape),), dict(shifts=shifts, dims=dims)


roll = primitive("roll", meta=roll_meta, ref=roll_ref, lower=roll_lower, samples=roll_samples,
                 exact=True,
                 vjp=dict(x=lambda ct, shifts, dims: roll(
                     ct, shifts=tuple(-s for s in shifts), dims=dims)))


# diagonal ------------------------------------------------------------------------------------


def diagonal_window(x: Spec, offset: int, dim1: int, dim2: int):
    """(size, stride, offset) of a diagonal, which becomes the last dimension."""
    rows, columns = x.shape[dim1], x.shape[dim2]
    a, b = x.strides[dim1], x.strides[dim2]
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    start = (offset * b if offset >= 0 else -offset * a) if count else 0
    keep = [d for d in range(x.ndim) if d not in (dim1, dim2)]
    return ((*(x.shape[d] for d in keep), count), (*(x.strides[d] for d in keep), a + b), start)


def diagonal_meta(x: Spec, *, offset, dim1, dim2):
    size, stride, start = diagonal_window(x, offset, dim1, dim2)
    return strided(x, size, stride, start)


def diagonal_vjp(ct, _x, offset, dim1, dim2):
    plain = spec(_x.dtype, _x.shape)
    size, stride, start = diagonal_window(plain, offset, dim1, dim2)
    return window_add(ct, shape=tuple(_x.shape), layout=plain.strides, size=size, stride=stride,
                      offset=start)


def diagonal_samples(rng):
    for shape, offset, dim1, dim2 in [((3, 3), 0, 0, 1), ((2, 3), 1, 0, 1), ((2, 3, 4), -1, 2, 0),
                                      ((2, 2), 5, 0, 1)]:
        yield (rng.normal(size=shape),), dict(offset=offset, dim1=dim1, dim2=dim2)


diagonal = primitive("diagonal", meta=diagonal_meta, vjp=dict(x=diagonal_vjp), kind="view",
                     samples=diagonal_samples)


# unfold --------------------------------------------------------------------------------------


def unfold_window(x: Spec, dim: int, size: int, step: int):
    count = (x.shape[dim] - size) // step + 1 if x.ndim else 1
    shape, strides = list(x.shape), list(x.strides)
    if not x.ndim:
        return (size,), (1,), 0
    stride = strides[dim]
    shape[dim], strides[dim] = count, stride * step
    return (*shape, size), (*strides, stride), 0


def unfold_meta(x: Spec, *, dim, size, step):
    return strided(x, *unfold_window(x, dim, size, step)[:2])


def unfold_vjp(ct, _x, dim, size, step):
    plain = spec(_x.dtype, _x.shape)
    shape, stride, _ = unfold_window(plain, dim, size, step)
    return window_add(ct, shape=tuple(_x.shape), layout=plain.strides, size=shape, stride=stride,
                      offset=0)


def unfold_samples(rng):
    for shape, dim, size, step in [((5,), 0, 2, 1), ((2, 6), 1, 3, 2), ((4, 2), 0, 4, 1)]:
        yield (rng.normal(size=shape),), dict(dim=dim, size=size, step=step)


unfold = primitive("unfold", meta=unfold_meta, vjp=dict(x=unfold_vjp), kind="view",
                   samples=unfold_samples)
