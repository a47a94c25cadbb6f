"""Dirichlet."""

from __future__ import annotations

from typing import Any

from flambeau.core.errors import ValueRangeError, complaint
from flambeau.core.spec import Size
from flambeau.distributions import constraints
from flambeau.distributions.distribution import ExponentialFamily
from flambeau.distributions.gamma import standard_gamma
from flambeau.nn.functional import one_hot
from flambeau.tensor import Tensor, digamma, finfo, lgamma, where, xlogy


class Dirichlet(ExponentialFamily):
    """prod x_i^(a_i - 1) / B(a) on the simplex, with a = concentration"""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.dim() < 1:
            raise ValueRangeError(complaint("Dirichlet", "concentration must be at least "
                                            "one-dimensional",
                                            dict(shape=tuple(concentration.shape))))
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Dirichlet:
        wide = self.concentration.expand((*Size(batch_shape), *self._event_shape))
        return self._expanded(_instance, batch_shape, concentration=wide)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Gamma samples, made to sum to 1; in float64, where they do not all vanish so soon."""
        wide = self.concentration.expand(self._extended_shape(sample_shape))
        parts = standard_gamma(wide.double()).clamp(min=finfo(self.concentration.dtype).tiny)
        return (parts / parts.sum(-1, keepdim=True)).to(self.concentration.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return xlogy(a - 1, value).sum(-1) + lgamma(a.sum(-1)) - lgamma(a).sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0)
        inner = above / above.sum(-1, keepdim=True)
        corner = one_hot(self.concentration.argmax(-1), self._event_shape[0]).to(inner.dtype)
        return where((self.concentration < 1).all(-1, keepdim=True), corner, inner)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def entropy(self) -> Tensor:
        k, a = self._event_shape[0], self.concentration
        total = a.sum(-1)
        return (lgamma(a).sum(-1) - lgamma(total) - (k - total) * digamma(total)
                - ((a - 1) * digamma(a)).sum(-1))

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return lgamma(x).sum(-1) - lgamma(x.sum(-1))
