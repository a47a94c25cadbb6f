"""ASGD (Polyak and Juditsky 1992): SGD that also keeps the average of its iterates.

p = (1 - lambd eta) p - eta g        ax = ax + mu (p - ax)
eta = lr / (1 + lambd lr t)^alpha    mu = 1 / max(1, t - t0)
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
    scalar,
    step_counter,
)
from flambeau.tensor import Tensor, zeros_like
from flambeau.tensor.interop import tensor


def update(params: list[Tensor], grads: list[Tensor], states: States, hyper: Hyper) -> None:
    """One ASGD step of a group; `eta` and `mu` in the state serve the next step."""
    lr, lambd = scalar(hyper["lr"], hyper), hyper["lambd"]
    for param, grad, state in zip(params, grads, states, strict=True):
        step = advanced(state, hyper)
        grad = decayed(param, ascending(grad, hyper), hyper, lr)
        average, eta = state["ax"], scalar(state["eta"], hyper)
        if param.is_complex():
            param, grad, average = as_real(param, grad, average)
        param.mul_(1 - lambd * eta)
        add_scaled_(param, grad, -eta)
        _average_(average, param, state["mu"].item())
        state["eta"].fill_(float(lr / (1 + lambd * lr * step) ** hyper["alpha"]))
        state["mu"].fill_(1 / max(1, float(step) - hyper["t0"]))


def _average_(average: Tensor, param: Tensor, mu: float) -> None:
    """ax = ax + mu (p - ax), which is a copy until averaging starts."""
    if mu == 1:
        average.copy_(param)
    else:
        average.add_(param.sub(average).mul_(mu))


class ASGD(UpdatingOptimizer):
    """Averaged SGD; the average is `state[param]["ax"]`.

    lambd: decay; alpha: power of the rate's fall; t0: step at which averaging starts.
    """

    update = staticmethod(update)

    def __init__(
        self,
        params: Iterable,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        checks.learning_rate("ASGD", lr)
        checks.non_negative("ASGD", weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
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
            "eta": tensor(float(scalar(group["lr"], {}))),
            "mu": tensor(1.0),
            "ax": zeros_like(param),
        }
