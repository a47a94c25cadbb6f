"""Connectionist temporal classification (Graves et al. 2006), in the logarithm of probabilities."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, complaint
from flambeau.functional.losses import reduced
from flambeau.functional.register import functional
from flambeau.ops import choice, paths
from flambeau.tensor.factories import arange
from flambeau.tensor.interop import as_tensor
from flambeau.tensor.joining import cat, stack
from flambeau.tensor.tensor import Tensor


def lengths_of(name: str, lengths) -> list[int]:
    found = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    found = found if isinstance(found, list) else [found]
    if any(int(n) != n for n in found):
        raise OpError(complaint("ctc_loss", f"{name} must be integral", {name: found}))
    return [int(n) for n in found]


def padded_targets(targets, lengths: list[int]):
    """(N, longest) class indices from padded or concatenated targets."""
    if targets.ndim == 2:
        return targets.long()
    longest, rows, start = max(lengths, default=0), [], 0
    for n in lengths:
        row = targets[start:start + n].long()
        rows.append(cat([row, row.new_zeros((longest - n,))]))
        start += n
    return stack(rows) if rows else targets.reshape((0, 0)).long()


def extended(targets, blank: int):
    """blank, l1, blank, l2, .., blank."""
    n, s = targets.shape
    blanks = targets.new_full((n, s, 1), blank)
    pairs = cat([blanks, targets.unsqueeze(2)], 2).reshape((n, 2 * s))
    return cat([pairs, targets.new_full((n, 1), blank)], 1)


def lifted(log_a, log_b):
    """logaddexp that has gradient zero where both are -inf."""
    top = log_a.maximum(log_b).detach()
    safe = top.masked_fill(top == -math.inf, 0.0)
    total = (log_a - safe).exp() + (log_b - safe).exp()
    dead = top == -math.inf
    return (total.masked_fill(dead, 1.0).log() + safe).masked_fill(dead, -math.inf)


def scores_of_paths(log_probs, labels, skip, input_lengths: list[int]):
    """Log-probability of all paths that end in each position of the extended target."""
    steps, (n, width) = log_probs.shape[0], labels.shape
    if not steps:
        return log_probs.new_full((n, width), -math.inf)
    step = log_probs.gather(2, labels.unsqueeze(0).expand((steps, n, width)))
    return paths.path_scores(step, skip.contiguous(), as_tensor(input_lengths))


@functional(toplevel=True)
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean",
             zero_infinity=False):
    """Minus the log-probability of the targets: log_probs (T, N, C) or (T, C)."""
    single = log_probs.ndim == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.ndim == 1 else targets
    if targets.dtype not in (dtypes.int64, dtypes.int32):
        raise OpError(complaint("ctc_loss", "targets must be of type int32 or int64",
                                dict(dtype=targets.dtype)))
    inputs = lengths_of("input_lengths", input_lengths)
    sizes = lengths_of("target_lengths", target_lengths)
    check(log_probs, targets, inputs, sizes, blank)
    labels = extended(padded_targets(targets, sizes), blank)
    skip = cat([labels[:, :2] != labels[:, :2], (labels[:, 2:] != labels[:, :-2])
                & (labels[:, 2:] != blank)], 1)[:, :labels.shape[1]]
    alpha = scores_of_paths(log_probs, labels, skip, inputs)
    ends = as_tensor(sizes).reshape((-1, 1)) * 2
    last = alpha.gather(1, ends)
    before = alpha.gather(1, (ends - 1).clamp(min=0)).masked_fill(ends == 0, -math.inf)
    nothing = normalising(log_probs, inputs)
    loss = -lifted(last, before).squeeze(1) + nothing
    impossible = loss.detach() == math.inf
    if zero_infinity:
        loss = loss.masked_fill(impossible, 0.0)
    else:
        loss = choice.where(impossible, infinite(choice.where(impossible, nothing, 1.0)), loss)
    if reduction == "mean":
        return (loss / as_tensor(sizes).clamp(min=1).to(loss.dtype)).mean()
    return reduced(loss.squeeze(0) if single and reduction == "none" else loss, reduction)


def infinite(nothing):
    """Infinity, whose gradient is NaN, from zeros: no path leads to a target that is too long."""
    return -(nothing * nothing).log()


def normalising(log_probs, lengths: list[int]):
    """Zero, with the gradient exp(log_probs): PyTorch's gradient takes the probabilities of a
    step to be a softmax's, and so includes what keeps them normalised."""
    steps = arange(log_probs.shape[0]).reshape((-1, 1, 1))
    live = steps < as_tensor(lengths).reshape((1, -1, 1))
    term = (log_probs.detach().exp() * log_probs).masked_fill(~live, 0.0)
    term = term.masked_fill(log_probs.detach() == -math.inf, 0.0).sum((0, 2))
    return term - term.detach()


def check(log_probs, targets, inputs: list[int], sizes: list[int], blank: int) -> None:
    t, n, c = log_probs.shape
    if not 0 <= blank < c:
        raise OpError(complaint("ctc_loss", "blank must be in label range", dict(
            blank=blank, classes=c)))
    if len(inputs) != n or len(sizes) != n:
        raise OpError(complaint("ctc_loss", "input_lengths and target_lengths must be of size "
                                "batch_size", dict(batch=n, input_lengths=len(inputs),
                                                   target_lengths=len(sizes))))
    if any(not 0 <= k <= t for k in inputs):
        raise OpError(complaint("ctc_loss", f"Expected input_lengths to have value at most {t}",
                                dict(input_lengths=inputs)))
    if targets.ndim == 2 and any(k > targets.shape[1] for k in sizes) or any(k < 0 for k in sizes):
        raise OpError(complaint("ctc_loss", "target_lengths must not exceed the targets", dict(
            target_lengths=sizes, targets=list(targets.shape))))


