"""Rprop (Riedmiller and Braun 1993): only the sign of the gradient counts, each element has a step.

s = sign(g * previous g)
step_size = clip(step_size * (eta_plus if s > 0, eta_minus if s < 0, else 1), smallest, largest)
g = 0 where s < 0        p = p - sign(g) * step_size        previous g = g
"""

from collections.abc import Iterable
from typing import Any

from flambeau.optim import checks
from flambeau.optim.stepping import (
    Hyper,
    States,
    UpdatingOptimizer,
    as_real,
    ascending,
    scalar,
    step_counter,
)
from flambeau.tensor import Tensor, full_like, ones_like, zeros_like


def update(params: list[Tensor], grads: list[Tensor], states: States, hyper: Hyper) -> None:
    """One Rprop step of a group."""
    (shrink, grow), (smallest, largest) = hyper["etas"], hyper["step_sizes"]
    for param, grad, state in zip(params, grads, states, strict=True):
        state["step"].add_(1)
        grad = ascending(grad, hyper)
        previous, size = state["prev"], state["step_size"]
        if param.is_complex():
            param, grad, previous, size = as_real(param, grad, previous, size)
        agreement = (grad * previous).sign()
        factor = ones_like(size).masked_fill_(agreement > 0, grow)
        size.mul_(factor.masked_fill_(agreement < 0, shrink)).clamp_(smallest, largest)
        grad = grad.masked_fill(agreement < 0, 0)
        param.addcmul_(grad.sign(), size, value=-1)
        previous.copy_(grad)


class Rprop(UpdatingOptimizer):
    """Resilient backpropagation, for full-batch training.

    etas: factors of a step size when the gradient's sign flips and when it holds;
    step_sizes: its bounds. `lr` is the first step size.
    """

    update = staticmethod(update)

    def __init__(
        self,
        params: Iterable,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        checks.learning_rate("Rprop", lr)
        checks.require(
            0 < etas[0] < 1 < etas[1],
            "Rprop",
            "etas must satisfy 0 < etas[0] < 1 < etas[1]",
            etas=etas,
        )
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def fresh(self, param: Tensor, group: Hyper) -> dict[str, Any]:
        lr = scalar(group["lr"], {})
        first = complex(lr, lr) if param.is_complex() else lr
        return {
            "step": step_counter(),
            "prev": zeros_like(param),
            "step_size": full_like(param, first),
        }
