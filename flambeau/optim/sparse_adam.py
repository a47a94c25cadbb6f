"""SparseAdam: Adam on the rows that a sparse gradient names; the others keep value and moments.

m = b1 m + (1 - b1) g       v = b2 v + (1 - b2) g^2       at the gradient's entries only
p = p - lr sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps)
"""

from collections.abc import Iterable
from typing import Any

from flambeau.optim import checks
from flambeau.optim.stepping import Hyper, States, UpdatingOptimizer, ascending, scalar
from flambeau.tensor import Tensor, zeros_like


def update(params: list[Tensor], grads: list[Tensor], states: States, hyper: Hyper) -> None:
    """One SparseAdam step of a group."""
    lr, (beta1, beta2) = scalar(hyper["lr"], hyper), hyper["betas"]
    for param, grad, state in zip(params, grads, states, strict=True):
        state["step"] += 1
        step = state["step"]
        rate = lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        where, values = _entries(grad)
        values = ascending(values, hyper)
        if values.numel() == 0:
            continue
        average, square = state["exp_avg"], state["exp_avg_sq"]
        average_here = average[where].lerp_(values, 1 - beta1)
        square_here = square[where].lerp_(values.square(), 1 - beta2)
        average[where] = average_here
        square[where] = square_here
        step_here = average_here / square_here.sqrt().add_(hyper["eps"])
        param[where] = param[where] - rate * step_here


def _entries(grad: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
    """The index tuple of a gradient's entries, and their values.

    A dense gradient has an entry in every row (first dimension) that is not all zeros.
    """
    if getattr(grad, "is_sparse", False):
        grad = grad.coalesce()
        return tuple(grad.indices().unbind(0)), grad.values()
    rows = grad.reshape(grad.shape[0], -1).ne(0).any(dim=1).nonzero().squeeze(1)
    return (rows,), grad[rows]


class SparseAdam(UpdatingOptimizer):
    """Adam for embeddings: a step touches only what the gradient touches."""

    update = staticmethod(update)
    step_is_tensor = False

    def __init__(
        self,
        params: Iterable,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        checks.learning_rate("SparseAdam", lr)
        checks.require(lr > 0, "SparseAdam", "lr must be above 0", lr=lr)
        checks.require(eps > 0, "SparseAdam", "eps must be above 0", eps=eps)
        checks.unit_interval("SparseAdam", "betas", betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def add_param_group(self, param_group: Hyper) -> None:
        super().add_param_group(param_group)
        for param in self.param_groups[-1]["params"]:
            checks.require(
                not (getattr(param, "is_sparse", False) or param.is_complex()),
                "SparseAdam",
                "parameters must be dense and real",
                dtype=param.dtype,
            )

    def fresh(self, param: Tensor, group: Hyper) -> dict[str, Any]:
        return {"step": 0, "exp_avg": zeros_like(param), "exp_avg_sq": zeros_like(param)}
