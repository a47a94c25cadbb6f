"""Categorical."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.core.errors import ValueRangeError, complaint
from flambeau.core.spec import Size
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.parameters import (
    lazy_property,
    logits_to_probs,
    normalized,
    probs_or_logits,
    probs_to_logits,
)
from flambeau.tensor import Tensor, arange, broadcast_tensors, finfo, full, multinomial


class Categorical(Distribution):
    """Index i with probability `probs[..., i]`; probs are made to sum to 1, logits to be logs."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        given = probs if probs_or_logits("Categorical", probs, logits) else logits
        if given.dim() < 1:
            raise ValueRangeError(complaint("Categorical", "probs or logits must be at least "
                                            "one-dimensional", dict(shape=tuple(given.shape))))
        if probs is not None:
            self._param = self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self._param = self.logits = normalized(logits)
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Categorical:
        shape = (*Size(batch_shape), self._num_events)
        given = {name: self.__dict__[name].expand(shape)
                 for name in ("probs", "logits", "_param") if name in self.__dict__}
        return self._expanded(_instance, batch_shape, **given,
                              _num_events=self._num_events)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Any:
        return self._param.shape

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), float("nan"), dtype=self.probs.dtype,
                    device=self.probs.device)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        with no_grad():
            drawn = multinomial(rows, sample_shape.numel(), True)
        return drawn.t().reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        index, logits = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        lowest = finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=lowest) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._num_events, device=self._param.device)
        values = values.reshape((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
