"""Adamax (Kingma and Ba 2014, section 7.1): Adam with the largest gradient for a second moment.

m = b1 m + (1 - b1) g       u = max(b2 u, |g| + eps)       p = p - lr / (1 - b1^t) * m / u
"""

from collections.abc import Iterable
from typing import Any

from flambeau.optim import checks
from flambeau.optim.stepping import (
    Hyper,
    States,
    UpdatingOptimizer,
    add_quotient_,
    advanced,
    as_real,
    ascending,
    decayed,
    scalar,
    step_counter,
)
from flambeau.tensor import Tensor, maximum, zeros_like


def update(params: list[Tensor], grads: list[Tensor], states: States, hyper: Hyper) -> None:
    """One Adamax step of a group."""
    lr, beta1 = scalar(hyper["lr"], hyper), hyper["betas"][0]
    for param, grad, state in zip(params, grads, states, strict=True):
        step = advanced(state, hyper)
        grad = decayed(param, ascending(grad, hyper), hyper, lr)
        average, largest = state["exp_avg"], state["exp_inf"]
        if param.is_complex():
            param, grad, average, largest = as_real(param, grad, average, largest)
        average.lerp_(grad, 1 - beta1)
        _raise_(largest, grad.abs().add_(hyper["eps"]), hyper)
        add_quotient_(param, average, largest, -lr / (1 - beta1**step))


def _raise_(largest: Tensor, size: Tensor, hyper: Hyper) -> None:
    """u = max(b2 u, size)."""
    if hyper["differentiable"]:
        largest.copy_(maximum(largest * hyper["betas"][1], size))
    else:
        maximum(largest.mul_(hyper["betas"][1]), size, out=largest)


class Adamax(UpdatingOptimizer):
    """Adam under the infinity norm."""

    update = staticmethod(update)

    def __init__(
        self,
        params: Iterable,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        checks.learning_rate("Adamax", lr)
        checks.unit_interval("Adamax", "betas", betas)
        checks.non_negative("Adamax", eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def fresh(self, param: Tensor, group: Hyper) -> dict[str, Any]:
        return {
            "step": step_counter(),
            "exp_avg": zeros_like(param),
            "exp_inf": zeros_like(param),
        }
