"""NAdam (Dozat 2016): Adam with Nesterov momentum.

mu_t = b1 (1 - 0.96^(t momentum_decay) / 2)        M_t = mu_1 ... mu_t
m = b1 m + (1 - b1) g       v = b2 v + (1 - b2) g^2       d = sqrt(v / (1 - b2^t)) + eps
p = p - lr (1 - mu_t) / (1 - M_t) * g / d - lr mu_(t+1) / (1 - M_(t+1)) * m / d
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
from flambeau.tensor import Tensor, zeros_like
from flambeau.tensor.interop import tensor


def update(params: list[Tensor], grads: list[Tensor], states: States, hyper: Hyper) -> None:
    """One NAdam step of a group."""
    lr, (beta1, beta2) = scalar(hyper["lr"], hyper), hyper["betas"]
    for param, grad, state in zip(params, grads, states, strict=True):
        step = advanced(state, hyper)
        grad = decayed(param, ascending(grad, hyper), hyper, lr)
        mu, mu_next, product = _momenta(step, state, hyper)
        average, square = state["exp_avg"], state["exp_avg_sq"]
        if param.is_complex():
            param, grad, average, square = as_real(param, grad, average, square)
        average.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        spread = square.div(1 - beta2**step).sqrt().add(hyper["eps"])
        add_quotient_(param, grad, spread, -lr * (1 - mu) / (1 - product))
        add_quotient_(param, average, spread, -lr * mu_next / (1 - product * mu_next))


def _momenta(step: Any, state: dict[str, Any], hyper: Hyper) -> tuple[Any, Any, Any]:
    """This step's momentum, the next one's, and the product of all until now."""
    beta1, decay = hyper["betas"][0], hyper["momentum_decay"]
    mu = beta1 * (1 - 0.5 * 0.96 ** (step * decay))
    mu_next = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * decay))
    product = state["mu_product"]
    product.mul_(mu)
    return mu, mu_next, scalar(product, hyper)


class NAdam(UpdatingOptimizer):
    """Adam whose step looks one momentum ahead; the momentum warms up by `momentum_decay`."""

    update = staticmethod(update)

    def __init__(
        self,
        params: Iterable,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        checks.learning_rate("NAdam", lr)
        checks.unit_interval("NAdam", "betas", betas)
        checks.non_negative(
            "NAdam", eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay
        )
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def fresh(self, param: Tensor, group: Hyper) -> dict[str, Any]:
        return {
            "step": step_counter(),
            "mu_product": tensor(1.0),
            "exp_avg": zeros_like(param),
            "exp_avg_sq": zeros_like(param),
        }
