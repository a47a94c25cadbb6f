"""StudentT."""

from __future__ import annotations

import math
from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.chi2 import Chi2
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.normal import standard_normal
from flambeau.distributions.parameters import batch_shape_of, broadcast_all
from flambeau.tensor import Tensor, digamma, lgamma, log, log1p, rsqrt, where


class StudentT(Distribution):
    """Student's t with `df` degrees of freedom, moved by loc and stretched by scale"""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real,
                       "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0,
                 validate_args: bool | None = None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=False)
        super().__init__(batch_shape_of(self.df, df, loc, scale), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> StudentT:
        made = self._expand_parameters(batch_shape, _instance, "df", "loc", "scale")
        made._chi2 = self._chi2.expand(batch_shape)
        return made

    @property
    def mean(self) -> Tensor:
        return where(self.df > 1, self.loc, float("nan"))

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale**2 * self.df / (self.df - 2)
        return where(self.df > 2, finite, where(self.df > 1, float("inf"), float("nan")))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """X rsqrt(Z / df): X normal, Z of Chi2(df)."""
        x = standard_normal(self._extended_shape(sample_shape), self.df)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * x * rsqrt(z / self.df)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (log(self.scale) + 0.5 * log(self.df) + 0.5 * math.log(math.pi)
                      + lgamma(0.5 * self.df) - lgamma(0.5 * (self.df + 1.0)))
        return -0.5 * (self.df + 1.0) * log1p(y**2.0 / self.df) - normalizer

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = lgamma(half) + math.lgamma(0.5) - lgamma(half + 0.5)
        return (log(self.scale) + more * (digamma(more) - digamma(half))
                + 0.5 * log(self.df) + log_beta)
