"""Losses between two tensors of one shape, and between pairs of vectors."""

from __future__ import annotations

import math
import warnings

from flambeau.core.dtype import FLOAT
from flambeau.core.errors import DtypeError, OpError, ShapeError, ValueRangeError, complaint
from flambeau.functional.losses import known, legacy_reduction, reduced
from flambeau.functional.register import functional
from flambeau.ops import choice
from flambeau.ops.activations import log_sigmoid
from flambeau.ops.promotion import broadcast_shapes
from flambeau.tensor.ensuring import ensure
from flambeau.tensor.rearranging import broadcast_tensors


def matched(op: str, input, target):
    """Both at their common shape, with PyTorch's warning when they differ."""
    if input.shape != target.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to "
            f"broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=4,
        )
        shape = broadcast_shapes(op, input.shape, target.shape)
        return input.expand(shape), target.expand(shape)
    return input, target


def weighted(loss, weight, reduction: str):
    if weight is None:
        return reduced(loss, reduction)
    loss = loss * weight
    if reduction == "mean":
        return loss.sum() / weight.expand(loss.shape).sum()
    return reduced(loss, reduction)


@functional
def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """(input - target)^2."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    x, y = matched("mse_loss", input, target)
    d = x - y
    return weighted(d * d, weight, reduction)


@functional
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """|input - target|."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    x, y = matched("l1_loss", input, target)
    return weighted((x - y).abs(), weight, reduction)


@functional
def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """d^2 / (2 beta) where |d| < beta, else |d| - beta / 2."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if beta < 0:
        raise OpError(
            complaint(
                "smooth_l1_loss", "does not support negative values for beta", dict(beta=beta)
            )
        )
    x, y = matched("smooth_l1_loss", input, target)
    d = (x - y).abs()
    if beta == 0:
        return reduced(d, reduction)
    return reduced(choice.where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta), reduction)


@functional
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """d^2 / 2 where |d| < delta, else delta (|d| - delta / 2)."""
    if delta <= 0:
        raise OpError(complaint("huber_loss", "delta must be positive", dict(delta=delta)))
    x, y = matched("huber_loss", input, target)
    d = (x - y).abs()
    return weighted(
        choice.where(d < delta, d * d * 0.5, (d - 0.5 * delta) * delta), weight, reduction
    )


@functional
def binary_cross_entropy(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """-(y log x + (1 - y) log(1 - x)), each logarithm at least -100."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueRangeError(
            complaint(
                "binary_cross_entropy",
                "target and input must have one shape",
                dict(target=list(target.shape), input=list(input.shape)),
            )
        )
    if target.dtype is not input.dtype and target.dtype.category < FLOAT:
        raise DtypeError(
            complaint(
                "binary_cross_entropy",
                "target and input must be of one dtype",
                dict(target=target.dtype, input=input.dtype),
                "Use target.float().",
            )
        )
    x = input.detach()
    if x._array is not None and x.numel():
        must = "all elements of input should be between 0 and 1"
        ensure((x >= 0) & (x <= 1), OpError, "binary_cross_entropy", must, None,
               "Apply sigmoid first.")
    loss = (target - 1) * (-input).log1p().clamp(min=-100) - target * input.log().clamp(min=-100)
    if weight is not None:
        loss = loss * weight
    return reduced(loss, reduction)


@functional(toplevel=True)
def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """Binary cross-entropy of sigmoid(input), without overflow."""
    if isinstance(reduction, int):
        reduction = ("none", "mean", "sum")[reduction]
    reduction = legacy_reduction(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueRangeError(
            complaint(
                "binary_cross_entropy_with_logits",
                "Target size must be the same as input size",
                dict(target=list(target.shape), input=list(input.shape)),
            )
        )
    logs = log_sigmoid(input)
    if pos_weight is None:
        loss = (1 - target) * input - logs
    else:
        loss = (1 - target) * input - ((pos_weight - 1) * target + 1) * logs
    if weight is not None:
        loss = loss * weight
    return reduced(loss, reduction)


@functional(toplevel=True)
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target (log target - input), pointwise; "batchmean" divides the sum by the batch size."""
    if isinstance(reduction, int):
        reduction = ("none", "mean", "sum")[reduction]
    reduction = legacy_reduction(size_average, reduce, reduction)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = target.xlogy(target) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.shape[0] if input.ndim else loss
    return reduced(loss, reduction)


@functional(toplevel=True)
def poisson_nll_loss(
    input,
    target,
    log_input=True,
    full=False,
    size_average=None,
    eps=1e-8,
    reduce=None,
    reduction="mean",
):
    """Negative log-likelihood of a Poisson distribution, without the constant term."""
    if isinstance(reduction, int):
        reduction = ("none", "mean", "sum")[reduction]
    reduction = legacy_reduction(size_average, reduce, reduction)
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


@functional
def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """(log var + (input - target)^2 / var) / 2."""
    if not hasattr(var, "shape"):
        var = input.new_full(input.shape, float(var))
    ensure((var < 0).logical_not(), ValueRangeError, "gaussian_nll_loss",
           "var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif not (input.shape[:-1] == var.shape[:-1] and var.shape[-1] == 1) and any(
            a != b and b != 1 for a, b in zip(input.shape, var.shape)
        ):
            raise ValueRangeError(
                complaint(
                    "gaussian_nll_loss",
                    "var is of incorrect size",
                    dict(var=list(var.shape), input=list(input.shape)),
                )
            )
    if reduction not in ("none", "mean", "sum"):
        raise ValueRangeError(complaint("gaussian_nll_loss", f"{reduction} is not valid"))
    floor = var.detach().clamp(min=eps)
    var = choice.where(var.detach() < eps, floor, var)
    d = input - target
    loss = 0.5 * (var.log() + d * d / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


@functional
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + e^(-target input))."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    return reduced((-target * input).exp().log1p(), reduction)


# Pairs of vectors ----------------------------------------------------------------------------


@functional(toplevel=True)
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along dim."""
    x1, x2 = broadcast_tensors(x1, x2)
    n1 = x1.norm(2, dim, keepdim=True).clamp(min=eps)
    n2 = x2.norm(2, dim, keepdim=True).clamp(min=eps)
    return ((x1 / n1) * (x2 / n2)).sum(dim)


@functional(toplevel=True)
def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """p-norm of x1 - x2 + eps along the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)


@functional(toplevel=True)
def cosine_embedding_loss(
    input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"
):
    """1 - cos for target 1, max(0, cos - margin) for target -1."""
    if isinstance(reduction, int):
        reduction = ("none", "mean", "sum")[reduction]
    reduction = legacy_reduction(size_average, reduce, reduction)
    if target.ndim + 1 != input1.ndim or target.ndim + 1 != input2.ndim:
        raise ShapeError(
            complaint(
                "cosine_embedding_loss",
                "target must have one dimension less than the inputs",
                dict(target=target.ndim, input=input1.ndim),
            )
        )
    eps = 1e-12
    dot = (input1 * input2).sum(-1)
    cos = dot / (((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)).sqrt()
    loss = choice.where(target == 1, 1 - cos, 0.0) + choice.where(
        target == -1, (cos - margin).clamp(min=0), 0.0
    )
    return reduced(loss, reduction)


@functional(toplevel=True)
def margin_ranking_loss(
    input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"
):
    """max(0, -target (input1 - input2) + margin)."""
    if isinstance(reduction, int):
        reduction = ("none", "mean", "sum")[reduction]
    reduction = legacy_reduction(size_average, reduce, reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(
            complaint(
                "margin_ranking_loss",
                "all inputs should have same dimensions",
                dict(ranks=[input1.ndim, input2.ndim, target.ndim]),
            )
        )
    return reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


@functional(toplevel=True)
def hinge_embedding_loss(
    input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"
):
    """input for target 1, max(0, margin - input) for target -1."""
    if isinstance(reduction, int):
        reduction = ("none", "mean", "sum")[reduction]
    reduction = legacy_reduction(size_average, reduce, reduction)
    loss = choice.where(target != 1, (margin - input).clamp(min=0), 0.0) + choice.where(
        target != -1, input, 0.0
    )
    return reduced(loss, reduction)


@functional(toplevel=True)
def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueRangeError(
            complaint("triplet_margin_loss", "margin must be greater than 0", dict(margin=margin))
        )
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(
            complaint(
                "triplet_margin_loss",
                "the anchor, positive, and negative "
                "tensors are expected to have the same number of dimensions",
            )
        )
    near, far = (pairwise_distance(anchor, x, p, eps) for x in (positive, negative))
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    return reduced((margin + near - far).clamp(min=0), reduction)


@functional
def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """triplet_margin_loss under a distance of one's own."""
    if margin <= 0:
        raise ValueRangeError(
            complaint(
                "triplet_margin_with_distance_loss",
                "margin must be greater than 0",
                dict(margin=margin),
            )
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((margin + near - far).clamp(min=0), reduction)


# Many classes --------------------------------------------------------------------------------


@functional
def multi_margin_loss(
    input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """sum over wrong classes of max(0, margin - x[y] + x[i])^p / C."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    known(reduction)
    if p not in (1, 2):
        raise ValueRangeError(
            complaint("multi_margin_loss", "only p == 1 and p == 2 supported", dict(p=p))
        )
    if input.ndim > 2 or input.shape[-1:] == (0,):
        raise ShapeError(
            complaint(
                "multi_margin_loss",
                "Expected non-empty vector or matrix with optional 0-dim batch size",
                dict(input=list(input.shape)),
            )
        )
    x = input.reshape((1, -1)) if input.ndim < 2 else input
    y = target.reshape((-1, 1))
    if y.shape[0] != x.shape[0]:
        raise ShapeError(
            complaint(
                "multi_margin_loss",
                "inconsistent target size",
                dict(target=list(target.shape), input=list(input.shape)),
            )
        )
    z = (margin - x.gather(1, y) + x).clamp(min=0)
    z = z if p == 1 else z * z
    if weight is not None:
        z = z * weight[y]
    z = z.scatter(1, y, 0.0)
    loss = z.sum(1) / x.shape[1]
    loss = loss.squeeze(0) if input.ndim < 2 else loss
    return reduced(loss, reduction)


@functional
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Hinge loss between target classes (before the first -1) and all others."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    known(reduction)
    if input.shape != target.shape or input.ndim > 2 or input.shape[-1:] == (0,):
        raise ShapeError(
            complaint(
                "multilabel_margin_loss",
                "input and target must have one shape",
                dict(input=list(input.shape), target=list(target.shape)),
            )
        )
    x, y = input.reshape((-1, input.shape[-1] if input.ndim else 1)), target
    y = y.reshape(tuple(x.shape))
    listed = (y < 0).cumsum(1) == 0
    safe = choice.where(listed, y, 0)
    member = x.new_zeros(x.shape).scatter_add(1, safe, listed.to(x.dtype)) > 0
    gaps = (1 - (x.gather(1, safe).unsqueeze(2) - x.unsqueeze(1))).clamp(min=0)
    counted = listed.unsqueeze(2) & ~member.unsqueeze(1)
    loss = choice.where(counted, gaps, 0.0).sum((1, 2)) / x.shape[1]
    loss = loss.squeeze(0) if input.ndim < 2 else loss
    return reduced(loss, reduction)


@functional
def multilabel_soft_margin_loss(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """Mean over classes of the binary cross-entropy with logits."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(-1) / input.shape[-1], reduction)
