"""Adagrad (Duchi et al. 2011).

s = s + g^2        p = p - lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps)
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
    root,
    scalar,
    step_counter,
)
from flambeau.tensor import Tensor, full_like


def update(params: list[Tensor], grads: list[Tensor], states: States, hyper: Hyper) -> None:
    """One Adagrad step of a group."""
    lr = scalar(hyper["lr"], hyper)
    for param, grad, state in zip(params, grads, states, strict=True):
        step = advanced(state, hyper)
        grad = decayed(param, ascending(grad, hyper), hyper, lr)
        total = state["sum"]
        if param.is_complex():
            param, grad, total = as_real(param, grad, total)
        total.addcmul_(grad, grad, value=1)
        spread = root(total, hyper["eps"], hyper)
        add_quotient_(param, grad, spread, -lr / (1 + (step - 1) * hyper["lr_decay"]))


class Adagrad(UpdatingOptimizer):
    """Each element's rate falls with the squares of the gradients that it has seen.

    Its state exists from construction on, starting at `initial_accumulator_value`.
    """

    update = staticmethod(update)

    def __init__(
        self,
        params: Iterable,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        checks.learning_rate("Adagrad", lr)
        checks.non_negative(
            "Adagrad",
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        checks.flags("Adagrad", fused=fused, foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: Hyper) -> None:
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for param in group["params"]:
            self.state[param].update(self.fresh(param, group))

    def fresh(self, param: Tensor, group: Hyper) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        first = complex(start, start) if param.is_complex() else start
        return {"step": step_counter(), "sum": full_like(param, first, requires_grad=False)}

    def share_memory(self) -> None:
        """Move the state to shared memory, for training from several processes."""
        for state in self.state.values():
            state["sum"].share_memory_()
