"""Losses, reduced as PyTorch reduces them: "mean", "sum" or "none"."""

from __future__ import annotations

from flambeau.core.errors import OpError, ShapeError, ValueRangeError, complaint
from flambeau.functional.activation import log_softmax
from flambeau.functional.register import functional
from flambeau.ops import likelihood


def reduced(loss, reduction: str):
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    known(reduction)


def known(reduction: str) -> None:
    if reduction not in ("none", "mean", "sum"):
        raise ValueRangeError(complaint("loss", f"{reduction} is not a valid value for reduction",
                                        None, "Use 'mean', 'sum' or 'none'."))


def legacy_reduction(size_average, reduce, reduction: str) -> str:
    """The two flags that old scripts pass."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


@functional
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
             reduction="mean"):
    """Minus the log-probability of the target class: input (N, C, *), target (N, *)."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    x, t = input, target
    if x.ndim == 1:
        x, t = x.unsqueeze(0), t.unsqueeze(0)
    known(reduction)
    if x.ndim > 1 and t.ndim and x.shape[0] != t.shape[0]:
        raise ValueRangeError(complaint(
            "nll_loss", "input and target must have the same batch size",
            dict(input=list(input.shape), target=list(target.shape))))
    if x.ndim < 2 or tuple(t.shape) != (x.shape[0], *x.shape[2:]):
        raise ShapeError(complaint(
            "nll_loss", "input must be (N, C, *) and target (N, *)",
            dict(input=list(input.shape), target=list(target.shape))))
    if weight is not None and tuple(weight.shape) != (x.shape[1],):
        raise ShapeError(complaint("nll_loss", "weight tensor should be defined either for all "
                                   f"{x.shape[1]} classes or no classes",
                                   dict(weight=list(weight.shape))))
    loss = likelihood.nll(x, t, weight, ignore_index=int(ignore_index), reduction=reduction)
    return loss.squeeze(0) if input.ndim == 1 and reduction == "none" else loss


@functional
def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
                  reduction="mean", label_smoothing=0.0):
    """Cross-entropy between logits (N, C, *) and class indices (N, *) or probabilities."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    classes = 0 if input.ndim == 1 else 1
    if target.shape == input.shape and target.dtype.is_floating_point:
        return soft_cross_entropy(input, target, weight, reduction, label_smoothing, classes)
    if not 0.0 <= label_smoothing <= 1.0:
        raise OpError(complaint("cross_entropy", "label_smoothing must be between 0.0 and "
                                "1.0", dict(label_smoothing=label_smoothing)))
    logs = log_softmax(input, classes)
    loss = nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    if label_smoothing == 0.0:
        return loss
    return smoothed(logs, target, weight, ignore_index, reduction, label_smoothing, classes, loss)


@functional
def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None,
                         reduction="mean", ignore_index=None, label_smoothing=0.0, options=None):
    """cross_entropy of input linear_weight^T + linear_bias, which is (N, C, *d).

    linear_weight (C, *d, in_features). `options` says how PyTorch cuts the batch; here it has no
    effect.
    """
    check_linear_cross_entropy(input, linear_weight, target, linear_bias, ignore_index)
    features = linear_weight.shape[-1]
    logits = input @ linear_weight.reshape(-1, features).t()
    logits = logits.reshape(*input.shape[:-1], *linear_weight.shape[:-1])
    if linear_bias is not None:
        logits = logits + linear_bias
    return cross_entropy(logits, target, weight, reduction=reduction,
                         ignore_index=-100 if ignore_index is None else ignore_index,
                         label_smoothing=label_smoothing)


def check_linear_cross_entropy(input, linear_weight, target, linear_bias, ignore_index) -> None:
    classes = tuple(linear_weight.shape[:-1])
    rules = {
        "input must be (N, in_features) or (in_features)": input.ndim in (1, 2),
        "linear_weight must be (C, *d, in_features)":
            linear_weight.ndim > 1 and linear_weight.shape[-1] == input.shape[-1],
        "a linear_weight of more than 2 dimensions needs a batch of inputs":
            linear_weight.ndim == 2 or input.ndim == 2,
        f"linear_bias must be of shape {classes}":
            linear_bias is None or tuple(linear_bias.shape) == classes,
        "ignore_index needs targets that are class indices":
            ignore_index is None or not target.dtype.is_floating_point,
    }
    for must, holds in rules.items():
        if not holds:
            raise ShapeError(complaint("linear_cross_entropy", must, dict(
                input=list(input.shape), linear_weight=list(linear_weight.shape))))


def soft_cross_entropy(input, target, weight, reduction, label_smoothing, classes):
    count = input.shape[classes]
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / count
    logs = log_softmax(input, classes)
    if weight is not None:
        logs = logs * weight.reshape((-1, *(1 for _ in input.shape[classes + 1:])))
    loss = -(logs * target).sum(classes)
    if reduction == "mean":
        return loss.sum() / (loss.numel() or 1)
    return reduced(loss, reduction)


def smoothed(logs, target, weight, ignore_index, reduction, amount, classes, nll):
    """(1 - amount) nll + amount times the mean over classes."""
    count = logs.shape[classes]
    scaled = logs if weight is None else logs * weight.reshape(
        (-1, *(1 for _ in logs.shape[classes + 1:])))
    smooth = -scaled.sum(classes)
    ignored = target == ignore_index
    smooth = smooth.masked_fill(ignored, 0.0)
    if reduction == "mean":
        if weight is None:
            total = (~ignored).sum()
        else:
            total = weight[target.masked_fill(ignored, 0)].masked_fill(ignored, 0.0).sum()
        smooth = smooth.sum() / total
    elif reduction == "sum":
        smooth = smooth.sum()
    return (1 - amount) * nll + amount / count * smooth
