"""Matrix products and convolutions."""

from __future__ import annotations

from typing import Any

from flambeau.func.rules.register import joined, rule_of, split, spread
from flambeau.ops.registry import Primitive
from flambeau.tensor import Tensor


@rule_of("matmul")
def matmul(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    x, y = values
    if not here[1] and y.ndim == 2 and x.ndim == 3:
        return split(primitive(joined(x), y), size)
    return primitive(spread(size, x, here[0]), spread(size, y, here[1]))


@rule_of("linear")
def linear(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    x, w, b = values
    if not here[1] and not here[2]:
        return primitive(x, w, b)
    x, w = spread(size, x, here[0]), spread(size, w, here[1])
    lead = x.shape[1:-1]
    rows = x.reshape((size, lead.numel(), x.shape[-1]))
    y = rows @ w.transpose(1, 2)
    if b is not None:
        y = y + (b.unsqueeze(1) if here[2] else b)
    return y.reshape((size, *lead, w.shape[1]))


def grouped(value: Tensor) -> Tensor:
    """(batch, N, C, ..) -> (N, batch * C, ..): the batch as groups of channels."""
    moved = value.transpose(0, 1)
    return moved.reshape((moved.shape[0], moved.shape[1] * moved.shape[2], *moved.shape[3:]))


def ungrouped(value: Tensor, size: int) -> Tensor:
    """(N, batch * C, ..) -> (batch, N, C, ..)."""
    shape = (value.shape[0], size, value.shape[1] // size, *value.shape[2:])
    return value.reshape(shape).transpose(0, 1)


@rule_of("conv")
def conv(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """A batch of inputs is more inputs; a batch of weights is more groups."""
    x, w, b = values
    if not here[1] and not here[2]:
        return split(primitive(joined(x), w, b, **params), size)
    if not here[1]:
        out = split(primitive(joined(spread(size, x, here[0])), w, None, **params), size)
    else:
        x = spread(size, x, here[0])
        groups = {**params, "groups": params["groups"] * size}
        out = ungrouped(primitive(grouped(x), joined(w), None, **groups), size)
    if b is None:
        return out
    ones = (1,) * (out.ndim - 3)
    return out + b.reshape((size, 1, -1, *ones) if here[2] else (1, 1, -1, *ones))


@rule_of("conv_input")
def conv_input(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    g, w = values
    n, c, *spatial = params["shape"]
    if not here[1]:
        out = primitive(joined(g), w, **{**params, "shape": (n * size, c, *spatial)})
        return split(out, size)
    params = {**params, "shape": (n, c * size, *spatial), "groups": params["groups"] * size}
    return ungrouped(primitive(grouped(spread(size, g, here[0])), joined(w), **params), size)


@rule_of("conv_weight")
def conv_weight(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    g, x = (grouped(spread(size, v, h)) for v, h in zip(values, here))
    k, *rest = params["shape"]
    params = {**params, "shape": (k * size, *rest), "groups": params["groups"] * size}
    return split(primitive(g, x, **params), size)
