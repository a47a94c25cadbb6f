"""A convolution whose result is normalised by given statistics, as compiled programs run it.

Where nobody sees the convolution's own result, y = max(0, scale conv(x, w) + shift) is one pass:
scale and shift of a channel are applied where a tile of the result is stored.
"""

from __future__ import annotations

import numpy as np

from flambeau.core.spec import Spec
from flambeau.loops.api import nest, unary, widened
from flambeau.ops.batch_norm import channel
from flambeau.ops.convolution import conv_meta, conv_ref, conv_samples
from flambeau.ops.registry import primitive

BEHIND_AUTOGRAD = "the compiler writes it into programs, whose gradients are known by then"


def channel_affine_meta(w: Spec | None, b: Spec | None, mean: Spec, var: Spec, *, eps):
    """(scale, shift) of every channel: x scale + shift is batch norm in evaluation."""
    return mean.like(shape=tuple(mean.shape)), mean.like(shape=tuple(mean.shape))


def channel_affine_ref(w, b, mean, var, *, eps):
    scale = 1 / np.sqrt(var + np.asarray(eps, var.dtype))
    scale = scale if w is None else scale * w
    return scale, -mean * scale if b is None else b - mean * scale


def channel_affine_lower(outs, w, b, mean, var, *, eps):
    def body(i):
        scale = unary("rsqrt", widened(var[i]) + eps)
        scale = scale if w is None else scale * widened(w[i])
        centre = widened(mean[i]) * scale
        return scale, -centre if b is None else widened(b[i]) - centre

    return nest(outs[0].shape, body, out=outs)


def channel_affine_samples(rng):
    mean, var = rng.normal(size=3), rng.uniform(0.5, 2, 3)
    yield (rng.normal(size=3), rng.normal(size=3), mean, var), dict(eps=1e-5)
    yield (None, None, mean, var), dict(eps=1e-5)


channel_affine = primitive(
    "channel_affine",
    meta=channel_affine_meta,
    ref=channel_affine_ref,
    lower=channel_affine_lower,
    samples=channel_affine_samples,
    no_gradient=BEHIND_AUTOGRAD,
)


def conv_affine_meta(
    x: Spec, w: Spec, scale: Spec, shift: Spec, *, stride, padding, dilation, groups
) -> Spec:
    return conv_meta(x, w, shift, stride=stride, padding=padding, dilation=dilation, groups=groups)


def conv_affine_ref(x, w, scale, shift, **how):
    """max(0, scale conv(x, w) + shift); NaN stays NaN."""
    y = conv_ref(x, w, None, **how)
    y = y * channel(scale, y.ndim) + channel(shift, y.ndim)
    return np.where(y < 0, np.zeros((), y.dtype), y)


def conv_affine_samples(rng):
    for (x, w, _), params in conv_samples(rng):
        yield (x, w, rng.normal(size=w.shape[0]), rng.normal(size=w.shape[0])), params


conv_affine = primitive(
    "conv_affine",
    meta=conv_affine_meta,
    ref=conv_affine_ref,
    samples=conv_affine_samples,
    no_gradient=BEHIND_AUTOGRAD,
)
