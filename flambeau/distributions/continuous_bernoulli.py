"""ContinuousBernoulli."""

from __future__ import annotations

import math
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.distribution import ExponentialFamily
from flambeau.distributions.parameters import (
    batch_shape_of,
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_or_logits,
    probs_to_logits,
    softplus,
)
from flambeau.distributions.uniform import uniform_noise
from flambeau.tensor import Tensor, exp, log, log1p, where


class ContinuousBernoulli(ExponentialFamily):
    """C probs^x (1 - probs)^(1 - x) for x in [0, 1]

    (Loaiza-Ganem, Cunningham, "The continuous Bernoulli", 2019). Between `lims`, where formulas
    divide 0 by 0, series around 1/2 are used.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None,
                 lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None):
        by_probs = probs_or_logits("ContinuousBernoulli", probs, logits)
        given = probs if by_probs else logits
        (self._param,) = broadcast_all(given)
        if by_probs:
            if validate_args is not False and not self.arg_constraints["probs"].check(
                    self._param).all():
                self.probs = self._param
                self._check_parameters()
            self.probs = self._param = clamp_probs(self._param)
        else:
            self.logits = self._param
        self._lims = lims
        super().__init__(batch_shape_of(self._param, given), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> ContinuousBernoulli:
        made = self._expand_parameters(batch_shape, _instance, "probs",
                                       "logits", "_param")
        made._lims = self._lims
        return made

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    @property
    def param_shape(self) -> Any:
        return self._param.shape

    def _outside(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        """The probabilities, with those too close to 1/2 moved to the limit."""
        return where(self._outside(), self.probs, self._lims[0])

    def _log_constant(self) -> Tensor:
        """log C = log(2 atanh(1 - 2 p) / (1 - 2 p))"""
        p = self._cut()
        exact = log((log1p(-p) - log(p)).abs()) - log((1 - 2 * p).abs())
        x = (self.probs - 0.5) ** 2
        return where(self._outside(), exact, math.log(2.0) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._cut()
        exact = p / (2 * p - 1) + 1 / (log1p(-p) - log(p))
        x = self.probs - 0.5
        return where(self._outside(), exact, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def variance(self) -> Tensor:
        p = self._cut()
        exact = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / (log1p(-p) - log(p)) ** 2
        x = (self.probs - 0.5) ** 2
        return where(self._outside(), exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform_noise(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return value * logits - softplus(logits) + self._log_constant()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut()
        exact = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        return where(self._outside(), exact, value).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut()
        exact = (log1p(-p + value * (2 * p - 1)) - log1p(-p)) / (log(p) - log1p(-p))
        return where(self._outside(), exact, value)

    def entropy(self) -> Tensor:
        low, high = log1p(-self.probs), log(self.probs)
        return self.mean * (low - high) - self._log_constant() - low

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = where(outside, x, self._lims[0] - 0.5)
        exact = log((exp(cut) - 1).abs()) - log(cut.abs())
        return where(outside, exact, 0.5 * x + x**2 / 24 - x**4 / 2880)
