"""GeneralizedPareto."""

from __future__ import annotations

from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.parameters import batch_shape_of, broadcast_all
from flambeau.distributions.uniform import uniform_noise
from flambeau.tensor import Tensor, exp, log, log1p, where


class GeneralizedPareto(Distribution):
    """(1 + k z)^-(1 / k + 1) / scale for x >= loc, z = (x - loc) / scale, k = concentration"""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive,
                       "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any,
                 validate_args: bool | None = None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(batch_shape_of(self.loc, loc, scale, concentration),
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> GeneralizedPareto:
        return self._expand_parameters(batch_shape, _instance, "loc", "scale",
                                       "concentration")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        end = self.loc - self.scale / self.concentration
        high = where(self.concentration < 0, end, float("inf"))
        return constraints.interval(self.loc, high)

    def _shape(self) -> tuple[Tensor, Tensor]:
        """Where k is 0 the law is exponential; k with those places filled, for the division."""
        exponential = self.concentration == 0
        return exponential, where(exponential, 1.0, self.concentration)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform_noise(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        exponential, k = self._shape()
        heavy = (1 / k + 1) * log1p(k * z)
        return -log(self.scale) - where(exponential, z, heavy)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log P(X > value)"""
        z = (value - self.loc) / self.scale
        exponential, k = self._shape()
        return -where(exponential, z, log1p(k * z) / k)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 1 - exp(self.log_survival_function(value))

    def icdf(self, value: Tensor) -> Tensor:
        exponential, k = self._shape()
        rest = -log1p(-value)
        return self.loc + self.scale * where(exponential, rest, (exp(k * rest) - 1) / k)

    @property
    def mean(self) -> Tensor:
        k = self.concentration
        return where(k < 1, self.loc + self.scale / (1 - k), float("inf"))

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        return where(k < 0.5, self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k)), float("inf"))

    def entropy(self) -> Tensor:
        return (log(self.scale) + self.concentration + 1).expand(self._batch_shape)
