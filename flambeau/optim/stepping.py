"""The frame that every built-in optimizer's step shares; its file adds the formula.

An optimizer defines `fresh(param, group)`, the state of a parameter before its first step, and
`update(params, grads, states, hyper)`, which changes params and states in place for one group.
`update` sees a whole group at once, so that one kernel over all its tensors can take its place.
"""

from collections.abc import Callable
from typing import Any

from flambeau.autograd import enable_grad, set_grad_enabled
from flambeau.optim.optimizer import Optimizer
from flambeau.tensor import Tensor, view_as_real
from flambeau.tensor.interop import tensor

States = list[dict[str, Any]]
Hyper = dict[str, Any]


class UpdatingOptimizer(Optimizer):
    """An optimizer whose step is `update` on each parameter group."""

    update: Callable[[list[Tensor], list[Tensor], States, Hyper], None]
    step_is_tensor = True

    def fresh(self, param: Tensor, group: Hyper) -> dict[str, Any]:
        """The state of `param` before its first step."""
        return {}

    def step(self, closure: Callable | None = None) -> Any:
        """Update every parameter that has a gradient; `closure` recomputes and returns the loss."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        differentiable = self.defaults.get("differentiable", False)
        with set_grad_enabled(differentiable):
            for group in self.param_groups:
                params, grads, states = self._gathered(group)
                if differentiable:
                    _leave_saved_state(states)
                if params:
                    self.update(params, grads, states, group)
        return loss

    def _gathered(self, group: Hyper) -> tuple[list[Tensor], list[Tensor], States]:
        """The parameters of `group` that have gradients, those gradients, and their states."""
        params, grads, states = [], [], []
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            state = self.state[param]
            if not state:
                state.update(self.fresh(param, group))
            params.append(param)
            grads.append(grad)
            states.append(state)
        return params, grads, states

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            # Checkpoints from before an option existed do not have it.
            for key, value in self.defaults.items():
                group.setdefault(key, value)
        if not self.step_is_tensor:
            return
        for values in self.state.values():
            if isinstance(values, dict) and isinstance(values.get("step"), int | float):
                values["step"] = tensor(float(values["step"]))


def _leave_saved_state(states: States) -> None:
    """Give each state fresh tensors: an earlier step's graph still needs the old values."""
    for state in states:
        for key, value in state.items():
            if isinstance(value, Tensor):
                state[key] = value.clone()


def step_counter() -> Tensor:
    """A step count of zero, a float32 scalar in every state dict."""
    return tensor(0.0)


def scalar(value: Any, hyper: Hyper) -> Any:
    """`value` as a Python number, unless the graph of a differentiable step needs the tensor."""
    if isinstance(value, Tensor) and not hyper.get("differentiable"):
        return value.item()
    return value


def advanced(state: dict[str, Any], hyper: Hyper) -> Any:
    """Count one step, and return the count."""
    step = state["step"]
    step.add_(1)
    return scalar(step, hyper)


def ascending(grad: Tensor, hyper: Hyper) -> Tensor:
    """The gradient to descend along: `maximize` turns it round."""
    return -grad if hyper["maximize"] else grad


def add_scaled_(x: Tensor, y: Tensor, scale: Any) -> None:
    """x += scale * y, where scale may be a tensor in the graph."""
    if isinstance(scale, Tensor):
        x.add_(y * scale)
    else:
        x.add_(y, alpha=scale)


def add_quotient_(x: Tensor, numerator: Tensor, denominator: Tensor, scale: Any) -> None:
    """x += scale * numerator / denominator, where scale may be a tensor in the graph."""
    if isinstance(scale, Tensor):
        x.addcdiv_(numerator * scale, denominator)
    else:
        x.addcdiv_(numerator, denominator, value=scale)


def decayed(param: Tensor, grad: Tensor, hyper: Hyper, lr: Any) -> Tensor:
    """The gradient with weight decay; when that is decoupled, `param` itself shrinks instead."""
    decay = scalar(hyper["weight_decay"], hyper)
    if not isinstance(decay, Tensor) and decay == 0:
        return grad
    if hyper.get("decoupled_weight_decay"):
        param.mul_(1 - lr * decay)
        return grad
    if isinstance(decay, Tensor):
        return grad + param * decay
    return grad.add(param, alpha=decay)


def root(x: Tensor, eps: float, hyper: Hyper) -> Tensor:
    """sqrt(x) + eps, as a new tensor."""
    out = x.sqrt()
    return out.add(eps) if hyper["differentiable"] else out.add_(eps)


def as_real(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Complex tensors as real ones with a last axis of two: a step treats the parts alike."""
    return tuple(view_as_real(t) if t.is_complex() else t for t in tensors)
