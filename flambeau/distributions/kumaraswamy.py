"""Kumaraswamy."""

from __future__ import annotations

from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.gumbel import EULER
from flambeau.distributions.parameters import broadcast_all
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AffineTransform, PowerTransform
from flambeau.distributions.uniform import Uniform
from flambeau.tensor import Tensor, digamma, exp, full_like, lgamma, log, where


class Kumaraswamy(TransformedDistribution):
    """(1 - u^(1 / b))^(1 / a), u uniform; a = concentration1, b = concentration0"""

    arg_constraints = {"concentration1": constraints.positive,
                       "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any,
                 validate_args: bool | None = None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(full_like(self.concentration0, 0), full_like(self.concentration0, 1),
                       validate_args=validate_args)
        transforms = [PowerTransform(self.concentration0.reciprocal()),
                      AffineTransform(1.0, -1.0),
                      PowerTransform(self.concentration1.reciprocal())]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Kumaraswamy:
        made = Kumaraswamy.__new__(Kumaraswamy) if _instance is None else _instance
        made.concentration1 = self.concentration1.expand(batch_shape)
        made.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, made)  # type: ignore[return-value]

    def _moment(self, n: int) -> Tensor:
        b = self.concentration0
        arg = 1 + n / self.concentration1
        return exp(log(b) + lgamma(arg) + lgamma(b) - lgamma(arg + b))

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inner = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return where((a < 1) | (b < 1), float("nan"), inner)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1) ** 2

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = digamma(b + 1) + EULER
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - log(a) - log(b)
