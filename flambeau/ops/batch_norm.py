"""Normalisation of every channel, by the statistics of the batch or by given ones."""

from __future__ import annotations

import math

import numpy as np

from flambeau.core.errors import ShapeError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.loops.api import Buf, cast, nest, reduce, unary, widened
from flambeau.ops.normalisation import mean_over, through_statistics
from flambeau.ops.registry import primitive

# by the batch's statistics -------------------------------------------------------------------


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
        return (
            reduce(
                "add",
                size,
                lambda r: (widened(x[at(i[0], r)]) - mean[i]) * (widened(x[at(i[0], r)]) - mean[i]),
            )
            / count
        )

    def result(i):
        scale = rstd[i[1:2]] if w is None else rstd[i[1:2]] * widened(w[i[1:2]])
        y = (widened(x[i]) - mean[i[1:2]]) * scale
        return y if b is None else y + widened(b[i[1:2]])

    channels = (x.shape[1],)
    return (
        nest(channels, centre, out=mean),
        nest(channels, variance, out=var),
        nest(channels, lambda i: unary("rsqrt", var[i] + eps), out=rstd),
        nest(x.shape, result, out=outs[0]),
    )


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

    return (
        nest(channels, shift, out=gb),
        nest(channels, scaled, out=gw),
        nest(x.shape, result, out=gx),
    )


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


batch_norm = primitive(
    "batch_norm",
    meta=batch_norm_meta,
    ref=batch_norm_ref,
    vjp=batch_norm_vjp,
    lower=batch_norm_lower,
    samples=batch_norm_samples,
)


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
    "batch_norm_backward",
    meta=batch_norm_backward_meta,
    ref=batch_norm_backward_ref,
    vjp="decompose",
    decompose=batch_norm_backward_decomposed,
    lower=batch_norm_backward_lower,
    samples=batch_norm_backward_samples,
)


# by given statistics -------------------------------------------------------------------------


def batch_norm_eval_meta(
    x: Spec, w: Spec | None, b: Spec | None, mean: Spec, var: Spec, *, eps
) -> Spec:
    if x.ndim < 2:
        raise ShapeError(
            complaint("batch_norm", "expected at least 2D input", dict(input=list(x.shape)))
        )
    for name, s in (("weight", w), ("bias", b), ("running_mean", mean), ("running_var", var)):
        if s is not None and tuple(s.shape) != (x.shape[1],):
            raise ShapeError(
                complaint(
                    "batch_norm",
                    f"{name} should contain {x.shape[1]} elements",
                    {name: list(s.shape), "input": list(x.shape)},
                )
            )
    return x.preserved()


def batch_norm_eval_ref(x, w, b, mean, var, *, eps):
    """(x - mean) w / sqrt(var + eps) + b, as x scale + shift."""
    scale = 1 / np.sqrt(var + np.asarray(eps, var.dtype))
    if w is not None:
        scale = scale * w
    shift = -mean * scale if b is None else b - mean * scale
    return (x * channel(scale, x.ndim) + channel(shift, x.ndim)).astype(x.dtype, copy=False)


def batch_norm_eval_lower(outs, x, w, b, mean, var, *, eps):
    wide = x.dtype.wide

    def scale(c):
        rstd = unary("rsqrt", cast(var[c], wide) + eps)
        return rstd if w is None else rstd * cast(w[c], wide)

    def shift(c):
        centre = cast(mean[c], wide) * scale(c)
        return -centre if b is None else cast(b[c], wide) - centre

    if outs[0].strides[1] != 1:
        return nest(x.shape, lambda i: widened(x[i]) * scale(i[1:2]) + shift(i[1:2]), out=outs[0])
    kept = tuple(Buf(f"{outs[0].name}_{k}", (x.shape[1],), None, wide) for k in ("scale", "shift"))
    return (
        nest((x.shape[1],), lambda i: (scale(i), shift(i)), out=kept),
        nest(x.shape, lambda i: widened(x[i]) * kept[0][i[1:2]] + kept[1][i[1:2]], out=outs[0]),
    )


def batch_norm_eval_decomposed(x, w, b, mean, var, *, eps):
    shape = (1, -1, *(1 for _ in range(x.ndim - 2)))
    mean, var = mean.detach(), var.detach()
    scale = (var + eps).rsqrt()
    if w is not None:
        scale = scale * w
    shift = -mean * scale if b is None else b - mean * scale
    return x * scale.reshape(shape).to(x.dtype) + shift.reshape(shape).to(x.dtype)


def batch_norm_eval_vjp(ct, x, w, _b, mean, var, eps, needs):
    """The statistics are constants, as PyTorch has them."""
    if needs[1] or needs[2]:
        gx, gw, gb = batch_norm_eval_backward(ct, x, w, mean, var, eps=eps)
        return (
            gx if needs[0] else None,
            gw if needs[1] else None,
            gb if needs[2] else None,
            None,
            None,
        )
    scale = (var + eps).rsqrt() if w is None else (var + eps).rsqrt() * w
    return (ct * scale.reshape((1, -1, *(1 for _ in range(x.ndim - 2)))), None, None, None, None)


def batch_norm_eval_samples(rng):
    for (x, w, b), params in batch_norm_samples(rng):
        c = x.shape[1]
        yield (x, w, b, rng.normal(size=c), rng.uniform(0.5, 2, c)), params


batch_norm_eval = primitive(
    "batch_norm_eval",
    meta=batch_norm_eval_meta,
    ref=batch_norm_eval_ref,
    vjp=batch_norm_eval_vjp,
    lower=batch_norm_eval_lower,
    decompose=batch_norm_eval_decomposed,
    samples=batch_norm_eval_samples,
)


def batch_norm_eval_backward_meta(ct: Spec, x: Spec, w: Spec | None, mean: Spec, var: Spec, *, eps):
    stat = mean.like(dtype=x.dtype.wide)
    return x.preserved(), stat, stat


def batch_norm_eval_backward_ref(ct, x, w, mean, var, *, eps):
    """gx = ct w rstd; gw = sum(ct hat); gb = sum(ct)."""
    axes, rank = others(x.ndim), x.ndim
    rstd = 1 / np.sqrt(var + np.asarray(eps, var.dtype))
    gw = (ct * (x - channel(mean, rank))).sum(axis=axes) * rstd
    gx = ct * channel(rstd if w is None else rstd * w, rank)
    return gx.astype(x.dtype, copy=False), gw, ct.sum(axis=axes)


def batch_norm_eval_backward_lower(outs, ct, x, w, mean, var, *, eps):
    size, at = channel_folds(x)
    gx, gw, gb = outs
    wide = x.dtype.wide

    def rstd(c):
        return unary("rsqrt", cast(var[c], wide) + eps)

    def result(i):
        c = i[1:2]
        return widened(ct[i]) * (rstd(c) if w is None else rstd(c) * cast(w[c], wide))

    def folds(i):
        centre = cast(mean[i], wide)
        scaled = reduce(
            "add", size, lambda r: widened(ct[at(i[0], r)]) * (widened(x[at(i[0], r)]) - centre)
        )
        return scaled * rstd(i), reduce("add", size, lambda r: widened(ct[at(i[0], r)]))

    return (nest((x.shape[1],), folds, out=(gw, gb)), nest(x.shape, result, out=gx))


def batch_norm_eval_backward_decomposed(ct, x, w, mean, var, *, eps):
    axes, shape = others(x.ndim), (1, -1, *(1 for _ in range(x.ndim - 2)))
    rstd = (var + eps).rsqrt()
    gw = (ct * (x - mean.reshape(shape))).sum(axes) * rstd
    return ct * (rstd if w is None else rstd * w).reshape(shape), gw, ct.sum(axes)


def batch_norm_eval_backward_samples(rng):
    for (x, w, _, mean, var), params in batch_norm_eval_samples(rng):
        yield (rng.normal(size=x.shape), x, w, mean, var), params


batch_norm_eval_backward = primitive(
    "batch_norm_eval_backward",
    meta=batch_norm_eval_backward_meta,
    ref=batch_norm_eval_backward_ref,
    vjp="decompose",
    decompose=batch_norm_eval_backward_decomposed,
    lower=batch_norm_eval_backward_lower,
    samples=batch_norm_eval_backward_samples,
)
