"""Normalisation over trailing dimensions (layer norm).

As all norms it gives the normalised result with the mean and the reciprocal standard deviation that
the backward pass needs. Statistics of narrow floats are kept in float32.
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
    keep = (*x.shape[: x.ndim - dims], *(1 for _ in range(dims)))
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
    lead, size = x.shape[: rank - dims], x.shape[rank - dims :]
    count = math.prod(size)

    def mean(i):
        return reduce("add", size, lambda r: widened(x[(*i, *r)])) / float(count)

    def rstd(i, centre):
        total = reduce(
            "add", size, lambda r: (widened(x[(*i, *r)]) - centre) * (widened(x[(*i, *r)]) - centre)
        )
        return unary("rsqrt", total / float(count) + eps)

    def body(i):
        row, at = i[: rank - dims], i[rank - dims :]
        centre = mean(row)
        y = (widened(x[i]) - centre) * rstd(row, centre)
        if w is not None:
            y = y * widened(w[at])
        return y if b is None else y + widened(b[at])

    def statistics(i):
        centre = mean(i)
        return centre, rstd(i, centre)

    flat = tuple(Buf(o.name, lead, o.strides[: rank - dims], o.dtype) for o in outs[1:])
    return (nest(x.shape, body, out=outs[0]), nest(lead, statistics, out=flat))


def layer_norm_vjp(cts, x, w, _b, out1, out2, dims, needs):
    ct, lead = cts[0], tuple(range(x.ndim - dims))
    gx = gw = gb = None
    if ct is not None:
        if needs[0]:
            gx = layer_norm_backward(ct, x, w, out1, out2, dims=dims)
        if needs[1]:
            gw, gb = layer_norm_affine(ct, x, out1, out2, dims=dims)
        elif needs[2]:
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
        size = shape[len(shape) - dims :]
        yield (
            (rng.normal(size=shape), rng.normal(size=size), rng.normal(size=size)),
            dict(dims=dims, eps=1e-5),
        )
        yield (rng.normal(size=shape), None, None), dict(dims=dims, eps=1e-5)


layer_norm = primitive(
    "layer_norm",
    meta=layer_norm_meta,
    ref=layer_norm_ref,
    vjp=layer_norm_vjp,
    lower=layer_norm_lower,
    samples=layer_norm_samples,
)


def layer_norm_backward_meta(
    ct: Spec, x: Spec, w: Spec | None, mean: Spec, rstd: Spec, *, dims
) -> Spec:
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
    size = x.shape[rank - dims :]
    count, ones = float(math.prod(size)), (0,) * dims

    def body(i):
        lead = i[: rank - dims]
        centre, scale = mean[(*lead, *ones)], rstd[(*lead, *ones)]

        def g(r):
            value = widened(ct[(*lead, *r)])
            return value if w is None else value * widened(w[tuple(r)])

        def hat(r):
            return (widened(x[(*lead, *r)]) - centre) * scale

        total = reduce("add", size, g) / count
        inner = reduce("add", size, lambda r: g(r) * hat(r)) / count
        at = i[rank - dims :]
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
    "layer_norm_backward",
    meta=layer_norm_backward_meta,
    ref=layer_norm_backward_ref,
    vjp="decompose",
    decompose=layer_norm_backward_decomposed,
    lower=layer_norm_backward_lower,
    samples=layer_norm_backward_samples,
)


def layer_norm_affine_meta(ct: Spec, x: Spec, mean: Spec, rstd: Spec, *, dims):
    """The gradients of weight and bias, in the dtype of the statistics."""
    s = mean.like(shape=tuple(x.shape[x.ndim - dims :]))
    return s, s


def layer_norm_affine_ref(ct, x, mean, rstd, *, dims):
    axes = tuple(range(x.ndim - dims))
    return (ct * ((x - mean) * rstd)).sum(axis=axes), ct.sum(axis=axes)


def layer_norm_affine_lower(outs, ct, x, mean, rstd, *, dims):
    lead, size = x.shape[: len(x.shape) - dims], x.shape[len(x.shape) - dims :]
    ones = (0,) * dims

    def hat(r, i):
        return (widened(x[(*r, *i)]) - mean[(*r, *ones)]) * rstd[(*r, *ones)]

    def body(i):
        return (
            reduce("add", lead, lambda r: widened(ct[(*r, *i)]) * hat(r, i)),
            reduce("add", lead, lambda r: widened(ct[(*r, *i)])),
        )

    def single(i):
        return widened(ct[i]) * hat((), i), widened(ct[i])

    return nest(size, body if lead else single, out=outs)


def layer_norm_affine_decomposed(ct, x, mean, rstd, *, dims):
    lead = tuple(range(x.ndim - dims))
    scaled = ct * ((x - mean) * rstd)
    return (scaled.sum(lead), ct.sum(lead)) if lead else (scaled, ct)


layer_norm_affine = primitive(
    "layer_norm_affine",
    meta=layer_norm_affine_meta,
    ref=layer_norm_affine_ref,
    vjp="decompose",
    decompose=layer_norm_affine_decomposed,
    lower=layer_norm_affine_lower,
    samples=lambda rng: (
        ((ct, x, mean, rstd), params)
        for (ct, x, _, mean, rstd), params in layer_norm_backward_samples(rng)
    ),
)
