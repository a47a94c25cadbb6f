"""Backward hooks of modules: identity operations on a call's inputs and outputs see gradients.

The output's boundary runs first in backward and learns the gradients of the outputs; the input's
boundary runs when the gradients of all inputs are known, and calls the hooks.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from flambeau.autograd.function import Function
from flambeau.autograd.modes import is_grad_enabled
from flambeau.core.errors import OpError, complaint
from flambeau.tensor import Tensor

Hook = Callable[..., Any]
Gradients = tuple[Any, ...]


class Boundary(Function):
    """The tensors themselves; in backward the gradients pass through a callback."""

    @staticmethod
    def forward(ctx: Any, on_gradients: Callable[[Gradients], Gradients], *tensors: Tensor) -> Any:
        ctx.on_gradients = on_gradients
        ctx.set_materialize_grads(False)
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *ctx.on_gradients(gradients))


class GradientWatch:
    """Carries one call's gradients to the full backward hooks of a module."""

    def __init__(self, module: Any, hooks: list[Hook], pre_hooks: list[Hook]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_output: Gradients | None = None
        self.input_count = 0
        self.input_positions: list[int] = []

    def wrap_inputs(self, args: tuple) -> tuple:
        """args with its tensors behind a boundary, if any of them needs a gradient."""
        self.input_count = len(args)
        wrapped, positions = self._wrapped(args, self._on_grad_input)
        self.input_positions = positions
        return tuple(wrapped)

    def wrap_outputs(self, result: Any) -> Any:
        """result, a tensor or a tuple or list of them, behind a boundary."""
        if not isinstance(result, (Tensor, tuple, list)):
            warnings.warn(
                "a full backward hook needs a module that returns a tensor or a tuple of tensors; "
                f"{type(self.module).__name__} returned {type(result).__name__}, so its hooks "
                "will not run",
                stacklevel=4,
            )
            return result
        single = isinstance(result, Tensor)
        outputs = [result] if single else list(result)
        wrapped, positions = self._wrapped(
            outputs, lambda gradients: self._on_grad_output(gradients, len(outputs), positions)
        )
        if single:
            return wrapped[0]
        return rebuilt_like(result, wrapped)

    @staticmethod
    def _wrapped(values: Any, on_gradients: Callable) -> tuple[list, list[int]]:
        """values with all tensors passed through one Boundary, and where the tensors are."""
        wrapped = list(values)
        positions = [i for i, value in enumerate(wrapped) if isinstance(value, Tensor)]
        if not is_grad_enabled() or not any(wrapped[i].requires_grad for i in positions):
            return wrapped, []
        passed = Boundary.apply(on_gradients, *(wrapped[i] for i in positions))
        for i, tensor in zip(positions, passed, strict=True):
            wrapped[i] = tensor
        return wrapped, positions

    def _on_grad_output(self, gradients: Gradients, count: int, positions: list[int]) -> Gradients:
        spread = scattered(gradients, positions, count)
        for hook in self.pre_hooks:
            spread = self._replaced(spread, hook(self.module, spread), "pre-hook")
        self.grad_output = spread
        if not self.input_positions:
            for hook in self.hooks:
                if hook(self.module, (None,) * self.input_count, spread) is not None:
                    raise OpError(
                        complaint(
                            "full backward hook",
                            "a hook must return None where no input needs a gradient",
                            {"module": type(self.module).__name__},
                        )
                    )
        return tuple(spread[i] for i in positions)

    def _on_grad_input(self, gradients: Gradients) -> Gradients:
        spread = scattered(gradients, self.input_positions, self.input_count)
        for hook in self.hooks:
            result = hook(self.module, spread, self.grad_output)
            spread = self._replaced(spread, result, "hook")
        return tuple(spread[i] for i in self.input_positions)

    def _replaced(self, gradients: Gradients, result: Any, kind: str) -> Gradients:
        """What a hook's result makes of the gradients."""
        if result is None:
            return gradients
        replaced = result if isinstance(result, tuple) else (result,)
        if len(replaced) != len(gradients):
            raise OpError(
                complaint(
                    f"full backward {kind}",
                    "a hook must return as many gradients as it was given",
                    {"returned": len(replaced), "given": len(gradients)},
                )
            )
        return replaced


def scattered(values: Gradients, positions: list[int], count: int) -> Gradients:
    """A tuple of `count` entries: values at their positions, None elsewhere."""
    spread: list[Any] = [None] * count
    for i, value in zip(positions, values, strict=True):
        spread[i] = value
    return tuple(spread)


def rebuilt_like(original: Any, values: list) -> Any:
    """values as the kind of sequence that original is (named tuples too)."""
    if isinstance(original, tuple) and hasattr(original, "_fields"):
        return type(original)(*values)
    return type(original)(values)


def watch_first_gradient(module: Any, hooks: list[Hook], result: Any) -> None:
    """Non-full hooks: call them with what flows through the last operation of the result."""
    value = result
    while not isinstance(value, Tensor):
        if isinstance(value, dict):
            value = next((v for v in value.values() if isinstance(v, Tensor)), None)
        elif isinstance(value, (tuple, list)) and value:
            value = value[0]
        else:
            return
    if value.grad_fn is not None:
        for hook in hooks:
            value.grad_fn.register_hook(functools.partial(hook, module))
