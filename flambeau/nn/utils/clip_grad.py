"""Bounding gradients, by their common norm or element by element."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.core.errors import OpError
from flambeau.tensor import Tensor, stack
from flambeau.tensor.ensuring import ensure
from flambeau.tensor.interop import tensor

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]

Tensors = Any  # one Tensor, or an iterable of them


def as_list(tensors: Tensors) -> list[Tensor]:
    """One tensor, or several, as a list."""
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def gradients(parameters: Tensors) -> list[Tensor]:
    """The gradients that the parameters have."""
    return [p.grad for p in as_list(parameters) if p.grad is not None]


@no_grad()
def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors as if they were one vector: the norm of their norms."""
    norm_type = float(norm_type)
    tensors = as_list(tensors)
    if not tensors:
        return tensor(0.0)
    where = tensors[0].device
    norms = [t.norm(norm_type).to(where) for t in tensors]
    total = stack(norms).norm(norm_type)
    if error_if_nonfinite:
        ensure(
            total.isfinite(),
            OpError,
            "clip_grad_norm_",
            f"the total norm of order {norm_type} must be finite",
            hint="Pass error_if_nonfinite=False to scale by it all the same.",
            shown=total,
        )
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensors,
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Multiply the gradients, in place, by min(1, max_norm / (total_norm + 1e-6))."""
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for gradient in gradients(parameters):
        gradient.mul_(factor.to(gradient.device))


@no_grad()
def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients, in place, to a total norm of at most max_norm; the norm before that."""
    parameters = as_list(parameters)
    total = get_total_norm(gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


@functools.wraps(clip_grad_norm_)
def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """The older spelling of clip_grad_norm_."""
    warnings.warn(
        "nn.utils.clip_grad_norm is deprecated; use nn.utils.clip_grad_norm_",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


@no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of the gradients, in place, to +-clip_value."""
    bound = float(clip_value)
    for gradient in gradients(parameters):
        gradient.clamp_(min=-bound, max=bound)
