"""SGD, with momentum and Nesterov's look-ahead.

g = grad + weight_decay * p          buf = momentum * buf + (1 - dampening) * g   (first: buf = g)
d = buf, or g + momentum * buf       p = p - lr * d
"""

from collections.abc import Iterable
from typing import Any

from flambeau.optim import checks
from flambeau.optim.stepping import (
    Hyper,
    States,
    UpdatingOptimizer,
    add_scaled_,
    ascending,
    decayed,
    scalar,
)
from flambeau.tensor import Tensor


def update(params: list[Tensor], grads: list[Tensor], states: States, hyper: Hyper) -> None:
    """One SGD step of a group; `momentum_buffer` appears at a parameter's first step."""
    lr, momentum = scalar(hyper["lr"], hyper), hyper["momentum"]
    for param, grad, state in zip(params, grads, states, strict=True):
        direction = decayed(param, ascending(grad, hyper), hyper, lr)
        if momentum != 0:
            direction = _with_momentum(direction, state, hyper)
        add_scaled_(param, direction, -lr)


def _with_momentum(grad: Tensor, state: dict[str, Any], hyper: Hyper) -> Tensor:
    momentum = hyper["momentum"]
    buffer = state.get("momentum_buffer")
    if buffer is None:
        buffer = state["momentum_buffer"] = (
            grad.clone() if hyper["differentiable"] else grad.detach().clone()
        )
    else:
        buffer.mul_(momentum).add_(grad, alpha=1 - hyper["dampening"])
    return grad.add(buffer, alpha=momentum) if hyper["nesterov"] else buffer


class SGD(UpdatingOptimizer):
    """Stochastic gradient descent.

    momentum: share of the last direction that is kept; dampening: share of the gradient left out
    of it; nesterov: step along the direction as it will be (needs momentum, no dampening).
    """

    update = staticmethod(update)

    def __init__(
        self,
        params: Iterable,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        checks.learning_rate("SGD", lr)
        checks.non_negative("SGD", momentum=momentum, weight_decay=weight_decay)
        checks.require(
            not nesterov or (momentum > 0 and dampening == 0),
            "SGD",
            "nesterov needs momentum above 0 and dampening 0",
            momentum=momentum,
            dampening=dampening,
        )
        checks.flags("SGD", fused=fused, foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
