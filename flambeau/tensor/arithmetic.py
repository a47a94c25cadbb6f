"""`add`, `mul` and their kin under PyTorch's names."""

from __future__ import annotations

from flambeau.ops import pointwise
from flambeau.tensor.public import public


@public(inplace=True)
def add(input, other, *, alpha=1):
    """input + alpha * other."""
    return pointwise.add(input, other if alpha == 1 else pointwise.mul(other, alpha))


@public(inplace=True, aliases=("multiply",))
def mul(input, other):
    """input * other."""
    return pointwise.mul(input, other)


@public(inplace=True)
def exp(input):
    """e ** input."""
    return pointwise.exp(input)


@public(inplace=True, aliases=("negative",))
def neg(input):
    """-input."""
    return pointwise.neg(input)
