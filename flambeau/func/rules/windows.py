"""Windows over the trailing dimensions: the batch joins the first dimension."""

from __future__ import annotations

from typing import Any

from flambeau.func.rules.register import joined, rule_of, split, spread
from flambeau.ops.registry import Primitive


@rule_of(
    "max_pool",
    "sum_pool",
    "sum_unpool",
    "pool_scatter",
    "pool_gather",
    "pool_place",
    "part_argmax",
    "fractional_argmax",
    "im2col",
    "col2im",
)
def pool(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    values = [joined(spread(size, v, h)) for v, h in zip(values, here)]
    result = primitive(*values, **params)
    if isinstance(result, tuple):
        return tuple(split(x, size) for x in result)
    return split(result, size)
