"""RelaxedBernoulli."""

from __future__ import annotations

from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.parameters import (
    batch_shape_of,
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_or_logits,
    probs_to_logits,
)
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import SigmoidTransform
from flambeau.distributions.uniform import uniform_noise
from flambeau.tensor import Tensor, exp, log, log1p


class LogitRelaxedBernoulli(Distribution):
    """The logit of a RelaxedBernoulli: (logits + logistic noise) / temperature"""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None):
        self.temperature = temperature
        by_probs = probs_or_logits("LogitRelaxedBernoulli", probs, logits)
        given = probs if by_probs else logits
        (self._param,) = broadcast_all(given)
        setattr(self, "probs" if by_probs else "logits", self._param)
        super().__init__(batch_shape_of(self._param, given), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> LogitRelaxedBernoulli:
        made = self._expand_parameters(batch_shape, _instance, "probs",
                                       "logits", "_param")
        made.temperature = self.temperature
        return made

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        return self._param.shape

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(uniform_noise(shape, probs))
        return (log(u) - log1p(-u) + log(probs) - log1p(-probs)) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value * self.temperature
        return log(self.temperature) + difference - 2 * log1p(exp(difference))


class RelaxedBernoulli(TransformedDistribution):
    """A continuous stand-in for Bernoulli on (0, 1), sharper the lower the temperature"""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(),
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> RelaxedBernoulli:
        made = RelaxedBernoulli.__new__(RelaxedBernoulli) if _instance is None else _instance
        return super().expand(batch_shape, made)  # type: ignore[return-value]

    @property
    def temperature(self) -> Any:
        return self.base_dist.temperature  # type: ignore[attr-defined]

    @property
    def logits(self) -> Tensor:
        return self.base_dist.logits  # type: ignore[attr-defined]

    @property
    def probs(self) -> Tensor:
        return self.base_dist.probs  # type: ignore[attr-defined]
