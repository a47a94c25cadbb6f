"""Normalisation of groups of channels in each sample, then a scale and a shift per channel."""

from __future__ import annotations

import math

import numpy as np

from flambeau.core.spec import Spec, channels_last_strides, spec
from flambeau.loops.api import Buf, cast, nest, reduce, unary, widened
from flambeau.ops.normalisation import mean_over, through_statistics
from flambeau.ops.registry import primitive


def group_norm_meta(x: Spec, w: Spec | None, b: Spec | None, *, groups, eps):
    """x (N, C, *). Returns (y, mean, rstd), the latter (N, groups); y is channels-last if x is."""
    stat = spec(x.dtype.wide, (x.shape[0], groups), None, x.device)
    return pictured(x), stat, stat


def pictured(x: Spec) -> Spec:
    """Contiguous, or channels-last as pictures may be."""
    last = channels_last_strides(x.shape) if x.ndim == 4 else None
    alike = last is not None and all(n == 1 or s == t for n, s, t in zip(x.shape, x.strides, last))
    return x.like(shape=tuple(x.shape), strides=last if alike and not x.is_contiguous else None)


def by_group(shape: tuple, groups: int) -> tuple:
    """(samples, groups, elements of a group), also where there are no samples."""
    return shape[0], groups, math.prod(shape[1:]) // groups


def per_channel(v: np.ndarray, rank: int) -> np.ndarray:
    return v.reshape(1, -1, *(1 for _ in range(rank - 2)))


def group_norm_ref(x, w, b, *, groups, eps):
    n = x.shape[0]
    flat = x.reshape(n, groups, math.prod(x.shape[1:]) // max(groups, 1))
    mean = mean_over(flat, (2,))
    y = flat - mean[:, :, None]
    rstd = 1 / np.sqrt(mean_over(np.square(y), (2,)) + np.asarray(eps, x.dtype))
    y *= rstd[:, :, None]
    y = y.reshape(x.shape)
    if w is not None:
        y = y * per_channel(w, x.ndim)
    if b is not None:
        y = y + per_channel(b, x.ndim)
    return y, mean, rstd


def group_folds(x, groups: int):
    """(sizes of what one group folds, (n, g, r) -> index of its element r)."""
    width = x.shape[1] // groups
    return (width, *x.shape[2:]), lambda n, g, r: (n, g * width + r[0], *r[1:])


def group_norm_lower(outs, x, w, b, *, groups, eps):
    """Mean, then squared deviations, then the result, over a group that stays in cache."""
    size, at = group_folds(x, groups)
    count, width = float(math.prod(size)), size[0]

    def mean(n, g):
        return reduce("add", size, lambda r: widened(x[at(n, g, r)])) / count

    def rstd(n, g, centre):
        total = reduce(
            "add",
            size,
            lambda r: (widened(x[at(n, g, r)]) - centre) * (widened(x[at(n, g, r)]) - centre),
        )
        return unary("rsqrt", total / count + eps)

    def body(i):
        n, g = i[0], i[1] // width
        centre = mean(n, g)
        y = (widened(x[i]) - centre) * rstd(n, g, centre)
        if w is not None:
            y = y * cast(w[i[1:2]], y.dtype)
        return y if b is None else y + cast(b[i[1:2]], y.dtype)

    def statistics(i):
        n, g = i
        centre = mean(n, g)
        return centre, rstd(n, g, centre)

    return (nest((x.shape[0], groups), statistics, out=outs[1:]), nest(x.shape, body, out=outs[0]))


def group_norm_decomposed(x, w, b, *, groups, eps):
    n, channels = x.shape[0], (1, -1, *(1 for _ in range(x.ndim - 2)))
    flat = x.reshape(by_group(x.shape, groups))
    mean = flat.mean(2, keepdim=True)
    centred = flat - mean
    rstd = ((centred * centred).mean(2, keepdim=True) + eps).rsqrt()
    y = (centred * rstd).reshape(tuple(x.shape))
    if w is not None:
        y = y * w.reshape(channels)
    if b is not None:
        y = y + b.reshape(channels)
    return y, mean.reshape((n, groups)), rstd.reshape((n, groups))


def group_norm_vjp(cts, x, w, _b, out1, out2, groups, needs):
    gx = gw = gb = None
    if cts[0] is not None:
        gx, gw, gb = group_norm_backward(cts[0], x, w, out1, out2, groups=groups)
    if any(ct is not None for ct in cts[1:]):
        grouped = (x.shape[0], groups, 1)
        flat = by_group(x.shape, groups)
        own = None if gx is None else gx.reshape(flat)
        ct_mean, ct_rstd = (None if ct is None else ct.reshape(grouped) for ct in cts[1:])
        mean, rstd = out1.reshape(grouped), out2.reshape(grouped)
        gx = through_statistics(own, ct_mean, ct_rstd, x.reshape(flat), mean, rstd)
        gx = gx.reshape(tuple(x.shape))
    return gx, gw if needs[1] else None, gb if needs[2] else None


def group_norm_samples(rng):
    for shape, groups in [((3, 4), 2), ((2, 6, 3), 3), ((2, 4, 2, 3), 1), ((2, 3, 2, 2), 3),
                          ((0, 4), 2)]:
        c = shape[1]
        x = rng.normal(size=shape)
        yield (x, rng.normal(size=c), rng.normal(size=c)), dict(groups=groups, eps=1e-5)
        yield (x, None, None), dict(groups=groups, eps=1e-5)


group_norm = primitive(
    "group_norm",
    meta=group_norm_meta,
    ref=group_norm_ref,
    vjp=group_norm_vjp,
    lower=group_norm_lower,
    decompose=group_norm_decomposed,
    samples=group_norm_samples,
)


def group_norm_backward_meta(ct: Spec, x: Spec, w: Spec | None, mean: Spec, rstd: Spec, *, groups):
    stat = mean.like(shape=(x.shape[1],))
    return pictured(x), stat, stat


def group_norm_backward_ref(ct, x, w, mean, rstd, *, groups):
    """gx = rstd (g - mean(g) - hat mean(g hat)) with g = ct w; gw = sum(ct hat); gb = sum(ct)."""
    axes, grouped = (0, *range(2, x.ndim)), by_group(x.shape, groups)
    hat = (x.reshape(grouped) - mean[:, :, None]) * rstd[:, :, None]
    gw, gb = (ct * hat.reshape(x.shape)).sum(axis=axes), ct.sum(axis=axes)
    g = (ct if w is None else ct * per_channel(w, x.ndim)).reshape(grouped)
    inner = mean_over(g * hat, (2,), True)
    gx = (g - mean_over(g, (2,), True) - hat * inner) * rstd[:, :, None]
    return gx.reshape(x.shape), gw, gb


def group_norm_backward_lower(outs, ct, x, w, mean, rstd, *, groups):
    """Each sample's sums per channel while its group is in cache; their sums are gw and gb."""
    size, at = group_folds(x, groups)
    count, width = float(math.prod(size)), size[0]
    gx, gw, gb = outs
    samples, channels = x.shape[:2]
    parts = tuple(Buf(f"{o.name}_parts", (samples, channels), None, o.dtype) for o in (gw, gb))

    def g(place):
        value = widened(ct[place])
        return value if w is None else value * cast(w[place[1:2]], value.dtype)

    def hat(place, n, group):
        return (widened(x[place]) - mean[n, group]) * rstd[n, group]

    def body(i):
        n, group = i[0], i[1] // width
        total = reduce("add", size, lambda r: g(at(n, group, r))) / count
        inner = (
            reduce("add", size, lambda r: g(at(n, group, r)) * hat(at(n, group, r), n, group))
            / count
        )
        return (g(i) - total - hat(i, n, group) * inner) * rstd[n, group]

    def sums(i):
        n, c = i
        scaled = reduce(
            "add", x.shape[2:], lambda r: widened(ct[(n, c, *r)]) * hat((n, c, *r), n, c // width)
        )
        return scaled, reduce("add", x.shape[2:], lambda r: widened(ct[(n, c, *r)]))

    def one(i):
        place = tuple(i)
        return widened(ct[place]) * hat(place, i[0], i[1] // width), widened(ct[place])

    return (
        nest(x.shape, body, out=gx),
        nest((samples, channels), sums if len(x.shape) > 2 else one, out=parts),
        *(
            nest(
                (channels,),
                lambda i, part=part: reduce("add", (samples,), lambda r: part[r[0], i[0]]),
                out=out,
            )
            for part, out in zip(parts, (gw, gb))
        ),
    )


def group_norm_backward_decomposed(ct, x, w, mean, rstd, *, groups):
    axes, channels = (0, *range(2, x.ndim)), (1, -1, *(1 for _ in range(x.ndim - 2)))
    grouped = (x.shape[0], groups, 1)
    mean, rstd = mean.reshape(grouped), rstd.reshape(grouped)
    flat = by_group(x.shape, groups)
    hat = (x.reshape(flat) - mean) * rstd
    gw, gb = (ct * hat.reshape(tuple(x.shape))).sum(axes), ct.sum(axes)
    g = (ct if w is None else ct * w.reshape(channels)).reshape(flat)
    gx = rstd * (g - g.mean(2, keepdim=True) - hat * (g * hat).mean(2, keepdim=True))
    return gx.reshape(tuple(x.shape)), gw, gb


def group_norm_backward_samples(rng):
    for (x, w, _), params in group_norm_samples(rng):
        _, mean, rstd = group_norm_ref(x, None, None, **params)
        yield (rng.normal(size=x.shape), x, w, mean, rstd), dict(groups=params["groups"])


group_norm_backward = primitive(
    "group_norm_backward",
    meta=group_norm_backward_meta,
    ref=group_norm_backward_ref,
    vjp="decompose",
    decompose=group_norm_backward_decomposed,
    lower=group_norm_backward_lower,
    samples=group_norm_backward_samples,
)
