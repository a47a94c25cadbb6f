"""RMSprop (Hinton's lecture 6), optionally centered (Graves 2013) and with momentum.

v = alpha v + (1 - alpha) g^2        centered: a = alpha a + (1 - alpha) g,  v - a^2 in place of v
d = g / (sqrt(v) + eps)              momentum: buf = momentum buf + d,  buf in place of d
p = p - lr d
"""

from collections.abc import Iterable
from typing import Any

from flambeau.optim import checks
from flambeau.optim.stepping import (
    Hyper,
    States,
    UpdatingOptimizer,
    add_quotient_,
    add_scaled_,
    as_real,
    ascending,
    decayed,
    root,
    scalar,
    step_counter,
)
from flambeau.tensor import Tensor, zeros_like


def update(params: list[Tensor], grads: list[Tensor], states: States, hyper: Hyper) -> None:
    """One RMSprop step of a group."""
    lr, alpha, momentum = scalar(hyper["lr"], hyper), hyper["alpha"], hyper["momentum"]
    for param, grad, state in zip(params, grads, states, strict=True):
        state["step"].add_(1)
        grad = decayed(param, ascending(grad, hyper), hyper, lr)
        square = state["square_avg"]
        buffer: Any = state.get("momentum_buffer")
        if param.is_complex():
            param, grad, square = as_real(param, grad, square)
            buffer = None if buffer is None else as_real(buffer)[0]
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        spread = root(_variance(square, grad, state, hyper), hyper["eps"], hyper)
        if momentum > 0:
            buffer.mul_(momentum).addcdiv_(grad, spread)
            add_scaled_(param, buffer, -lr)
        else:
            add_quotient_(param, grad, spread, -lr)


def _variance(square: Tensor, grad: Tensor, state: dict[str, Any], hyper: Hyper) -> Tensor:
    """The mean square, less the squared mean when centered."""
    if not hyper["centered"]:
        return square
    mean = state["grad_avg"]
    (mean,) = as_real(mean)
    mean.lerp_(grad, 1 - hyper["alpha"])
    return square.addcmul(mean, mean, value=-1)


class RMSprop(UpdatingOptimizer):
    """Gradient divided by a running root mean square.

    alpha: decay of the running means; centered: divide by the deviation and not the raw moment.
    """

    update = staticmethod(update)

    def __init__(
        self,
        params: Iterable,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        checks.learning_rate("RMSprop", lr)
        checks.non_negative(
            "RMSprop", eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def fresh(self, param: Tensor, group: Hyper) -> dict[str, Any]:
        state = {"step": step_counter(), "square_avg": zeros_like(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = zeros_like(param)
        return state
