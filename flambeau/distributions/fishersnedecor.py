"""FisherSnedecor."""

from __future__ import annotations

from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.parameters import batch_shape_of, broadcast_all
from flambeau.tensor import Tensor, finfo, lgamma, log, log1p, where


class FisherSnedecor(Distribution):
    """The F distribution: (X1 / df1) / (X2 / df2) of two Chi2"""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1, validate_args=False)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2, validate_args=False)
        super().__init__(batch_shape_of(self.df1, df1, df2), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> FisherSnedecor:
        made = self._expand_parameters(batch_shape, _instance, "df1", "df2")
        made._gamma1 = self._gamma1.expand(batch_shape)
        made._gamma2 = self._gamma2.expand(batch_shape)
        return made

    @property
    def mean(self) -> Tensor:
        return where(self.df2 > 2, self.df2 / (self.df2 - 2), float("nan"))

    @property
    def mode(self) -> Tensor:
        peak = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return where(self.df1 > 2, peak, float("nan"))

    @property
    def variance(self) -> Tensor:
        d1, d2 = self.df1, self.df2
        finite = 2 * d2**2 * (d1 + d2 - 2) / (d1 * (d2 - 2) ** 2 * (d2 - 4))
        return where(d2 > 4, finite, float("nan"))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        above = self._gamma1.rsample(sample_shape)
        below = self._gamma2.rsample(sample_shape)
        return (above / below).clamp(min=finfo(above.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        normalizer = lgamma(a + b) - lgamma(a) - lgamma(b)
        return (normalizer + a * log(ratio) + (a - 1) * log(value)
                - (a + b) * log1p(ratio * value))
