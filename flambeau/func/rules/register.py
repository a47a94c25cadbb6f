"""The table of batching rules, and the shape arithmetic that they share.

A rule is `rule(size, primitive, values, here, params)`: `values` are the operands, `here` tells
which of them carry a batch of `size` slices along dimension 0; the result carries it. A rule that
does not know a case returns NotImplemented, and the slices are computed one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core.spec import Spec, spec
from flambeau.eager.executor import specs_of
from flambeau.ops.registry import Primitive
from flambeau.tensor import Tensor

Rule = Callable[[int, Primitive, list, list[bool], dict], Any]
RULES: dict[str, Rule] = {}
FAMILIES: dict[str, Rule] = {}


def rule_of(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for primitives by name."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


def padded(value: Tensor, rank: int) -> Tensor:
    """A value with dimensions of one after the batch, up to `rank`."""
    if value.ndim >= rank:
        return value
    ones = (1,) * (rank - value.ndim)
    return value.reshape((value.shape[0], *ones, *value.shape[1:]))


def spread(size: int, value: Any, here: bool) -> Any:
    """A tensor with the batch, repeated if it lacks it; numbers and None as they are."""
    if here or not isinstance(value, Tensor):
        return value
    return value.expand((size, *value.shape))


def joined(value: Tensor) -> Tensor:
    """Batch and first dimension as one."""
    return value.reshape((value.shape[0] * value.shape[1], *value.shape[2:]))


def split(value: Tensor, size: int) -> Tensor:
    """The inverse of `joined`."""
    return value.reshape((size, value.shape[0] // size, *value.shape[1:]))


def specs(values: list, here: list[bool]) -> list[Spec | None]:
    """The specs that slices of operands have."""
    found = specs_of(tuple(values))
    return [
        spec(s.dtype, s.shape[1:], s.strides[1:], s.device) if h and s is not None else s
        for s, h in zip(found, here)
    ]
