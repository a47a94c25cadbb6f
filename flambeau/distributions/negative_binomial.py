"""NegativeBinomial."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.parameters import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_or_logits,
    probs_to_logits,
    softplus,
)
from flambeau.tensor import Tensor, exp, floor, lgamma, poisson, where


class NegativeBinomial(Distribution):
    """Successes of probability `probs` before `total_count` failures"""

    arg_constraints = {"total_count": constraints.greater_than_eq(0),
                       "probs": constraints.half_open_interval(0.0, 1.0),
                       "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None):
        by_probs = probs_or_logits("NegativeBinomial", probs, logits)
        count, self._param = broadcast_all(total_count, probs if by_probs else logits)
        self.total_count = count.type_as(self._param)
        setattr(self, "probs" if by_probs else "logits", self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> NegativeBinomial:
        return self._expand_parameters(batch_shape, _instance, "total_count",
                                       "probs", "logits", "_param")

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        return self._param.shape

    @property
    def mean(self) -> Tensor:
        return self.total_count * exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return floor((self.total_count - 1) * exp(self.logits)).clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """A Poisson whose rate is drawn from a Gamma."""
        with no_grad():
            rates = Gamma(self.total_count, exp(-self.logits), validate_args=False)
            return poisson(rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        unnormalized = -n * softplus(self.logits) - value * softplus(-self.logits)
        normalization = -lgamma(n + value) + lgamma(1.0 + value) + lgamma(n)
        return unnormalized - where(n + value == 0, 0.0, normalization)
