"""Making a vmap level explicit: the tape knows values alone, so derivatives are taken of those.

`explicit` turns a tensor that is batched at a level into one with the slices along dimension 0;
`implicit` is the inverse. Wrappers of inner levels stay outside of those of outer ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from flambeau.func.batching import BatchedTensor, Batching, batched, levels
from flambeau.tensor import Tensor


def explicit(x: Tensor, level: Batching) -> Tensor:
    """`x` with the slices of `level` along dimension 0, repeated if `x` is not batched there."""
    if not isinstance(x, BatchedTensor) or x.level.depth < level.depth:
        return x.expand((level.size, *x.shape))
    if x.level is level:
        return x.value
    # (level.size, inner.size, ...) with the inner level's slices first again
    return batched(explicit(x.value, level).transpose(0, 1), x.level)


def implicit(x: Tensor, level: Batching) -> Tensor:
    """The tensor that is batched at `level` with slices along the first dimension of `x`."""
    if isinstance(x, BatchedTensor) and x.level.depth > level.depth:
        return batched(implicit(x.value.transpose(0, 1), level), x.level)
    return batched(x, level)


class Lifted(NamedTuple):
    """A tensor batched at every level of `active`, and the value under all of them."""

    tensor: Tensor
    value: Tensor
    active: list[Batching]

    def dressed(self, gradient: Tensor) -> Tensor:
        """A gradient of the value as one of the tensor."""
        for level in self.active:
            gradient = implicit(gradient, level)
        return gradient


def lifted(x: Tensor, copy: Callable[[Tensor], Tensor]) -> Lifted:
    """A copy of `x` made under all levels of vmap, where each slice has a gradient of its own."""
    active = levels()
    for level in reversed(active):
        x = explicit(x, level)
    value = copy(x)
    tensor = value
    for level in active:
        tensor = batched(tensor, level)
    return Lifted(tensor, value, active)


class Stripped(NamedTuple):
    """An output under all its levels, and a cotangent with the same levels made explicit."""

    value: Tensor
    cotangent: Tensor

    @staticmethod
    def base(x: Tensor) -> Tensor:
        """The tensor under all wrappers, which the tape knows."""
        while isinstance(x, BatchedTensor):
            x = x.value
        return x


def stripped(out: Tensor, cotangent: Tensor) -> Stripped:
    """`out` for the tape, and `cotangent` to match; levels that `out` lacks stay on it."""
    while isinstance(out, BatchedTensor):
        cotangent = explicit(cotangent, out.level)
        out = out.value
    return Stripped(out, cotangent)
