"""Normalisation and likelihood."""

from __future__ import annotations

from typing import Any

from flambeau.core.dtype import dtype as DType
from flambeau.func.rules.products import grouped, ungrouped
from flambeau.func.rules.register import joined, padded, rule_of, split, spread
from flambeau.ops.gathering import index
from flambeau.ops.registry import Primitive
from flambeau.tensor import Tensor


@rule_of("layer_norm")
def layer_norm(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    x, w, b = values
    if not here[1] and not here[2]:
        return primitive(x, w, b, **params)
    x = spread(size, x, here[0])
    y, mean, rstd = primitive(x, None, None, **params)
    if w is not None:
        y = y * (padded(w, x.ndim) if here[1] else w)
    if b is not None:
        y = y + (padded(b, x.ndim) if here[2] else b)
    return y, mean, rstd


@rule_of("batch_norm")
def batch_norm(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """A batch of inputs is more channels."""
    x, w, b = (spread(size, v, h) for v, h in zip(values, here))
    w, b = (None if v is None else joined(v) for v in (w, b))
    y, *stats = primitive(grouped(x), w, b, **params)
    return (ungrouped(y, size), *(split(stat, size) for stat in stats))


@rule_of("nll")
def nll(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """Each slice's losses, folded as the reduction says."""
    if here[2]:
        return NotImplemented
    x, target = (spread(size, v, h) for v, h in zip(values[:2], here))
    weight, reduction = values[2], params["reduction"]
    how = {**params, "reduction": "none"}
    losses = split(primitive(joined(x), joined(target), weight, **how), size)
    if reduction == "none":
        return losses
    total = losses.reshape((size, -1)).sum(1)
    if reduction == "sum":
        return total
    return total / _weights(target, weight, params["ignore_index"], x.dtype)


@rule_of("nll_backward")
def nll_backward(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    if here[2]:
        return NotImplemented
    g, target = (spread(size, v, h) for v, h in zip(values[:2], here))
    weight, reduction = values[2], params["reduction"]
    if reduction == "mean":
        g = g / _weights(target, weight, params["ignore_index"], g.dtype)
    if reduction != "none":
        g = g.reshape((size,) + (1,) * (target.ndim - 1))
        g = g.expand(target.shape)
    n, *rest = params["shape"]
    how = {**params, "shape": (n * size, *rest), "reduction": "none"}
    return split(primitive(joined(g), joined(target), weight, **how), size)


def _weights(target: Tensor, weight: Tensor | None, ignored: int, dtype: DType) -> Tensor:
    """What a mean divides by: the weights of each slice's targets that are not ignored."""
    kept = target != ignored
    each = kept.to(dtype)
    if weight is not None:
        each = each * index(weight, target.masked_fill(kept.logical_not(), 0), dims=(0,))
    return each.reshape((target.shape[0], -1)).sum(1)
