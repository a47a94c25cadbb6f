"""Adam (Kingma and Ba 2014), with AMSGrad (Reddi et al. 2018).

m = b1 m + (1 - b1) g       v = b2 v + (1 - b2) g^2       vmax = max(vmax, v) under amsgrad
p = p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
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
    """One Adam step of a group."""
    lr = scalar(hyper["lr"], hyper)
    beta1, beta2 = (scalar(beta, hyper) for beta in hyper["betas"])
    for param, grad, state in zip(params, grads, states, strict=True):
        step = advanced(state, hyper)
        grad = decayed(param, ascending(grad, hyper), hyper, lr)
        average, square = state["exp_avg"], state["exp_avg_sq"]
        if param.is_complex():
            param, grad, average, square = as_real(param, grad, average, square)
        average.lerp_(grad, 1 - beta1)
        _add_square_(square, grad, beta2)
        if hyper["amsgrad"]:
            square = _largest(square, state, hyper)
        spread = (square.sqrt() / (1 - beta2**step) ** 0.5).add_(hyper["eps"])
        add_quotient_(param, average, spread, -lr / (1 - beta1**step))


def _add_square_(square: Tensor, grad: Tensor, beta2: Any) -> None:
    """v = b2 v + (1 - b2) g^2."""
    if isinstance(beta2, Tensor):
        square.mul_(beta2).add_(grad * grad * (1 - beta2))
    else:
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)


def _largest(square: Tensor, state: dict[str, Any], hyper: Hyper) -> Tensor:
    """The elementwise maximum of all second moments so far, kept in `max_exp_avg_sq`."""
    kept = state["max_exp_avg_sq"]
    largest = as_real(kept)[0] if kept.is_complex() else kept
    if hyper["differentiable"]:
        state["max_exp_avg_sq"] = maximum(largest, square)
        return state["max_exp_avg_sq"]
    return maximum(largest, square, out=largest)


class Adam(UpdatingOptimizer):
    """Adaptive moment estimation; `decoupled_weight_decay=True` makes it AdamW."""

    update = staticmethod(update)

    def __init__(
        self,
        params: Iterable,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        name = type(self).__name__
        checks.learning_rate(name, lr)
        checks.unit_interval(name, "betas", betas)
        checks.non_negative(name, eps=eps, weight_decay=weight_decay)
        _check_tensor_options(name, lr, betas, foreach, capturable)
        checks.flags(name, fused=fused, foreach=foreach, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def fresh(self, param: Tensor, group: Hyper) -> dict[str, Any]:
        state = {
            "step": step_counter(),
            "exp_avg": zeros_like(param),
            "exp_avg_sq": zeros_like(param),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(param)
        return state


def _check_tensor_options(
    name: str, lr: Any, betas: tuple[Any, Any], foreach: bool | None, capturable: bool
) -> None:
    """Tensor options: both betas or none, one element each, and not with a plain `foreach`."""
    tensors = [isinstance(value, Tensor) for value in (lr, *betas)]
    checks.require(
        tensors[1] == tensors[2],
        name,
        "betas must be two numbers or two tensors",
        betas=betas,
    )
    checks.require(
        not (any(tensors) and foreach and not capturable),
        name,
        "with foreach=True, a tensor lr or betas needs capturable=True",
        lr=lr,
        betas=betas,
    )
    for i, beta in enumerate(betas):
        checks.require(
            not isinstance(beta, Tensor) or beta.numel() == 1,
            name,
            f"betas[{i}] must have one element",
            betas=betas,
        )
