"""Padding: constants around a tensor, and borders read from inside it."""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import OpError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.loops.api import const, guarded, nest
from flambeau.ops.convolution import layout_like
from flambeau.ops.registry import primitive


def padded_shape(shape, widths) -> list[int]:
    """widths: (before, after) per dimension; negative ones cut."""
    sizes = [n + a + b for n, (a, b) in zip(shape, widths)]
    if any(n < 0 for n in sizes):
        raise OpError(complaint("pad", "the padded sizes must not be negative", dict(
            shape=list(shape), padding=widths)))
    return sizes


def pad_meta(x: Spec, *, widths, value) -> Spec:
    shape = padded_shape(x.shape, widths)
    return spec(x.dtype, shape, layout_like((x,), shape), x.device)


def pad_ref(x, *, widths, value):
    out = np.full(padded_shape(x.shape, widths), value, x.dtype)
    out[tuple(slice(max(a, 0), max(n - max(b, 0), max(a, 0)))
              for n, (a, b) in zip(out.shape, widths))] = x[tuple(
                  slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, widths))]
    return out


def pad_lower(outs, x, *, widths, value):
    """What lies outside of x is not read."""
    (out,) = outs
    if not all(x.shape):
        return None
    fill = const(value, out.dtype)

    def body(p):
        here = tuple(i - a for i, (a, _) in zip(p, widths))
        inside = None
        for i, n, (a, b) in zip(here, x.shape, widths):
            for limit in ([i >= 0] if a > 0 else []) + ([i < n] if b > 0 else []):
                inside = limit if inside is None else inside & limit
        return x[here] if inside is None else guarded(inside, x, here, fill)

    return nest(out.shape, body, out=out)


def pad_vjp(ct, widths):
    return pad(ct, widths=tuple((-a, -b) for a, b in widths), value=0)


def pad_samples(rng):
    for shape, widths in [((3,), ((1, 2),)), ((2, 3), ((0, 0), (2, -1))),
                          ((2, 2), ((-1, 1), (0, 0)))]:
        yield (rng.normal(size=shape),), dict(widths=widths, value=0.5)


pad = primitive("pad", meta=pad_meta, ref=pad_ref, vjp=dict(x=pad_vjp), lower=pad_lower,
                samples=pad_samples, exact=True)
