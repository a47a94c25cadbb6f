"""LowRankMultivariateNormal."""

from __future__ import annotations

import math
from typing import Any

from flambeau.core.errors import ValueRangeError, complaint
from flambeau.core.spec import Size
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.multivariate_normal import mahalanobis
from flambeau.distributions.normal import standard_normal
from flambeau.distributions.parameters import lazy_property
from flambeau.tensor import Tensor, broadcast_shapes, diag_embed, eye, linalg


class LowRankMultivariateNormal(Distribution):
    """Normal vectors whose covariance is W W^T + D: W = cov_factor (n x k), D = diag(cov_diag)

    By Woodbury's identity all work is with the k x k matrix I + W^T D^-1 W.
    """

    arg_constraints = {"loc": constraints.real_vector,
                       "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor,
                 validate_args: bool | None = None):
        n = loc.shape[-1] if loc.dim() else 0
        if not n or cov_factor.dim() < 2 or cov_factor.shape[-2] != n or cov_diag.shape[-1] != n:
            raise ValueRangeError(complaint(
                "LowRankMultivariateNormal", "loc and cov_diag must be vectors of size n, "
                "cov_factor an n x k matrix",
                dict(loc=tuple(loc.shape), cov_factor=tuple(cov_factor.shape),
                     cov_diag=tuple(cov_diag.shape))))
        batch = broadcast_shapes(tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]),
                                 tuple(cov_diag.shape[:-1]))
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self.loc = loc.expand((*batch, n))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        self.cov_diag = cov_diag.expand((*batch, n))
        self._capacitance_tril = _capacitance(cov_factor, cov_diag)
        super().__init__(batch, (n,), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> LowRankMultivariateNormal:
        batch = Size(batch_shape)
        shape = (*batch, *self._event_shape)
        return self._expanded(
            _instance, batch, loc=self.loc.expand(shape),
            cov_diag=self.cov_diag.expand(shape),
            cov_factor=self.cov_factor.expand((*shape, self.cov_factor.shape[-1])),
            _unbroadcasted_cov_factor=self._unbroadcasted_cov_factor,
            _unbroadcasted_cov_diag=self._unbroadcasted_cov_diag,
            _capacitance_tril=self._capacitance_tril)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        square = (self._unbroadcasted_cov_factor**2).sum(-1) + self._unbroadcasted_cov_diag
        return square.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        factor = self._unbroadcasted_cov_factor
        whole = factor @ factor.mT + diag_embed(self._unbroadcasted_cov_diag)
        return whole.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        return linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        inverse = self._unbroadcasted_cov_diag.reciprocal()
        scaled = self._unbroadcasted_cov_factor.mT * inverse.unsqueeze(-2)
        part = linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        whole = diag_embed(inverse) - part.mT @ part
        return whole.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        low = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        own = standard_normal(shape, self.loc)
        return (self.loc + (self._unbroadcasted_cov_factor @ low.unsqueeze(-1)).squeeze(-1)
                + self._unbroadcasted_cov_diag.sqrt() * own)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        difference = value - self.loc
        weighted = difference / self._unbroadcasted_cov_diag
        inner = (self._unbroadcasted_cov_factor.mT @ weighted.unsqueeze(-1)).squeeze(-1)
        distance = (difference * weighted).sum(-1) - mahalanobis(self._capacitance_tril, inner)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + self._log_det() + distance)

    def _log_det(self) -> Tensor:
        diagonal = self._capacitance_tril.diagonal(dim1=-2, dim2=-1)
        return 2 * diagonal.log().sum(-1) + self._unbroadcasted_cov_diag.log().sum(-1)

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        entropy = 0.5 * (n * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy.expand(self._batch_shape)


def _capacitance(factor: Tensor, diagonal: Tensor) -> Tensor:
    """The Cholesky factor of I + W^T D^-1 W."""
    inner = (factor / diagonal.unsqueeze(-1)).mT @ factor
    identity = eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    return linalg.cholesky(inner + identity)
