"""Multinomial."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.core.errors import UnsupportedError, complaint
from flambeau.core.spec import Size
from flambeau.distributions import constraints
from flambeau.distributions.binomial import Binomial
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.parameters import broadcast_all
from flambeau.tensor import Tensor, arange, exp, full_like, lgamma, ones_like
from flambeau.tensor.interop import tensor


class Multinomial(Distribution):
    """How often each category comes up in `total_count` draws; the count must be an int"""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None):
        if not isinstance(total_count, int):
            raise UnsupportedError(complaint("Multinomial", "inhomogeneous total_count is not "
                                             "supported", dict(total_count=total_count)))
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Multinomial:
        return self._expanded(_instance, batch_shape, total_count=self.total_count,
                              _categorical=self._categorical.expand(batch_shape))

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    @property
    def param_shape(self) -> Any:
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        with no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape))
            places = drawn.permute((*range(1, drawn.dim()), 0))
            counts = self.probs.new_zeros(self._extended_shape(sample_shape))
            counts.scatter_add_(-1, places, ones_like(places).type_as(counts))
        return counts

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        impossible = (value == 0) & (logits == -float("inf"))
        powers = logits.masked_fill(impossible, 0) * value
        return lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1) + powers.sum(-1)

    def entropy(self) -> Tensor:
        n = tensor(self.total_count, dtype=self.probs.dtype)
        counts = arange(1, self.total_count + 1, dtype=self.probs.dtype)
        counts = counts.reshape((-1, *(1,) * len(self._batch_shape), 1))
        each = Binomial(full_like(self.probs, float(self.total_count)), probs=self.probs)
        weights = exp(each.log_prob(counts))
        spread = (weights * lgamma(counts + 1)).sum((0, -1))
        return n * self._categorical.entropy() - lgamma(n + 1) + spread
