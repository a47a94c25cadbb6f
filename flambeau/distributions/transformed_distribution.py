"""TransformedDistribution."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.core.errors import ArgumentError, UnsupportedError, ValueRangeError, complaint
from flambeau.core.spec import Size
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.independent import Independent
from flambeau.distributions.parameters import sum_rightmost
from flambeau.distributions.transforms import ComposeTransform, Transform
from flambeau.tensor import Tensor


class TransformedDistribution(Distribution):
    """The distribution of T(x), x of the base distribution.

    log p(y) = log p(x) - log |det dT/dx|, at x = T^-1(y).
    """

    arg_constraints: dict[str, Any] = {}

    def __init__(self, base_distribution: Distribution, transforms: Any,
                 validate_args: bool | None = None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ArgumentError(complaint("TransformedDistribution", "transforms must be a "
                                          "Transform or a list of Transforms",
                                          dict(got=transforms)))
        transform = ComposeTransform(self.transforms)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(base_shape) < transform.domain.event_dim:
            raise ValueRangeError(complaint(
                "TransformedDistribution", "the base distribution must have as many dimensions as "
                "the transform takes together",
                dict(shape=tuple(base_shape), needed=transform.domain.event_dim)))
        event = transform.codomain.event_dim + max(
            len(base_distribution.event_shape) - transform.domain.event_dim, 0)
        shape = transform.forward_shape(base_shape)
        self.base_dist = _with_events(base_distribution, transform, base_shape, shape)
        split = len(shape) - event
        super().__init__(shape[:split], shape[split:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> TransformedDistribution:
        batch = Size(batch_shape)
        transform = ComposeTransform(self.transforms)
        shape = transform.inverse_shape(batch + self._event_shape)
        base_batch = shape[: len(shape) - len(self.base_dist.event_shape)]
        return self._expanded(_instance, batch,
                              base_dist=self.base_dist.expand(base_batch),
                              transforms=self.transforms)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        if not self.transforms:
            return self.base_dist.support
        reached = self.transforms[-1].codomain
        more = len(self._event_shape) - reached.event_dim
        return constraints.independent(reached, more) if more > 0 else reached

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        event = len(self._event_shape)
        y, total = value, 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_rightmost(transform.log_abs_det_jacobian(x, y),
                                          event - transform.domain.event_dim)
            y = x
        base = sum_rightmost(self.base_dist.log_prob(y),
                             event - len(self.base_dist.event_shape))
        return total + base

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._turned(value)))

    def _turned(self, probability: Tensor) -> Tensor:
        """A falling map exchanges the two tails."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return probability
        return sign * (probability - 0.5) + 0.5

    def entropy(self) -> Tensor:
        raise UnsupportedError(complaint(type(self).__name__, "has no entropy in closed form"))


def _with_events(base: Distribution, transform: Transform, base_shape: Size,
                 shape: Size) -> Distribution:
    """The base distribution, expanded to what the transform makes of it, events grouped."""
    needed = transform.inverse_shape(shape)
    if needed != base_shape:
        base = base.expand(needed[: len(needed) - len(base.event_shape)])
    regrouped = transform.domain.event_dim - len(base.event_shape)
    return Independent(base, regrouped) if regrouped > 0 else base
