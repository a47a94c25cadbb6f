"""Pareto."""

from __future__ import annotations

from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.parameters import broadcast_all
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AffineTransform, ExpTransform
from flambeau.tensor import Tensor, log, where


class Pareto(TransformedDistribution):
    """scale exp E, E exponential of rate alpha"""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)],
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Pareto:
        made = Pareto.__new__(Pareto) if _instance is None else _instance
        made.scale = self.scale.expand(batch_shape)
        made.alpha = self.alpha.expand(batch_shape)
        return super().expand(batch_shape, made)  # type: ignore[return-value]

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        return where(self.alpha > 1, self.alpha * self.scale / (self.alpha - 1), float("inf"))

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha
        return where(a > 2, self.scale**2 * a / ((a - 1) ** 2 * (a - 2)), float("inf"))

    def entropy(self) -> Tensor:
        return log(self.scale / self.alpha) + (1 + self.alpha.reciprocal())
