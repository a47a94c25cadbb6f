"""MixtureSameFamily."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.core.errors import ValueRangeError, complaint
from flambeau.core.spec import Size
from flambeau.distributions import constraints
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.distribution import Distribution
from flambeau.tensor import Tensor, log_softmax, logsumexp


class MixtureSameFamily(Distribution):
    """Component k with the probability of the mixture distribution.

    The components are the last batch dimension of `component_distribution`.
    """

    arg_constraints: dict[str, Any] = {}

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution,
                 validate_args: bool | None = None):
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._check()
        batch = component_distribution.batch_shape[:-1]
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(batch, event, validate_args=validate_args)

    def _check(self) -> None:
        mixture, component = self._mixture_distribution, self._component_distribution
        if not isinstance(mixture, Categorical) or not isinstance(component, Distribution):
            raise ValueRangeError(complaint(
                "MixtureSameFamily", "the mixture must be a Categorical and the component a "
                "Distribution", dict(mixture=type(mixture), component=type(component))))
        batch = component.batch_shape
        fits = not mixture.batch_shape or mixture.batch_shape == batch[:-1]
        if not batch or not fits or mixture.param_shape[-1] != batch[-1]:
            raise ValueRangeError(complaint(
                "MixtureSameFamily", "the probabilities of the mixture must match the component's "
                "batch shape", dict(mixture=tuple(mixture.param_shape), component=tuple(batch))))

    @property
    def mixture_distribution(self) -> Categorical:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        return self._component_distribution

    def expand(self, batch_shape: Any, _instance: Any = None) -> MixtureSameFamily:
        batch = Size(batch_shape)
        count = self._component_distribution.batch_shape[-1]
        return self._expanded(
            _instance, batch, _event_ndims=self._event_ndims,
            _component_distribution=self._component_distribution.expand((*batch, count)),
            _mixture_distribution=self._mixture_distribution.expand(batch))

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _weights(self) -> Tensor:
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *(1,) * self._event_ndims))

    @property
    def _component_dim(self) -> int:
        return -1 - self._event_ndims

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(self._component_dim)

    @property
    def variance(self) -> Tensor:
        """The mean of the variances and the variance of the means."""
        weights, component = self._weights(), self._component_distribution
        spread = (component.mean - self.mean.unsqueeze(self._component_dim)) ** 2
        return (weights * (component.variance + spread)).sum(self._component_dim)

    def _component_log_probs(self, value: Tensor) -> Tensor:
        return self._component_distribution.log_prob(value.unsqueeze(self._component_dim))

    def cdf(self, value: Tensor) -> Tensor:
        each = self._component_distribution.cdf(value.unsqueeze(self._component_dim))
        return (each * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        weights = log_softmax(self._mixture_distribution.logits, -1)
        return logsumexp(self._component_log_probs(value) + weights, -1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        with no_grad():
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            event = tuple(self._event_shape)
            index = chosen.reshape((*chosen.shape, 1, *(1,) * self._event_ndims))
            index = index.expand((*chosen.shape, 1, *event))
            return drawn.gather(self._component_dim, index).squeeze(self._component_dim)

    def __repr__(self) -> str:
        return (f"MixtureSameFamily(\n  {self._mixture_distribution},\n  "
                f"{self._component_distribution})")
