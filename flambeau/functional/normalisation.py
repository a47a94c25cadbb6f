"""Normalisation layers as functions."""

from __future__ import annotations

from flambeau.core.dtype import finfo
from flambeau.core.errors import OpError, ShapeError, ValueRangeError, complaint
from flambeau.functional.padding import pad
from flambeau.functional.register import functional
from flambeau.ops import batch_norm as batch_norms
from flambeau.ops import group_norm as group_norms
from flambeau.ops import normalisation
from flambeau.ops import rms_norm as rms_norms
from flambeau.ops.fused import weighted_sum


def trailing_size(op: str, input, normalized_shape) -> tuple[int, ...]:
    """normalized_shape, which must end the shape of the input."""
    size = tuple(normalized_shape)
    if not size or input._spec.shape[-len(size) :] != size:
        raise ShapeError(
            complaint(
                op,
                f"given normalized_shape={list(size)}, expected input with shape [*, "
                f"{', '.join(map(str, size))}]",
                dict(input=list(input.shape)),
            )
        )
    return size


@functional(toplevel=True)
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Zero mean and unit variance over the trailing dimensions, then weight and bias."""
    size = trailing_size("layer_norm", input, normalized_shape)
    return normalisation.layer_norm(input, weight, bias, dims=len(size), eps=float(eps))[0]


@functional
def batch_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-5,
):
    """Normalise each channel by its batch statistics (training) or by the running ones."""
    if input.ndim == 1 and not input.numel():
        return input.clone()
    if not training:
        return normalised_by(input, running_mean, running_var, weight, bias, eps)
    if input.ndim < 2:
        raise ShapeError(
            complaint("batch_norm", "expected at least 2D input", dict(input=list(input.shape)))
        )
    count = input.shape[0] * input.shape[2:].numel()
    if count == 1:
        raise ValueRangeError(
            complaint(
                "batch_norm",
                "Expected more than 1 value per channel when training",
                dict(input=list(input.shape)),
            )
        )
    y, mean, _, var = batch_norms.batch_norm(input, weight, bias, eps=float(eps))
    if running_mean is not None:
        update_running(running_mean, mean, momentum)
    if running_var is not None:
        update_running(running_var, var, momentum, count / max(count - 1, 1))
    return y


def update_running(running, value, momentum: float, factor: float = 1.0) -> None:
    """running <- (1 - momentum) running + momentum factor value."""
    target = running.detach() if running.requires_grad else running
    value = value.detach() if value.requires_grad else value
    weighted_sum.inplace(target, target, value, 1 - momentum, momentum * factor)


def normalised_by(input, mean, var, weight, bias, eps: float):
    """The input normalised with given statistics of its channels."""
    if mean is None or var is None:
        raise OpError(
            complaint(
                "batch_norm",
                "Expected running_mean and running_var to be defined when training=False",
            )
        )
    return batch_norms.batch_norm_eval(input, weight, bias, mean, var, eps=float(eps))


@functional(toplevel=True)
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalise each group of channels of each sample, then scale and shift per channel."""
    if input.ndim < 2:
        raise OpError(
            complaint(
                "group_norm",
                "Expected at least 2 dimensions for input tensor",
                dict(input=list(input.shape)),
            )
        )
    c = input.shape[1]
    if num_groups <= 0 or c % num_groups:
        raise OpError(
            complaint(
                "group_norm",
                "Expected number of channels in input to be divisible by num_groups",
                dict(channels=c, num_groups=num_groups),
            )
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and tuple(value.shape) != (c,):
            raise OpError(
                complaint(
                    "group_norm",
                    f"Expected {name} to be a vector of size equal "
                    "to the number of channels in input",
                    {name: list(value.shape)},
                )
            )
    return group_norms.group_norm(input, weight, bias, groups=num_groups, eps=float(eps))[0]


def per_channel(y, weight, bias):
    """weight and bias of shape (C,) applied along dimension 1."""
    shape = (1, -1, *(1 for _ in range(y.ndim - 2)))
    if weight is not None:
        y = y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


@functional(toplevel=True)
def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    """Normalise each channel of each sample."""
    if not use_input_stats:
        return normalised_by(input, running_mean, running_var, weight, bias, eps)
    if input.shape[2:].numel() == 1:
        raise ValueRangeError(
            complaint(
                "instance_norm",
                "Expected more than 1 spatial element when training",
                dict(input=list(input.shape)),
            )
        )
    n, c = input.shape[:2]
    if running_mean is None and running_var is None and input.numel():
        whole = input.contiguous()
        return group_norms.group_norm(whole, weight, bias, groups=c, eps=float(eps))[0]
    flat = input.reshape((1, n * c, *input.shape[2:]))
    y, mean, _, var = batch_norms.batch_norm(flat, None, None, eps=float(eps))
    count = input.shape[2:].numel()
    if running_mean is not None:
        update_running(running_mean, mean.reshape((n, c)).mean(0), momentum)
    if running_var is not None:
        unbiased = var.detach().reshape((n, c)).mean(0) * (count / (count - 1))
        update_running(running_var, unbiased, momentum)
    return per_channel(y.reshape(tuple(input.shape)), weight, bias)


@functional(toplevel=True)
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """input / sqrt(mean(input^2) + eps) over the trailing dimensions (Zhang & Sennrich 2019)."""
    size = trailing_size("rms_norm", input, normalized_shape)
    if eps is None:
        eps = finfo(input.dtype.wide).eps
    plain = input.dtype.is_floating_point and (weight is None or weight.dtype is input.dtype)
    if plain and input.numel():
        return rms_norms.rms_norm(input, weight, dims=len(size), eps=float(eps))[0]
    x = input.to(input.dtype.wide)
    dims = tuple(range(-len(size), 0))
    squares = x * x
    y = x * (squares.mean(dims, keepdim=True) + eps).rsqrt()
    if weight is not None:
        y = y * weight
    return y.to(input.dtype) if input.dtype.is_narrow_float else y


@functional
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divide by (k + alpha mean of squares over neighbouring channels)^beta."""
    if input.ndim < 3:
        raise ValueRangeError(
            complaint(
                "local_response_norm",
                "Expected 3D or higher dimensionality input",
                dict(ndim=input.ndim),
            )
        )
    if not input.numel():
        return input
    squares = (input * input).unsqueeze(1)
    width = (size // 2, (size - 1) // 2)
    padded = pad(squares, (*(0,) * (2 * (input.ndim - 2)), *width))
    mean = padded.unfold(2, size, 1).mean(-1).squeeze(1)
    return input / (mean * alpha + k).pow(beta)


@functional
def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """input over its p-norm along dim, the norm at least eps."""
    y = input / input.norm(p, dim, keepdim=True).clamp(min=eps).expand_as(input)
    return y if out is None else out.copy_(y)
