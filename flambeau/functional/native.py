"""The forms of layers that also return their statistics, and other names from PyTorch's core."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, ShapeError, complaint
from flambeau.functional.normalisation import normalised_by, update_running
from flambeau.functional.padding import pad as pad_function
from flambeau.ops import normalisation
from flambeau.ops.batch_norm import batch_norm
from flambeau.ops.group_norm import group_norm
from flambeau.tensor.choosing import where
from flambeau.tensor.joining import cat
from flambeau.tensor.public import FUNCTIONS, public
from flambeau.tensor.tensor import Tensor


def root(f):
    return public(f, method=False)


@root
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """(layer_norm, mean, 1 / standard deviation)."""
    size = tuple(normalized_shape)
    if not size or tuple(input.shape[-len(size) :]) != size:
        raise ShapeError(
            complaint(
                "native_layer_norm",
                "normalized_shape must be the trailing sizes of input",
                dict(normalized_shape=list(size), input=list(input.shape)),
            )
        )
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and tuple(t.shape) != size:
            raise ShapeError(
                complaint(
                    "native_layer_norm",
                    f"{name} must have the shape of normalized_shape",
                    {name: list(t.shape)},
                )
            )
    y, *statistics = normalisation.layer_norm(input, weight, bias, dims=len(size), eps=float(eps))
    return y, *constants(input, statistics)


def constants(input: Tensor, statistics) -> tuple[Tensor, ...]:
    """Statistics as PyTorch hands them out: without history, in the dtype of the input."""
    return tuple(s.detach().to(input.dtype) for s in statistics)


@root
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """(group_norm, mean, 1 / standard deviation), the statistics per sample and group."""
    y, mean, rstd = group_norm(input, weight, bias, groups=group, eps=float(eps))
    return y, mean.to(input.dtype), rstd.to(input.dtype)


@root
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """(batch_norm, mean, 1 / standard deviation); the statistics are empty if not training."""
    if not training:
        y = normalised_by(input, running_mean, running_var, weight, bias, eps)
        nothing = input.new_empty((0,))
        return y, nothing, nothing.clone()
    if input.shape[1] == 0 or not input.numel():
        raise OpError(
            complaint(
                "native_batch_norm", "input must hold elements", dict(shape=list(input.shape))
            )
        )
    y, mean, rstd, var = batch_norm(input, weight, bias, eps=float(eps))
    count = input.numel() // input.shape[1]
    if running_mean is not None:
        update_running(running_mean, mean, momentum)
    if running_var is not None:
        update_running(running_var, var, momentum, count / max(count - 1, 1))
    return y, *constants(input, (mean, rstd))


@root
def _native_batch_norm_legit(
    input, weight, bias, running_mean, running_var=None, training=None, momentum=None, eps=None
):
    """native_batch_norm; without running statistics the fourth operand is `training`."""
    if isinstance(running_mean, bool):
        training, momentum, eps = running_mean, running_var, training
        running_mean = running_var = None
    return native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


@root
def _batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps):
    """native_batch_norm in training, and an empty reserve."""
    y, mean, rstd = native_batch_norm(
        input, weight, bias, running_mean, running_var, True, momentum, eps
    )
    return y, mean, rstd, input.new_empty((0,), dtype=dtypes.uint8)


@root
def constant_pad_nd(input, pad, value=0):
    """pad with a constant."""
    return pad_function(input, pad, "constant", value)


@root
def grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners):
    """grid_sample with its modes as numbers."""
    sample = FUNCTIONS["nn.functional"]["grid_sample"]
    return sample(
        input,
        grid,
        ("bilinear", "nearest", "bicubic")[interpolation_mode],
        ("zeros", "border", "reflection")[padding_mode],
        align_corners,
    )


@root
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """grid_sample with its modes as numbers."""
    return grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)


@root
def grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners):
    """grid_sample with its modes as numbers."""
    return grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)


# Indexing without checks ---------------------------------------------------------------------


def clamped(x: Tensor, indices) -> tuple:
    """Indices within bounds, as those that the mask leaves out may lie outside."""
    return tuple(
        slice(None) if i is None else i.clamp(min=-x.shape[d], max=x.shape[d] - 1)
        for d, i in enumerate(indices)
    )


@root
def _unsafe_masked_index(input, mask, indices, fill):
    """input[indices], and `fill` where the mask does not select."""
    return where(mask, input[clamped(input, indices)], fill)


@root
def _unsafe_masked_index_put_accumulate(input, mask, indices, values):
    """input with the selected values added at indices."""
    return input.index_put(
        clamped(input, indices), values.masked_fill(mask.logical_not(), 0), accumulate=True
    )


@root
def _chunk_cat(tensors, dim, num_chunks):
    """Each tensor cut into chunks along dim, padded and flattened behind it; then joined."""
    if (
        not len(tensors)
        or num_chunks < 1
        or any(
            not -t.ndim <= dim < t.ndim
            or t.shape[: dim % t.ndim] != tensors[0].shape[: dim % t.ndim]
            or t.dtype is not tensors[0].dtype
            for t in tensors
        )
    ):
        raise OpError(
            complaint(
                "_chunk_cat",
                "num_chunks must be positive, and tensors of one dtype and equal sizes before dim",
                dict(dim=dim, num_chunks=num_chunks, tensors=len(tensors)),
            )
        )
    rows = []
    for t in tensors:
        d = dim % t.ndim
        size = -(-t.shape[d] // num_chunks)
        missing = size * num_chunks - t.shape[d]
        if missing:
            t = cat([t, t.new_zeros([missing if k == d else n for k, n in enumerate(t.shape)])], d)
        rows.append(t.reshape((*t.shape[:d], num_chunks, size * math.prod(t.shape[d + 1 :]))))
    return cat(rows, rows[0].ndim - 1)


# Backward passes and halves of layers by themselves ------------------------------------------


@root
def _softmax_backward_data(grad_output, output, dim, input_dtype):
    """y (g - sum(g y)), in the dtype of softmax's input."""
    product = grad_output * output
    total = product.sum(dim, keepdim=True) if product.ndim else product
    return (product - output * total).to(input_dtype)


@root
def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    """g - exp(y) sum(g)."""
    total = grad_output.sum(dim, keepdim=True) if output.ndim else grad_output
    return (grad_output - output.exp() * total).to(input_dtype)


@root
def _softmax(input, dim, half_to_float):
    """softmax."""
    return input.softmax(dim)


@root
def _log_softmax(input, dim, half_to_float):
    """log_softmax."""
    return input.log_softmax(dim)


@root
def _safe_softmax(input, dim, dtype=None):
    """softmax with zeros for rows that are -inf throughout."""
    dead = (input == -math.inf).all(dim, keepdim=True)
    return input.masked_fill(dead, 0).softmax(dim, dtype=dtype).masked_fill(dead, 0)


@root
def native_dropout(input, p, train):
    """(dropout, which elements it kept)."""
    if not train:
        return input.clone(), input.new_ones(input.shape, dtype=dtypes.bool)
    keep = input.new_empty(input.shape).bernoulli_(1 - p)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return input * keep * scale, keep.to(dtypes.bool)


@root
def native_dropout_backward(grad_output, mask, scale):
    """g mask scale."""
    return grad_output * (mask.to(grad_output.dtype) * scale)
