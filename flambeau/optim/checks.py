"""Hyperparameter checks shared by the optimizers: each raises at construction, naming the value."""

from collections.abc import Iterable
from typing import Any

from flambeau.core.errors import OpError, ValueRangeError, complaint
from flambeau.tensor import Tensor


def require(holds: Any, name: str, must: str, hint: str = "", **facts: Any) -> None:
    """Raise ValueError saying what `must` hold for optimizer or scheduler `name`."""
    if not holds:
        raise ValueRangeError(complaint(name, must, facts, hint))


def non_negative(name: str, **values: Any) -> None:
    """Every value (a number or a one-element tensor) must be at least 0; NaN is refused."""
    for key, value in values.items():
        require(value >= 0, name, f"{key} must be at least 0", **{key: value})


def learning_rate(name: str, lr: Any) -> None:
    """A learning rate is a number at least 0, or a tensor of one element."""
    if isinstance(lr, Tensor):
        require(
            lr.numel() == 1,
            name,
            "a tensor lr must have one element",
            "Give each parameter group its own lr instead.",
            shape=tuple(lr.shape),
        )
    non_negative(name, lr=lr)


def unit_interval(name: str, key: str, values: Iterable[Any]) -> None:
    """Every decay rate must lie in [0, 1)."""
    for i, value in enumerate(values):
        require(0 <= value < 1, name, f"{key}[{i}] must be in [0, 1)", **{key: value})


def flags(name: str, *, fused: Any, foreach: Any, differentiable: bool) -> None:
    """`fused` excludes `foreach` and `differentiable` (RuntimeError, as in PyTorch)."""
    for other, value in (("foreach", foreach), ("differentiable", differentiable)):
        if fused and value:
            facts = {"fused": fused, other: value}
            raise OpError(
                complaint(name, f"fused and {other} exclude each other", facts, "Drop one of them.")
            )
