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
