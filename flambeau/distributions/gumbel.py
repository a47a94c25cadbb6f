"""Gumbel."""

from __future__ import annotations

import math
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.parameters import broadcast_all
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AffineTransform, ExpTransform
from flambeau.distributions.uniform import Uniform
from flambeau.tensor import Tensor, finfo, full_like, log, ones_like

EULER = 0.57721566490153286060  # the Euler-Mascheroni constant


class Gumbel(TransformedDistribution):
    """-log -log u, u uniform: the law of maxima"""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        info = finfo(self.loc.dtype)
        numbers = all(isinstance(v, int | float) for v in (loc, scale))
        low, high = info.tiny, 1 - info.eps
        base = Uniform(low, high, validate_args=validate_args) if numbers else Uniform(
            full_like(self.loc, low), full_like(self.loc, high), validate_args=validate_args)
        transforms = [ExpTransform().inv, AffineTransform(0, -ones_like(self.scale)),
                      ExpTransform().inv, AffineTransform(self.loc, -self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Gumbel:
        made = Gumbel.__new__(Gumbel) if _instance is None else _instance
        made.loc = self.loc.expand(batch_shape)
        made.scale = self.scale.expand(batch_shape)
        return super().expand(batch_shape, made)  # type: ignore[return-value]

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - log(self.scale)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev**2

    def entropy(self) -> Tensor:
        return log(self.scale) + (1 + EULER)
