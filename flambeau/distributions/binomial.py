"""Binomial."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.core.errors import UnsupportedError, complaint
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.parameters import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_or_logits,
    probs_to_logits,
    softplus,
)
from flambeau.tensor import Tensor, arange, binomial, exp, floor, lgamma


class Binomial(Distribution):
    """C(n, k) probs^k (1 - probs)^(n - k), n = total_count"""

    arg_constraints = {"total_count": constraints.nonnegative_integer,
                       "probs": constraints.unit_interval, "logits": constraints.real}
    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None):
        by_probs = probs_or_logits("Binomial", probs, logits)
        count, self._param = broadcast_all(total_count, probs if by_probs else logits)
        self.total_count = count.type_as(self._param)
        setattr(self, "probs" if by_probs else "logits", self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Binomial:
        return self._expand_parameters(batch_shape, _instance, "total_count", "probs",
                                       "logits", "_param")

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.integer_interval(0, self.total_count)

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
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return floor((self.total_count + 1) * self.probs).minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """k l - n log(1 + exp l) + log C(n, k), l the logits."""
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        combinations = lgamma(n + 1) - lgamma(value + 1) - lgamma(n - value + 1)
        return value * self.logits - n * softplus(self.logits) + combinations

    def entropy(self) -> Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._one_count("enumerate_support")
        values = arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def _one_count(self, what: str) -> int:
        count = int(self.total_count.max())
        if self.total_count.min() != count:
            raise UnsupportedError(complaint("Binomial", f"{what} needs one total_count for the "
                                             "whole batch"))
        return count
