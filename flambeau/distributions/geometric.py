"""Geometric."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.core.errors import ValueRangeError
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.parameters import (
    batch_shape_of,
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_or_logits,
    probs_to_logits,
    softplus,
)
from flambeau.distributions.uniform import uniform_noise
from flambeau.tensor import Tensor, finfo, floor, log1p, where, zeros_like
from flambeau.tensor.ensuring import ensure


class Geometric(Distribution):
    """(1 - probs)^k probs: k failures before the first success"""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        by_probs = probs_or_logits("Geometric", probs, logits)
        given = probs if by_probs else logits
        (parameter,) = broadcast_all(given)
        setattr(self, "probs" if by_probs else "logits", parameter)
        super().__init__(batch_shape_of(parameter, given), validate_args=validate_args)
        if self._validate_args and by_probs:
            ensure(parameter > 0, ValueRangeError, "Geometric",
                   "Expected parameter probs to be positive", shown=parameter)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Geometric:
        return self._expand_parameters(batch_shape, _instance, "probs", "logits")

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            u = uniform_noise(shape, self.probs).clamp(min=finfo(self.probs.dtype).tiny)
            return floor(u.log() / log1p(-self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        certain = (probs == 1) & (value == 0)
        return value * log1p(-where(certain, 0.0, probs)) + self.probs.log()

    def entropy(self) -> Tensor:
        return (softplus(self.logits) - self.probs * self.logits) / self.probs
