"""Adadelta (Zeiler 2012).

v = rho v + (1 - rho) g^2        d = sqrt(u + eps) / sqrt(v + eps) * g
u = rho u + (1 - rho) d^2        p = p - lr d
"""

from collections.abc import Iterable
from typing import Any

from flambeau.optim import checks
from flambeau.optim.stepping import (
    Hyper,
    States,
    UpdatingOptimizer,
    add_scaled_,
    as_real,
    ascending,
    decayed,
    scalar,
    step_counter,
)
from flambeau.tensor import Tensor, zeros_like


def update(params: list[Tensor], grads: list[Tensor], states: States, hyper: Hyper) -> None:
    """One Adadelta step of a group."""
    lr, rho, eps = scalar(hyper["lr"], hyper), hyper["rho"], hyper["eps"]
    for param, grad, state in zip(params, grads, states, strict=True):
        state["step"].add_(1)
        grad = decayed(param, ascending(grad, hyper), hyper, lr)
        square, moved = state["square_avg"], state["acc_delta"]
        if param.is_complex():
            param, grad, square, moved = as_real(param, grad, square, moved)
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = moved.add(eps).sqrt() / square.add(eps).sqrt() * grad
        moved.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        add_scaled_(param, delta, -lr)


class Adadelta(UpdatingOptimizer):
    """The step's unit is that of the parameter: a running size of past steps scales it."""

    update = staticmethod(update)

    def __init__(
        self,
        params: Iterable,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        checks.learning_rate("Adadelta", lr)
        checks.require(0 <= rho <= 1, "Adadelta", "rho must be in [0, 1]", rho=rho)
        checks.non_negative("Adadelta", eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def fresh(self, param: Tensor, group: Hyper) -> dict[str, Any]:
        return {
            "step": step_counter(),
            "square_avg": zeros_like(param),
            "acc_delta": zeros_like(param),
        }
