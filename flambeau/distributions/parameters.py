"""What parameters of distributions have in common: broadcasting, and probabilities as logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core.dtype import default_dtype
from flambeau.core.errors import ArgumentError, ValueRangeError, complaint
from flambeau.core.spec import Size
from flambeau.tensor import (
    Tensor,
    broadcast_tensors,
    exp,
    finfo,
    log,
    log1p,
    logsumexp,
    sigmoid,
    softmax,
)
from flambeau.tensor.interop import tensor


def broadcast_all(*values: Any) -> list[Tensor]:
    """Tensors of one shape. Numbers take the dtype and device of the first tensor, if any."""
    for value in values:
        if not isinstance(value, Tensor | int | float):
            raise ValueRangeError(complaint(
                "broadcast_all", "Input arguments must all be instances of Number or torch.Tensor",
                dict(got=type(value).__name__)))
    first = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = default_dtype() if first is None else first.dtype
    device = None if first is None else first.device
    made = [v if isinstance(v, Tensor) else tensor(v, dtype=dtype, device=device) for v in values]
    return list(broadcast_tensors(*made))


def batch_shape_of(tensor_: Tensor, *values: Any) -> Size:
    """The shape of a batch of distributions: none if all parameters were given as numbers."""
    return Size() if all(isinstance(v, int | float) for v in values) else tensor_.shape


def probs_or_logits(who: str, probs: Any, logits: Any) -> bool:
    """Whether probs were given; exactly one of the two must be."""
    if (probs is None) == (logits is None):
        raise ValueRangeError(complaint(who, "Either `probs` or `logits` must be specified, but "
                                        "not both"))
    return probs is not None


def clamp_probs(probs: Tensor) -> Tensor:
    """Away from 0 and 1 by the spacing of the dtype, so that logarithms stay finite."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    return sigmoid(logits) if is_binary else softmax(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of `logits_to_probs`; of categories, up to a constant."""
    clamped = clamp_probs(probs)
    return log(clamped) - log1p(-clamped) if is_binary else log(clamped)


def normalized(logits: Tensor) -> Tensor:
    """Logits whose exponentials sum to 1."""
    return logits - logsumexp(logits, -1, keepdim=True)


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp x), exact for large |x|."""
    return x.clamp(min=0) + log1p(exp(-x.abs()))


class lazy_property:
    """An attribute that is computed when it is first read, and kept."""

    def __init__(self, function: Callable[[Any], Any]):
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = self.function(instance)
        instance.__dict__[self.name] = value
        return value


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """Sum over the last `dims` dimensions."""
    return value if dims == 0 else value.reshape((*value.shape[: value.dim() - dims], -1)).sum(-1)


def shape_of(sizes: Any) -> Size:
    """A Size from what users pass as a sample shape."""
    if isinstance(sizes, int):
        raise ArgumentError(complaint("sample", "the sample shape must be a tuple of ints",
                                      dict(sample_shape=sizes), f"Pass ({sizes},)."))
    return Size(sizes)
