"""Adafactor (Shazeer and Stern 2018): second moments of a matrix kept as one row and one column.

w = t^beta2_decay           rate = max(eps2, rms(p)) * min(lr, 1 / sqrt(t))
row = row + w (mean over columns of g^2 - row), col likewise        v = row col / mean(row)
u = g / sqrt(v)             p = (1 - lr weight_decay) p - rate * u / max(1, rms(u) / d)
"""

from collections.abc import Iterable
from typing import Any

from flambeau.core.errors import OpError, complaint
from flambeau.optim import checks
from flambeau.optim.stepping import (
    Hyper,
    States,
    UpdatingOptimizer,
    advanced,
    ascending,
    scalar,
    step_counter,
)
from flambeau.tensor import Tensor, finfo, zeros_like


def update(params: list[Tensor], grads: list[Tensor], states: States, hyper: Hyper) -> None:
    """One Adafactor step of a group."""
    lr, (floor, smallest) = scalar(hyper["lr"], hyper), hyper["eps"]
    for param, grad, state in zip(params, grads, states, strict=True):
        _check_real(param)
        step, grad = advanced(state, hyper), ascending(grad, hyper)
        eps = finfo(param.dtype).eps if floor is None else floor
        rate = max(smallest, _rms(param)) * min(lr, 1 / step**0.5)
        if hyper["weight_decay"] != 0:
            param.mul_(1 - lr * hyper["weight_decay"])
        variance = _variance(grad, state, step ** hyper["beta2_decay"], eps)
        direction = variance.clamp_(min=eps * eps).rsqrt_().mul_(grad)
        param.add_(direction, alpha=-rate / max(1.0, _rms(direction) / hyper["d"]))


def _check_real(param: Tensor) -> None:
    if param.is_complex():
        facts = {"dtype": param.dtype}
        raise OpError(complaint("Adafactor", "parameters must be real", facts, "Use Adam."))


def _rms(x: Tensor) -> float:
    return x.norm(2).item() / x.numel() ** 0.5


def _variance(grad: Tensor, state: dict[str, Any], weight: float, eps: float) -> Tensor:
    """The running mean square of each element, factored for a matrix; a new tensor."""
    if grad.dim() <= 1:
        return state["variance"].lerp_(grad.square(), weight).clone()
    row, column = state["row_var"], state["col_var"]
    row.lerp_(grad.norm(dim=-1, keepdim=True).square_().div_(grad.size(-1)), weight)
    column.lerp_(grad.norm(dim=-2, keepdim=True).square_().div_(grad.size(-2)), weight)
    return (row @ column).div_(row.mean(dim=-2, keepdim=True).clamp_(min=eps))


class Adafactor(UpdatingOptimizer):
    """Adam's adaptivity with memory that grows by a matrix's sides, not its area.

    beta2_decay: power of the step that weighs new squares; d: bound on a step's root mean square;
    eps: (floor of the second moment, floor of the parameter scale).
    """

    update = staticmethod(update)

    def __init__(
        self,
        params: Iterable,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        checks.learning_rate("Adafactor", lr)
        checks.require(
            beta2_decay <= 0, "Adafactor", "beta2_decay must be at most 0", beta2_decay=beta2_decay
        )
        checks.require(
            all(floor is None or floor >= 0 for floor in eps),
            "Adafactor",
            "both parts of eps must be at least 0",
            eps=eps,
        )
        checks.require(d >= 1, "Adafactor", "d must be at least 1", d=d)
        checks.non_negative("Adafactor", weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def fresh(self, param: Tensor, group: Hyper) -> dict[str, Any]:
        if param.dim() <= 1:
            return {"step": step_counter(), "variance": zeros_like(param)}
        row, column = list(param.shape), list(param.shape)
        row[-1] = column[-2] = 1
        return {
            "step": step_counter(),
            "row_var": param.new_zeros(row),
            "col_var": param.new_zeros(column),
        }
