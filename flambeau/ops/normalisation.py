"""Normalisation over trailing dimensions (layer norm) or over all but the channels (batch norm).

Both give the normalised result with the mean and the reciprocal standard deviation that the
backward pass needs. Statistics of narrow floats are kept in float32.
"""

from __future__ import annotations

import math

import numpy as np

from flambeau.core.spec import Spec, spec
from flambeau.loops.api import Buf, nest, reduce, unary, widened
from flambeau.ops.registry import primitive

# layer norm ----------------------------------------------------------------------------------


def layer_norm_meta(x: Spec, w: Spec | None, b: Spec | None, *, dims, eps):
    """Over the last `dims` dimensions. Returns (y, mean, rstd), the latter with sizes of one."""
    keep = (*x.shape[:x.ndim - dims], *(1 for _ in range(dims)))
    stat = spec(x.dtype.wide, keep, None, x.device)
    return x.like(shape=tuple(x.shape)), stat, stat


def mean_over(x: np.ndarray, axes: tuple[int, ...], keepdims: bool = False) -> np.ndarray:
    """NumPy's mean, which warns of empty slices: the mean of nothing is NaN and no news."""
    count = math.prod(x.shape[a] for a in axes)
    if not count:
        return np.full_like(x.sum(axis=axes, keepdims=keepdims), np.nan)
    return x.mean(axis=axes, keepdims=keepdims)


def layer_norm_ref(x, w, b, *, dims, eps):
    axes = tuple(range(x.ndim - dims, x.ndim))
    mean = mean_over(x, axes, True)
    y = x - mean
    rstd = 1 / np.sqrt(mean_over(np.square(y), axes, True) + np.asarray(eps, x.dtype))
    y *= rstd
    if w is not None:
        y *= w
    if b is not None:
        y += b
    return y, mean, rstd


def layer_norm_lower(outs, x, w, b, *, dims, eps):
    """Mean, then squared deviations, then the result, over a row that stays in cache."""
    rank = len(x.shape)
    lead, size = x.shape[:rank - dims], x.shape[rank - dims:]
    count = math.prod(size)

    def mean(i):
        return reduce("add", size, lambda r: widened(x[(*i, *r)])) / float(count)

    def rstd(i, centre):
        total = reduce("add", size, lambda r: (widened(x[(*i, *r)]) - centre)
                       * (widened(x[(*i, *r)]) - centre))
        return unary("rsqrt", total / float(count) + eps)

    def body(i):
        row, at = i[:rank - dims], i[rank - dims:]
        centre = mean(row)
        y = (widened(x[i]) - centre) * rstd(row, centre)
        if w is not None:
            y = y * widened(w[at])
        return y if b is None else y + widened(b[at])

    def statistics(i):
        centre = mean(i)
        return centre, rstd(i, centre)

    flat = tuple(Buf(o.name, lead, o.strides[:rank - dims], o.dtype) for o in outs[1:])
    return (nest(x.shape, body, out=outs[0]), nest(lead, statistics, out=flat))


def layer_norm_vjp(cts, x, w, _b, out1, out2, dims, needs):
    ct, lead = cts[0], tuple(range(x.ndim - dims))
    gx = gw = gb = None
    if ct is not None:
        if needs[0]:
            gx = layer_norm_backward(ct, x, w, out1, out2, dims=dims)
        if needs[1]:
            scaled = ct * ((x - out1) * out2)
            gw = scaled.sum(lead) if lead else scaled
        if needs[2]:
            gb = ct.sum(lead) if lead else ct
    return through_statistics(gx, cts[1], cts[2], x, out1, out2), gw, gb


def through_statistics(gx, ct_mean, ct_rstd, x, mean, rstd, ct_var=None):
    """Add what reaches x through the statistics, which double backward asks for."""
    count = x.numel() // max(mean.numel(), 1)
    parts = [] if gx is None else [gx]
    if ct_mean is not None:
        parts.append((ct_mean / count).expand(x.shape))
    if ct_rstd is not None:
        parts.append((x - mean) * (ct_rstd * rstd * rstd * rstd / -count))
    if ct_var is not None:
        parts.append((x - mean) * (ct_var * 2 / count))
    total = None
    for part in parts:
        total = part if total is None else total + part
    return total


def layer_norm_samples(rng):
    for shape, dims in [((2, 3), 1), ((2, 3, 4), 2), ((4,), 1)]:
        size = shape[len(shape) - dims:]
        yield ((rng.normal(size=shape), rng.normal(size=size), rng.normal(size=size)),
               dict(dims=dims, eps=1e-5))
        yield (rng.normal(size=shape), None, None), dict(dims=dims, eps=1e-5)


layer_norm = primitive("layer_norm", meta=layer_norm_meta, ref=layer_norm_ref,
                       vjp=layer_norm_vjp, lower=layer_norm_lower, samples=layer_norm_samples)


def layer_norm_backward_meta(ct: Spec, x: Spec, w: Spec | None, mean: Spec, rstd: Spec, *,
                             dims) -> Spec:
    return x.like(shape=tuple(x.shape))


def layer_norm_backward_ref(ct, x, w, mean, rstd, *, dims):
    """rstd (g - mean(g) - hat mean(g hat)) with g = ct w and hat = (x - mean) rstd."""
    axes = tuple(range(x.ndim - dims, x.ndim))
    g = ct if w is None else ct * w
    hat = (x - mean) * rstd
    inner = mean_over(g * hat, axes, True)
    hat *= inner
    g = g - mean_over(g, axes, True)
    g -= hat
    g *= rstd
    return g


def layer_norm_backward_lower(outs, ct, x, w, mean, rstd, *, dims):
    rank = len(x.shape)
    size = x.shape[rank - dims:]
    count, ones = float(math.prod(size)), (0,) * dims

    def body(i):
        lead = i[:rank - dims]
        centre, scale = mean[(*lead, *ones)], rstd[(*lead, *ones)]

        def g(r):
            value = widened(ct[(*lead, *r)])
            return value if w is None else value * widened(w[tuple(r)])

        def hat(r):
            return (widened(x[(*lead, *r)]) - centre) * scale

        total = reduce("add", size, g) / count
        inner = reduce("add", size, lambda r: g(r) * hat(r)) / count
        at = i[rank - dims:]
        return (g(at) - total - hat(at) * inner) * scale

    return nest(x.shape, body, out=outs[0])


def layer_norm_backward_decomposed(ct, x, w, mean, rstd, *, dims):
    axes = tuple(range(x.ndim - dims, x.ndim))
    g = ct if w is None else ct * w
    hat = (x - mean) * rstd
    return rstd * (g - g.mean(axes, keepdim=True) - hat * (g * hat).mean(axes, keepdim=True))


def layer_norm_backward_samples(rng):
    for (x, w, _), params in layer_norm_samples(rng):
        dims = params["dims"]
        _, mean, rstd = layer_norm_ref(x, None, None, dims=dims, eps=1e-5)
        yield (rng.normal(size=x.shape), x, w, mean, rstd), dict(dims=dims)


layer_norm_backward = primitive(
    "layer_norm_backward", meta=layer_norm_backward_meta, ref=layer_norm_backward_ref,
    vjp="decompose", decompose=layer_norm_backward_decomposed, lower=layer_norm_backward_lower,
    samples=layer_norm_backward_samples)


# batch norm ----------------------------------------------------------------------------------


def batch_norm_meta(x: Spec, w: Spec | None, b: Spec | None, *, eps):
    """Over every dimension but 1. Returns (y, mean, rstd, biased variance) of shape (C,)."""
    stat = spec(x.dtype.wide, (x.shape[1],), None, x.device)
    return x.preserved(), stat, stat, stat


def channel(v: np.ndarray, rank: int) -> np.ndarray:
    return v.reshape(1, -1, *(1 for _ in range(rank - 2)))


def others(rank: int) -> tuple[int, ...]:
    return (0, *range(2, rank))


def batch_norm_ref(x, w, b, *, eps):
    axes, rank = others(x.ndim), x.ndim
    mean = mean_over(x, axes)
    y = x - channel(mean, rank)
    var = mean_over(np.square(y), axes)
    rstd = 1 / np.sqrt(var + np.asarray(eps, var.dtype))
    y *= channel(rstd if w is None else rstd * w, rank)
    if b is not None:
        y += channel(b, rank)
    return y, mean, rstd, var


def channel_folds(x):
    """(sizes of the folded dimensions, r -> index of element r of channel c)."""
    size = (x.shape[0], *x.shape[2:])
    return size, lambda c, r: (r[0], c, *r[1:])


def batch_norm_lower(outs, x, w, b, *, eps):
    """Mean, squared deviations, then the result: three passes over a channel."""
    size, at = channel_folds(x)
    count = float(math.prod(size))
    mean, rstd, var = outs[1:]

    def centre(i):
        return reduce("add", size, lambda r: widened(x[at(i[0], r)])) / count

    def variance(i):
        return reduce("add", size, lambda r: (widened(x[at(i[0], r)]) - mean[i])
                      * (widened(x[at(i[0], r)]) - mean[i])) / count

    def result(i):
        scale = rstd[i[1:2]] if w is None else rstd[i[1:2]] * widened(w[i[1:2]])
        y = (widened(x[i]) - mean[i[1:2]]) * scale
        return y if b is None else y + widened(b[i[1:2]])

    channels = (x.shape[1],)
    return (nest(channels, centre, out=mean), nest(channels, variance, out=var),
            nest(channels, lambda i: unary("rsqrt", var[i] + eps), out=rstd),
            nest(x.shape, result, out=outs[0]))


def batch_norm_backward_lower(outs, ct, x, w, mean, rstd):
    size, at = channel_folds(x)
    count = float(math.prod(size))
    gx, gw, gb = outs

    def hat(i):
        return (widened(x[i]) - mean[i[1:2]]) * rstd[i[1:2]]

    def result(i):
        scale = rstd[i[1:2]] if w is None else rstd[i[1:2]] * widened(w[i[1:2]])
        return (widened(ct[i]) - gb[i[1:2]] / count - hat(i) * (gw[i[1:2]] / count)) * scale

    channels = (x.shape[1],)
    def shift(i):
        return reduce("add", size, lambda r: widened(ct[at(i[0], r)]))

    def scaled(i):
        return reduce("add", size, lambda r: widened(ct[at(i[0], r)]) * hat(at(i[0], r)))

    return (nest(channels, shift, out=gb), nest(channels, scaled, out=gw),
            nest(x.shape, result, out=gx))


def batch_norm_vjp(cts, x, w, _b, out1, out2, needs):
    gx = gw = gb = None
    if cts[0] is not None:
        gx, gw, gb = batch_norm_backward(cts[0], x, w, out1, out2)
    if any(ct is not None for ct in cts[1:]):
        shape = (1, -1, *(1 for _ in range(x.ndim - 2)))
        mean, rstd = out1.reshape(shape), out2.reshape(shape)
        extra = [None if ct is None else ct.reshape(shape) for ct in cts[1:]]
        gx = through_statistics(gx, extra[0], extra[1], x, mean, rstd, extra[2])
    return gx, gw if needs[1] else None, gb if needs[2] else None


def batch_norm_samples(rng):
    for shape in [(3, 2), (2, 3, 4), (2, 2, 3, 3)]:
        c = shape[1]
        yield (rng.normal(size=shape), rng.normal(size=c), rng.normal(size=c)), dict(eps=1e-5)
        yield (rng.normal(size=shape), None, None), dict(eps=1e-5)


batch_norm = primitive("batch_norm", meta=batch_norm_meta, ref=batch_norm_ref,
                       vjp=batch_norm_vjp, lower=batch_norm_lower, samples=batch_norm_samples)


def batch_norm_backward_meta(ct: Spec, x: Spec, w: Spec | None, mean: Spec, rstd: Spec):
    return x.preserved(), mean.like(), mean.like()


def batch_norm_backward_ref(ct, x, w, mean, rstd):
    """gx = w rstd (ct - mean(ct) - hat mean(ct hat)); gw = sum(ct hat); gb = sum(ct)."""
    axes, rank = others(x.ndim), x.ndim
    count = x.size // max(x.shape[1], 1)
    hat = (x - channel(mean, rank)) * channel(rstd, rank)
    gb = ct.sum(axis=axes)
    gw = (ct * hat).sum(axis=axes)
    hat *= channel(gw / count, rank)
    gx = ct - channel(gb / count, rank)
    gx -= hat
    gx *= channel(rstd if w is None else rstd * w, rank)
    return gx, gw, gb


def batch_norm_backward_decomposed(ct, x, w, mean, rstd):
    axes, shape = others(x.ndim), (1, -1, *(1 for _ in range(x.ndim - 2)))
    count = x.numel() // x.shape[1]
    hat = (x - mean.reshape(shape)) * rstd.reshape(shape)
    gb, gw = ct.sum(axes), (ct * hat).sum(axes)
    scale = (rstd if w is None else rstd * w).reshape(shape)
    gx = scale * (ct - (gb / count).reshape(shape) - hat * (gw / count).reshape(shape))
    return gx, gw, gb


def batch_norm_backward_samples(rng):
    for (x, w, _), _ in batch_norm_samples(rng):
        _, mean, rstd, _ = batch_norm_ref(x, None, None, eps=1e-5)
        yield (rng.normal(size=x.shape), x, w, mean, rstd), {}


batch_norm_backward = primitive(
    "batch_norm_backward", meta=batch_norm_backward_meta, ref=batch_norm_backward_ref,
    vjp="decompose", decompose=batch_norm_backward_decomposed, lower=batch_norm_backward_lower,
    samples=batch_norm_backward_samples)
