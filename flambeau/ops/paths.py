"""Scores of all monotonic paths through a table, as connectionist temporal classification has them.

A path starts in position 0 or 1 and at each step stays, moves on by one, or by two where `skip`
allows. Its score is the sum of `step` (T, N, W) along it; path_scores (N, W) are, for each sequence
of N, the logarithm of the sum of e^score over all paths that end in a position after `lengths` (N)
steps. Graves et al., "Connectionist Temporal Classification", ICML 2006, equations 6 and 10.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from flambeau.core.spec import Spec, spec
from flambeau.ops.joining import cat
from flambeau.ops.registry import primitive


class Arrays:
    """Functions of ndarrays."""

    where = staticmethod(np.where)

    @staticmethod
    def log(x):
        with np.errstate(divide="ignore"):
            return np.log(x)

    exp = staticmethod(np.exp)
    maximum = staticmethod(np.maximum)

    @staticmethod
    def cat(parts):
        return np.concatenate(parts, 1)

    @staticmethod
    def stack(parts):
        return np.stack(parts)

    @staticmethod
    def full(like, shape, value):
        return np.full(shape, value, like.dtype)

    @staticmethod
    def held(x):
        return x


class Tensors:
    """Functions of tensors, which differentiate."""

    @staticmethod
    def where(condition, x, y):
        if not hasattr(x, "masked_fill"):
            return y.masked_fill(condition, x)
        return x.masked_fill(~condition, y) if not hasattr(y, "masked_fill") else (
            x.where(condition, y))

    @staticmethod
    def log(x):
        return x.log()

    @staticmethod
    def exp(x):
        return x.exp()

    @staticmethod
    def maximum(x, y):
        return x.maximum(y)

    @staticmethod
    def cat(parts):
        return cat(*parts, dim=1)

    @staticmethod
    def stack(parts):
        return cat(*[x.unsqueeze(0) for x in parts], dim=0)

    @staticmethod
    def full(like, shape, value):
        return like.new_full(shape, value)

    @staticmethod
    def held(x):
        return x.detach()


def moved(on, x, count: int, value):
    """x `count` positions on (back where negative), `value` coming in."""
    n, width = x.shape
    count = max(-width, min(width, count))
    new = on.full(x, (n, abs(count)), value)
    return on.cat([new, x[:, : width - count]] if count > 0 else [x[:, -count:], new])


def summed(on, parts):
    """The logarithm of the sum of exponentials, with gradient zero where all are -inf."""
    top = on.held(parts[0])
    for x in parts[1:]:
        top = on.maximum(top, on.held(x))
    dead = top == -math.inf
    safe = on.where(dead, 0.0, top)
    total = sum(on.exp(x - safe) for x in parts)
    return on.where(dead, -math.inf, on.log(on.where(dead, 1.0, total)) + safe)


def forward(on, step, skip, lengths) -> list:
    """Scores after each step; where a sequence has ended they stay."""
    n, width = step.shape[1:]
    lengths = lengths.reshape(n, 1)
    nothing = on.full(step, (n, max(width - 2, 0)), -math.inf)
    score = on.cat([step[0][:, :2], nothing])
    rows = [on.where(lengths == 0, -math.inf, score)]
    for t in range(1, step.shape[0]):
        before = rows[-1]
        two = on.where(~skip, -math.inf, moved(on, before, 2, -math.inf))
        total = summed(on, [before, moved(on, before, 1, -math.inf), two])
        rows.append(on.where(lengths > t, total + step[t], before))
    return rows


def backward(on, ct, step, skip, lengths):
    """The cotangent of `step` from that of the scores."""
    n, width = step.shape[1:]
    rows, lengths, found = forward(on, step, skip, lengths), lengths.reshape(n, 1), []
    for t in range(step.shape[0] - 1, -1, -1):
        live = lengths > t
        if not t:
            first = on.cat([ct[:, :2], on.full(ct, (n, max(width - 2, 0)), 0.0)])
            found.append(on.where(live, first, 0.0))
            break
        found.append(on.where(live, ct, 0.0))
        dead = rows[t] == -math.inf
        total = on.where(dead, 0.0, rows[t]) - on.where(dead, 0.0, step[t])
        total = on.where(dead, math.inf, total)
        before = rows[t - 1]
        gone = before == -math.inf
        known = on.where(gone, 0.0, before)
        through = 0.0
        for count in range(3):
            part = on.where(~skip, 0.0, ct) if count == 2 else ct
            weight = on.exp(known - moved(on, total, -count, math.inf))
            through = through + moved(on, part, -count, 0.0) * weight
        ct = on.where(live, on.where(gone, 0.0, through), ct)
    return on.stack(found[::-1])


def scores_meta(step: Spec, skip: Spec, lengths: Spec) -> Spec:
    return spec(step.dtype, step.shape[1:], None, step.device)


def scores_ref(step, skip, lengths):
    return forward(Arrays, step, skip, lengths)[-1]


def scores_vjp(ct, step, skip, lengths):
    return path_scores_backward(ct.contiguous(), step, skip, lengths)


def scores_samples(rng):
    for steps, width in [(4, 3), (5, 5), (1, 1), (3, 2)]:
        skip = rng.random((2, width)) > 0.4
        skip[:, :2] = False
        lengths = np.array([steps, max(steps - 1, 1)])
        yield (rng.normal(size=(steps, 2, width)), skip, lengths), {}


path_scores = primitive("path_scores", meta=scores_meta, ref=scores_ref,
                        vjp=dict(step=scores_vjp), samples=scores_samples)


def backward_meta(ct: Spec, step: Spec, skip: Spec, lengths: Spec) -> Spec:
    return spec(step.dtype, step.shape, None, step.device)


def backward_samples(rng):
    for operands, _ in scores_samples(rng):
        yield (rng.normal(size=operands[0].shape[1:]), *operands), {}


path_scores_backward = primitive(
    "path_scores_backward", meta=backward_meta, ref=partial(backward, Arrays), vjp="decompose",
    decompose=partial(backward, Tensors), samples=backward_samples)
