"""Picking one element per line of a dimension, and its adjoint."""

from __future__ import annotations

import numpy as np

from flambeau.core.spec import Spec, spec
from flambeau.loops.api import nest
from flambeau.ops.registry import primitive
from flambeau.ops.scattering import place_along, scattered, zeros

# `index` has the operand's rank, and size 1 .. k along `dim`; equal sizes elsewhere. It comes
# from argmax, sort and their kin, so it is within bounds.


def pick_meta(x: Spec, index: Spec, *, dim) -> Spec:
    return spec(x.dtype, index.shape, None, x.device)


def pick_ref(x, index, *, dim):
    if not x.ndim:
        return np.array(x)
    return np.take_along_axis(x, index, dim)


def pick_lower(outs, x, index, *, dim):
    if not x.shape:
        return None

    def body(p):
        return x[place_along("pick", index, x.shape[dim], dim, p)]

    return nest(index.shape, body, out=outs[0])


def pick_vjp(ct, index, _x, dim):
    return place(ct, index, shape=tuple(_x.shape), dim=dim)


def pick_samples(rng):
    for shape, dim, count in [((4,), 0, 1), ((2, 3), 1, 2), ((2, 3), 0, 1), ((0, 3), 1, 1)]:
        where = tuple(count if d == dim else n for d, n in enumerate(shape))
        index = np.argsort(rng.normal(size=shape), axis=dim).take(range(count), axis=dim)
        yield (rng.normal(size=shape), index.reshape(where)), dict(dim=dim)


pick = primitive("pick", meta=pick_meta, ref=pick_ref, vjp=dict(x=pick_vjp), lower=pick_lower,
                 samples=pick_samples, exact=True)


def place_meta(src: Spec, index: Spec, *, shape, dim) -> Spec:
    return spec(src.dtype, shape, None, src.device)


def place_ref(src, index, *, shape, dim):
    """Zeros with `src` at `index` along `dim`; an index appears once per line."""
    if not shape:
        return np.array(src).reshape(())
    out = np.zeros(shape, src.dtype)
    np.put_along_axis(out, index, src, dim)
    return out


def place_lower(outs, src, index, *, shape, dim):
    """Zeros, then the values; no two of them meet."""
    (out,) = outs
    if not shape:
        return None
    return zeros(out), scattered("place", out, index, lambda p: src[p], dim, None)


def place_vjp(ct, index, dim):
    return pick(ct, index, dim=dim)


def place_samples(rng):
    for (x, index), params in pick_samples(rng):
        yield (rng.normal(size=index.shape), index), dict(params, shape=x.shape)


# The adjoint of pick.
place = primitive("place", meta=place_meta, ref=place_ref, vjp=dict(src=place_vjp),
                  lower=place_lower, samples=place_samples, exact=True)
