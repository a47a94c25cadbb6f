"""Dropout: noise drawn once and multiplied, as PyTorch draws it."""

from __future__ import annotations

from flambeau.core.errors import ValueRangeError, complaint
from flambeau.functional.activation import written
from flambeau.functional.register import functional
from flambeau.random.primitives import bernoulli, dropout_mask


def check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueRangeError(complaint("dropout", "probability has to be between 0 and 1",
                                        dict(p=p)))


@functional(toplevel=True)
def dropout(input, p=0.5, training=True, inplace=False):
    """Zero elements with probability p and scale the others by 1 / (1 - p)."""
    check_probability(p)
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return written("dropout", input, input * 0.0, inplace)
    noise = dropout_mask(shape=tuple(input.shape), dtype=input.dtype, device=input.device,
                         strides=None if input._spec.is_contiguous
                         else input._spec.preserved().strides, p=float(p))
    return written("dropout", input, input * noise, inplace)


def feature_dropout(input, p: float, training: bool, inplace: bool):
    """Whole channels at a time: the noise has shape (N, C, 1, ..)."""
    check_probability(p)
    if not training or p == 0.0:
        return input
    shape = (*input.shape[:2], *(1 for _ in input.shape[2:]))
    if p == 1.0:
        return written("dropout", input, input * 0.0, inplace)
    noise = bernoulli(shape=shape, dtype=input.dtype, device=input.device, p=1.0 - p) / (1.0 - p)
    return written("dropout", input, input * noise, inplace)


def channelwise(name: str, ranks: tuple[int, ...]) -> None:
    def dropout_nd(input, p=0.5, training=True, inplace=False):
        check_probability(p)
        if input.ndim == min(ranks) and name != "dropout2d":
            x = feature_dropout(input.unsqueeze(0), p, training, False).squeeze(0)
            return written(name, input, x, inplace)
        return feature_dropout(input, p, training, inplace)

    dropout_nd.__doc__ = "Zero whole channels with probability p and scale the others."
    functional(dropout_nd, name=name)


channelwise("dropout1d", (2, 3))
channelwise("dropout2d", (3, 4))
channelwise("dropout3d", (4, 5))


ALPHA = 1.7580993408473766  # -scale * alpha of selu: what a dropped unit becomes


def alpha_noise(input, p: float, training: bool, inplace: bool, shape: tuple):
    """Keeps mean 0 and variance 1 of selu's outputs (Klambauer et al. 2017)."""
    check_probability(p)
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return written("alpha_dropout", input, input * 0.0, inplace)
    scale = 1.0 / ((ALPHA * ALPHA * p + 1) * (1 - p)) ** 0.5
    kept = bernoulli(shape=shape, dtype=input.dtype, device=input.device, p=1.0 - p)
    shift = (kept - 1) * (ALPHA * scale) + ALPHA * scale * p
    return written("alpha_dropout", input, input * (kept * scale) + shift, inplace)


@functional(toplevel=True)
def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps the statistics of selu."""
    return alpha_noise(input, p, training, inplace, tuple(input.shape))


@functional(toplevel=True)
def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """alpha_dropout of whole channels."""
    shape = (*input.shape[:2], *(1 for _ in input.shape[2:]))
    return alpha_noise(input, p, training, inplace, shape)
