"""Muon (Jordan et al. 2024): momentum whose singular values are all pushed towards one.

    buf = momentum buf + (1 - momentum) g        d = (1 - momentum) g + momentum buf, or buf
    p = (1 - lr weight_decay) p - lr * scale * orthogonal(d)

orthogonal(d) iterates X = a X + (b A + c A A) X with A = X X^T in bfloat16 (Newton and Schulz).
"""

from collections.abc import Iterable
from typing import Any

from flambeau.core.errors import OpError, complaint
from flambeau.optim import checks
from flambeau.optim.stepping import (
    Hyper,
    States,
    UpdatingOptimizer,
    scalar,
)
from flambeau.tensor import Tensor, bfloat16, zeros_like


def update(params: list[Tensor], grads: list[Tensor], states: States, hyper: Hyper) -> None:
    """One Muon step of a group."""
    lr, momentum = scalar(hyper["lr"], hyper), hyper["momentum"]
    for param, grad, state in zip(params, grads, states, strict=True):
        _check_matrix(param, grad)
        buffer = state["momentum_buffer"]
        buffer.lerp_(grad, 1 - momentum)
        direction = grad.lerp(buffer, momentum) if hyper["nesterov"] else buffer
        direction = _orthogonal(direction, hyper)
        param.mul_(1 - lr * hyper["weight_decay"])
        param.add_(direction, alpha=-lr * _scale(param, hyper["adjust_lr_fn"]))


def _check_matrix(param: Tensor, grad: Tensor) -> None:
    if param.is_complex():
        raise OpError(complaint("Muon", "parameters must be real", {"dtype": param.dtype}))
    checks.require(grad.dim() == 2, "Muon", "gradients must be matrices", shape=tuple(grad.shape))


def _orthogonal(direction: Tensor, hyper: Hyper) -> Tensor:
    """The matrix with `direction`'s singular vectors and singular values near one, in bfloat16."""
    a, b, c = hyper["ns_coefficients"]
    x = direction.to(bfloat16)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / x.norm().clamp(min=hyper["eps"])
    for _ in range(hyper["ns_steps"]):
        gram = x @ x.T
        x = x.addmm(gram.addmm(gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _scale(param: Tensor, rule: str | None) -> float:
    """What makes one learning rate fit matrices of all sizes."""
    rows, columns = param.shape
    if rule == "match_rms_adamw":
        return 0.2 * max(rows, columns) ** 0.5
    return max(1, rows / columns) ** 0.5


class Muon(UpdatingOptimizer):
    """For the hidden weight matrices of a network; give biases, embeddings and heads to AdamW.

    ns_steps, ns_coefficients: iterations and (a, b, c) of the orthogonalisation; adjust_lr_fn:
    "original" (None) scales by sqrt(max(1, rows / columns)), "match_rms_adamw" by
    0.2 sqrt(max(rows, columns)).
    """

    update = staticmethod(update)
    step_is_tensor = False

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        checks.learning_rate("Muon", lr)
        checks.non_negative("Muon", momentum=momentum, weight_decay=weight_decay)
        checks.require(
            adjust_lr_fn in (None, "original", "match_rms_adamw"),
            "Muon",
            "adjust_lr_fn must be 'original' or 'match_rms_adamw'",
            adjust_lr_fn=adjust_lr_fn,
        )
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: Hyper) -> None:
        super().add_param_group(param_group)
        for param in self.param_groups[-1]["params"]:
            checks.require(
                param.dim() == 2,
                "Muon",
                "parameters must be matrices",
                "Give the others to AdamW.",
                shape=tuple(param.shape),
            )

    def fresh(self, param: Tensor, group: Hyper) -> dict[str, Any]:
        return {"momentum_buffer": zeros_like(param)}
