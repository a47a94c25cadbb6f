"""Weibull."""

from __future__ import annotations

from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.gumbel import EULER
from flambeau.distributions.parameters import broadcast_all
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AffineTransform, PowerTransform
from flambeau.tensor import Tensor, exp, lgamma, log, ones_like


class Weibull(TransformedDistribution):
    """scale E^(1 / concentration), E exponential"""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(self.concentration.reciprocal()),
                      AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Weibull:
        made = Weibull.__new__(Weibull) if _instance is None else _instance
        made.scale = self.scale.expand(batch_shape)
        made.concentration = self.concentration.expand(batch_shape)
        return super().expand(batch_shape, made)  # type: ignore[return-value]

    @property
    def mean(self) -> Tensor:
        return self.scale * exp(lgamma(1 + self.concentration.reciprocal()))

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k).clamp(min=0) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        k = self.concentration.reciprocal()
        return self.scale**2 * (exp(lgamma(1 + 2 * k)) - exp(2 * lgamma(1 + k)))

    def entropy(self) -> Tensor:
        k = self.concentration.reciprocal()
        return EULER * (1 - k) + log(self.scale * k) + 1
