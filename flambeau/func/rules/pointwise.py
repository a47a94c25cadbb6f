"""Elementwise primitives: operands are lined up behind the batch."""

from __future__ import annotations

from typing import Any

from flambeau.func.rules.register import FAMILIES, RULES, padded, rule_of, specs, spread
from flambeau.ops.choice import where
from flambeau.ops.registry import Primitive
from flambeau.tensor import Tensor


def pointwise(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """Operands lined up behind the batch. Slices without dimensions promote as such, or not."""
    ranks = [v.ndim - h for v, h in zip(values, here) if isinstance(v, Tensor)]
    lined = [padded(v, max(ranks) + 1) if h else v for v, h in zip(values, here)]
    if min(ranks) == 0 and len(values) > 1:
        nowhere = [False] * len(values)
        of_slices, of_values = specs(values, here), specs(lined, nowhere)
        dtype = primitive.meta(*of_values, **params).dtype
        if dtype is not primitive.meta(*of_slices, **params).dtype:
            return NotImplemented
    return primitive(*lined, **params)


FAMILIES["pointwise"] = pointwise
RULES["where"] = pointwise


@rule_of("masked_fill")
def masked_fill(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    x, mask, value = values
    if not here[2]:
        return pointwise(size, primitive, values, here, params)
    filler = value.to(x.dtype)
    return pointwise(size, where, [mask, filler, x], [here[1], True, here[0]], params)


@rule_of(
    "convert", "real", "imag", "view_as_real", "view_as_complex", "complex", "frexp", "tril", "triu"
)
def unchanged(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """The batch is one more leading dimension."""
    return primitive(*[spread(size, v, h) for v, h in zip(values, here)], **params)


@rule_of("copy")
def copy(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    if params.get("strides") is None:
        return primitive(*values, **params)
    x = values[0]
    return primitive(x, strides=(x[0].numel() if size else 1, *params["strides"]))


@rule_of("fill", "isin")
def first_alone(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """Elementwise in the first operand, for a second that all slices share."""
    if here[1]:
        return NotImplemented
    return primitive(*values, **params)
