"""Normalisation layers as functions."""

from __future__ import annotations

from flambeau.core.errors import ShapeError, ValueRangeError, complaint
from flambeau.functional.register import functional
from flambeau.ops import normalisation


@functional
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Zero mean and unit variance over the trailing dimensions, then weight and bias."""
    size = tuple(normalized_shape)
    if not size or tuple(input.shape[-len(size):]) != size:
        raise ShapeError(complaint(
            "layer_norm", f"given normalized_shape={list(size)}, expected input with shape [*, "
            f"{', '.join(map(str, size))}]", dict(input=list(input.shape))))
    return normalisation.layer_norm(input, weight, bias, dims=len(size), eps=float(eps))[0]


@functional
def batch_norm(input, running_mean=None, running_var=None, weight=None, bias=None, training=False,
               momentum=0.1, eps=1e-5):
    """Normalise each channel by its batch statistics (training) or by the running ones."""
    if not training:
        return normalised_by(input, running_mean, running_var, weight, bias, eps)
    count = input.numel() // max(input.shape[1], 1)
    if count <= 1:
        raise ValueRangeError(complaint(
            "batch_norm", "Expected more than 1 value per channel when training",
            dict(input=list(input.shape))))
    y, mean, _, var = normalisation.batch_norm(input, weight, bias, eps=float(eps))
    if running_mean is not None:
        update_running(running_mean, mean, momentum)
    if running_var is not None:
        update_running(running_var, var.detach() * (count / (count - 1)), momentum)
    return y


def update_running(running, value, momentum: float) -> None:
    """running <- (1 - momentum) running + momentum value."""
    target = running.detach()
    target.mul_(1 - momentum).add_(value.detach().to(target.dtype), alpha=momentum)


def normalised_by(input, mean, var, weight, bias, eps: float):
    if mean is None or var is None:
        raise ValueRangeError(complaint(
            "batch_norm", "Expected running_mean and running_var to be defined when training=False"))
    shape = (1, -1, *(1 for _ in range(input.ndim - 2)))
    scale = (var + eps).rsqrt()
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    kind = input.dtype
    return input * scale.reshape(shape).to(kind) + shift.reshape(shape).to(kind)
