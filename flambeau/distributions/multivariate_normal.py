"""MultivariateNormal."""

from __future__ import annotations

import math
from typing import Any

from flambeau.core.errors import ValueRangeError, complaint
from flambeau.core.spec import Size
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.normal import standard_normal
from flambeau.distributions.parameters import lazy_property
from flambeau.tensor import Tensor, broadcast_shapes, eye, flip, linalg


class MultivariateNormal(Distribution):
    """Normal vectors around `loc`; the covariance as itself, its inverse, or its Cholesky factor.

    The factor L (covariance = L L^T) is what sampling and densities use.
    """

    arg_constraints = {"loc": constraints.real_vector,
                       "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite,
                       "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None,
                 precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
                 validate_args: bool | None = None):
        if loc.dim() < 1:
            raise ValueRangeError(complaint("MultivariateNormal", "loc must be at least "
                                            "one-dimensional", dict(shape=tuple(loc.shape))))
        name, matrix = _only_one(covariance_matrix=covariance_matrix,
                                 precision_matrix=precision_matrix, scale_tril=scale_tril)
        batch = broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self.__dict__[name] = matrix.expand((*batch, *matrix.shape[-2:]))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> MultivariateNormal:
        batch = Size(batch_shape)
        event = tuple(self._event_shape)
        given = {name: self.__dict__[name].expand((*batch, *event, *event))
                 for name in ("covariance_matrix", "precision_matrix", "scale_tril")
                 if name in self.__dict__}
        return self._expanded(_instance, batch, **given,
                              loc=self.loc.expand((*batch, *event)),
                              _unbroadcasted_scale_tril=self._unbroadcasted_scale_tril)

    def _broadcast(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._broadcast(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        factor = self._unbroadcasted_scale_tril
        return self._broadcast(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        factor = self._unbroadcasted_scale_tril
        identity = eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
        inverse = linalg.solve_triangular(factor, identity, upper=False)
        return self._broadcast(inverse.mT @ inverse)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        square = self._unbroadcasted_scale_tril**2
        return square.sum(-1).expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + distance) - self._half_log_det()

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        entropy = 0.5 * n * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape)


def _only_one(**matrices: Tensor | None) -> tuple[str, Tensor]:
    given = [(name, m) for name, m in matrices.items() if m is not None]
    if len(given) != 1:
        raise ValueRangeError(complaint(
            "MultivariateNormal", "Exactly one of covariance_matrix or precision_matrix or "
            "scale_tril may be specified", dict(given=[name for name, _ in given])))
    name, matrix = given[0]
    if matrix.dim() < 2:
        raise ValueRangeError(complaint("MultivariateNormal", f"{name} must be at least "
                                        "two-dimensional", dict(shape=tuple(matrix.shape))))
    return name, matrix


def mahalanobis(factor: Tensor, difference: Tensor) -> Tensor:
    """|L^-1 d|^2, summed over the last dimension."""
    solved = linalg.solve_triangular(factor, difference.unsqueeze(-1), upper=False)
    return (solved.squeeze(-1) ** 2).sum(-1)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse: with both orders turned round, the inverse factor."""
    turned = flip(linalg.cholesky(flip(precision, (-2, -1))), (-2, -1)).mT
    identity = eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return linalg.solve_triangular(turned, identity, upper=False)
