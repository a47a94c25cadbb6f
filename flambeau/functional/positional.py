"""Functions of `torch` that take what `torch.nn.functional` takes in another order.

PyTorch's own modules call these; programs that were written against them do too.
"""

from __future__ import annotations

from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.core.errors import OpError, complaint
from flambeau.functional import convolution as convolutions
from flambeau.functional import dropout as dropouts
from flambeau.functional import linear, normalisation, vision
from flambeau.tensor.tensor import Tensor

_INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")
_BAG_MODES = ("sum", "mean", "max")


def batch_norm(input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any,
               training: bool, momentum: float, eps: float, cudnn_enabled: bool = True) -> Tensor:
    """`nn.functional.batch_norm` with the weights first."""
    return normalisation.batch_norm(input, running_mean, running_var, weight, bias, training,
                                    momentum, eps)


def native_batch_norm(input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any,
                      training: bool, momentum: float, eps: float) -> tuple[Tensor, ...]:
    """Batch norm, the batch's means and its inverse deviations (empty unless training)."""
    out = batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if not training:
        return out, input.new_empty(0), input.new_empty(0)
    dims = [0, *range(2, input.ndim)]
    variance = input.var(dims, correction=0)
    return out, input.mean(dims), (variance + eps).rsqrt()


def native_layer_norm(input: Tensor, normalized_shape: Any, weight: Any, bias: Any,
                      eps: float) -> tuple[Tensor, ...]:
    """Layer norm, the means and the inverse deviations of its rows."""
    dims = list(range(-len(tuple(normalized_shape)), 0))
    out = normalisation.layer_norm(input, normalized_shape, weight, bias, eps)
    variance = input.var(dims, correction=0, keepdim=True)
    return out, input.mean(dims, keepdim=True), (variance + eps).rsqrt()


def native_group_norm(input: Tensor, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int,
                      eps: float) -> tuple[Tensor, ...]:
    """Group norm, the means and the inverse deviations of the groups, (N, group)."""
    out = normalisation.group_norm(input, group, weight, bias, eps)
    rows = input.reshape(N, group, -1)
    return out, rows.mean(-1), (rows.var(-1, correction=0) + eps).rsqrt()


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Dropout, and where elements were kept."""
    kept = dropouts.dropout(input.detach() * 0 + 1, p, train is not False) != 0
    return input * kept / (1 - p if train is not False and p < 1 else 1), kept


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero whole channels with probability p and scale the others."""
    return dropouts.feature_dropout(input, p, train, False)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_dropout`, in place."""
    return dropouts.feature_dropout(input, p, train, True)


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`dropout`, in place."""
    return dropouts.dropout(input, p, train, inplace=True)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout`, in place."""
    return dropouts.alpha_dropout(input, p, train, inplace=True)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_alpha_dropout`, in place."""
    return dropouts.feature_alpha_dropout(input, p, train, inplace=True)


def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """`nn.functional.embedding` with the weight first; padding_idx -1 is none."""
    padding = padding_idx if padding_idx >= 0 else None
    return linear.embedding(indices, weight, padding, None, 2.0, scale_grad_by_freq, sparse)


def embedding_renorm_(weight: Tensor, indices: Tensor, max_norm: float,
                      norm_type: float) -> Tensor:
    """Scale the rows at the indices, in place, to a norm of at most max_norm."""
    with no_grad():
        linear.renormalise(weight, indices, max_norm, norm_type)
    return weight


def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor,
                  scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> tuple[Tensor, ...]:
    """The bags' rows, the bag of each index, the bags' sizes, and (unused) the maxima's places;
    mode is 0 for sum, 1 for mean, 2 for max."""
    out = linear.embedding_bag(indices, weight, offsets, None, 2, scale_grad_by_freq,
                               _BAG_MODES[mode], sparse, per_sample_weights, include_last_offset,
                               padding_idx)
    starts = offsets[:-1] if include_last_offset else offsets
    ends = offsets.new_tensor([*starts.tolist()[1:], len(indices)])
    sizes = ends - starts
    bags = offsets.new_tensor([bag for bag, n in enumerate(sizes.tolist()) for _ in range(n)])
    return out, bags, sizes, offsets.new_empty(0)


def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
                dilation: Any, transposed: bool, output_padding: Any, groups: int) -> Tensor:
    """Convolution, or transposed convolution, of the rank that the weight says."""
    rank = weight.ndim - 2
    if not 1 <= rank <= 3:
        raise OpError(complaint("convolution", "the weight must have 3 to 5 dimensions", dict(
            weight=list(weight.shape))))
    if transposed:
        return convolutions.transposed_nd("convolution", rank, input, weight, bias, stride,
                                          padding, output_padding, groups, dilation)
    return convolutions.convolution_nd("convolution", rank, input, weight, bias, stride, padding,
                                       dilation, groups)


def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                 align_corners: bool) -> Tensor:
    """`nn.functional.grid_sample` with its modes as numbers."""
    return vision.grid_sample(input, grid, _INTERPOLATIONS[interpolation_mode],
                              _PADDINGS[padding_mode], align_corners)


grid_sampler_2d = grid_sampler_3d = grid_sampler


def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """`nn.functional.affine_grid`."""
    return vision.affine_grid(theta, size, align_corners)
