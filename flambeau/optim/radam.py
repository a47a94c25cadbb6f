"""RAdam (Liu et al. 2019): Adam that waits until its second moment can be trusted.

rho_inf = 2 / (1 - b2) - 1       rho_t = rho_inf - 2 t b2^t / (1 - b2^t)
m = b1 m + (1 - b1) g       v = b2 v + (1 - b2) g^2       mh = m / (1 - b1^t)
r^2 = (rho_t - 4)(rho_t - 2) rho_inf / ((rho_inf - 4)(rho_inf - 2) rho_t)
p = p - lr mh r sqrt(1 - b2^t) / (sqrt(v) + eps) when rho_t > 5, else p - lr mh
"""

from collections.abc import Iterable
from typing import Any

from flambeau.optim import checks
from flambeau.optim.stepping import (
    Hyper,
    States,
    UpdatingOptimizer,
    add_scaled_,
    advanced,
    as_real,
    ascending,
    decayed,
    root,
    scalar,
    step_counter,
)
from flambeau.tensor import Tensor, zeros_like


def update(params: list[Tensor], grads: list[Tensor], states: States, hyper: Hyper) -> None:
    """One RAdam step of a group."""
    lr, (beta1, beta2) = scalar(hyper["lr"], hyper), hyper["betas"]
    for param, grad, state in zip(params, grads, states, strict=True):
        step = advanced(state, hyper)
        grad = decayed(param, ascending(grad, hyper), hyper, lr)
        average, square = state["exp_avg"], state["exp_avg_sq"]
        if param.is_complex():
            param, grad, average, square = as_real(param, grad, average, square)
        average.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        direction = average / (1 - beta1**step)
        trust = _trust(float(step), beta2)
        if trust is None:
            add_scaled_(param, direction, -lr)
        else:
            spread = root(square, hyper["eps"], hyper)
            add_scaled_(param, direction * lr * (trust / spread), -1.0)


def _trust(step: float, beta2: float) -> float | None:
    """r sqrt(1 - b2^t), or None while the variance of v is unbounded (rho_t <= 5)."""
    correction = 1 - beta2**step
    rho_inf = 2 / (1 - beta2) - 1
    rho = rho_inf - 2 * step * beta2**step / correction
    if rho <= 5:
        return None
    ratio = (rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)
    return ratio**0.5 * correction**0.5


class RAdam(UpdatingOptimizer):
    """Rectified Adam: plain momentum first, Adam once enough gradients were seen."""

    update = staticmethod(update)

    def __init__(
        self,
        params: Iterable,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        checks.learning_rate("RAdam", lr)
        checks.unit_interval("RAdam", "betas", betas)
        checks.non_negative("RAdam", eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def fresh(self, param: Tensor, group: Hyper) -> dict[str, Any]:
        return {
            "step": step_counter(),
            "exp_avg": zeros_like(param),
            "exp_avg_sq": zeros_like(param),
        }
