"""Division by the root mean square over trailing dimensions (Zhang & Sennrich 2019)."""

from __future__ import annotations

import math

import numpy as np

from flambeau.core.spec import Spec, spec
from flambeau.loops.api import Buf, nest, reduce, unary, widened
from flambeau.ops.normalisation import mean_over
from flambeau.ops.registry import primitive


def rms_norm_meta(x: Spec, w: Spec | None, *, dims, eps):
    """Over the last `dims` dimensions. Returns (y, rstd), the latter with sizes of one."""
    keep = (*x.shape[: x.ndim - dims], *(1 for _ in range(dims)))
    return x.like(shape=tuple(x.shape)), spec(x.dtype.wide, keep, None, x.device)


def rms_norm_ref(x, w, *, dims, eps):
    """y = x rstd w with rstd = 1 / sqrt(mean(x^2) + eps)."""
    axes = tuple(range(x.ndim - dims, x.ndim))
    rstd = 1 / np.sqrt(mean_over(np.square(x), axes, True) + np.asarray(eps, x.dtype))
    return (x * rstd if w is None else x * rstd * w), rstd


def rms_norm_lower(outs, x, w, *, dims, eps):
    rank = len(x.shape)
    lead, size = x.shape[: rank - dims], x.shape[rank - dims :]
    count = float(math.prod(size))

    def rstd(row):
        total = reduce("add", size, lambda r: widened(x[(*row, *r)]) * widened(x[(*row, *r)]))
        return unary("rsqrt", total / count + eps)

    def body(i):
        y = widened(x[i]) * rstd(i[: rank - dims])
        return y if w is None else y * widened(w[i[rank - dims :]])

    flat = Buf(outs[1].name, lead, outs[1].strides[: rank - dims], outs[1].dtype)
    return nest(x.shape, body, out=outs[0]), nest(lead, rstd, out=flat)


def rms_norm_decomposed(x, w, *, dims, eps):
    axes = tuple(range(x.ndim - dims, x.ndim))
    rstd = ((x * x).mean(axes, keepdim=True) + eps).rsqrt()
    return (x * rstd if w is None else x * rstd * w), rstd


def rms_norm_vjp(cts, x, w, out1, dims, needs):
    ct, gx, gw = cts[0], None, None
    if ct is not None:
        gx = rms_norm_backward(ct, x, w, out1, dims=dims) if needs[0] else None
        gw = rms_norm_affine(ct, x, out1, dims=dims) if needs[1] else None
    if cts[1] is not None:
        count = x.numel() // max(out1.numel(), 1)
        through = x * (cts[1] * out1 * out1 * out1 / -count)
        gx = through if gx is None else gx + through
    return gx, gw


def rms_norm_samples(rng):
    for shape, dims in [((2, 3), 1), ((2, 3, 4), 2), ((4,), 1)]:
        x = rng.normal(size=shape)
        yield (x, rng.normal(size=shape[len(shape) - dims :])), dict(dims=dims, eps=1e-5)
        yield (x, None), dict(dims=dims, eps=1e-5)


rms_norm = primitive(
    "rms_norm",
    meta=rms_norm_meta,
    ref=rms_norm_ref,
    vjp=rms_norm_vjp,
    lower=rms_norm_lower,
    decompose=rms_norm_decomposed,
    samples=rms_norm_samples,
)


def rms_norm_backward_meta(ct: Spec, x: Spec, w: Spec | None, rstd: Spec, *, dims) -> Spec:
    return x.like(shape=tuple(x.shape))


def rms_norm_backward_ref(ct, x, w, rstd, *, dims):
    """rstd (g - hat mean(g hat)) with g = ct w and hat = x rstd."""
    axes = tuple(range(x.ndim - dims, x.ndim))
    g, hat = ct if w is None else ct * w, x * rstd
    return rstd * (g - hat * mean_over(g * hat, axes, True))


def rms_norm_backward_lower(outs, ct, x, w, rstd, *, dims):
    rank = len(x.shape)
    size = x.shape[rank - dims :]
    count, ones = float(math.prod(size)), (0,) * dims

    def body(i):
        row = i[: rank - dims]
        scale = rstd[(*row, *ones)]

        def g(r):
            value = widened(ct[(*row, *r)])
            return value if w is None else value * widened(w[tuple(r)])

        def hat(r):
            return widened(x[(*row, *r)]) * scale

        inner = reduce("add", size, lambda r: g(r) * hat(r)) / count
        at = i[rank - dims :]
        return (g(at) - hat(at) * inner) * scale

    return nest(x.shape, body, out=outs[0])


def rms_norm_backward_decomposed(ct, x, w, rstd, *, dims):
    axes = tuple(range(x.ndim - dims, x.ndim))
    g, hat = ct if w is None else ct * w, x * rstd
    return rstd * (g - hat * (g * hat).mean(axes, keepdim=True))


def rms_norm_backward_samples(rng):
    for (x, w), params in rms_norm_samples(rng):
        rstd = rms_norm_ref(x, None, **params)[1]
        yield (rng.normal(size=x.shape), x, w, rstd), dict(dims=params["dims"])


rms_norm_backward = primitive(
    "rms_norm_backward",
    meta=rms_norm_backward_meta,
    ref=rms_norm_backward_ref,
    vjp="decompose",
    decompose=rms_norm_backward_decomposed,
    lower=rms_norm_backward_lower,
    samples=rms_norm_backward_samples,
)


def rms_norm_affine_meta(ct: Spec, x: Spec, rstd: Spec, *, dims) -> Spec:
    """The gradient of the weight, in the dtype of the statistics."""
    return rstd.like(shape=tuple(x.shape[x.ndim - dims :]))


def rms_norm_affine_ref(ct, x, rstd, *, dims):
    return (ct * (x * rstd)).sum(axis=tuple(range(x.ndim - dims)))


def rms_norm_affine_lower(outs, ct, x, rstd, *, dims):
    lead, size = x.shape[: len(x.shape) - dims], x.shape[len(x.shape) - dims :]
    ones = (0,) * dims

    def term(r, i):
        return widened(ct[(*r, *i)]) * (widened(x[(*r, *i)]) * rstd[(*r, *ones)])

    def body(i):
        return reduce("add", lead, lambda r: term(r, i)) if lead else term((), i)

    return nest(size, body, out=outs[0])


def rms_norm_affine_decomposed(ct, x, rstd, *, dims):
    lead, scaled = tuple(range(x.ndim - dims)), ct * (x * rstd)
    return scaled.sum(lead) if lead else scaled


rms_norm_affine = primitive(
    "rms_norm_affine",
    meta=rms_norm_affine_meta,
    ref=rms_norm_affine_ref,
    vjp="decompose",
    decompose=rms_norm_affine_decomposed,
    lower=rms_norm_affine_lower,
    samples=lambda rng: (
        ((ct, x, rstd), params) for (ct, x, _, rstd), params in rms_norm_backward_samples(rng)
    ),
)
