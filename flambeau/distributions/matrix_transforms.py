"""Transforms of vectors and matrices: onto simplices and Cholesky factors; and side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flambeau.core.errors import ValueRangeError, complaint
from flambeau.core.spec import Size
from flambeau.distributions import constraints
from flambeau.distributions.parameters import softplus, sum_rightmost
from flambeau.distributions.transforms import Transform
from flambeau.nn.functional import pad
from flambeau.tensor import (
    Tensor,
    arange,
    cat,
    cumprod,
    diag_embed,
    eye,
    finfo,
    linalg,
    log,
    log1p,
    sigmoid,
    softmax,
    stack,
    tanh,
    tril,
    tril_indices,
)


class SoftmaxTransform(Transform):
    """y = softmax x over the last dimension; the inverse is log y, up to a constant"""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return log(y)

    def forward_shape(self, shape: Any) -> Size:
        _require_dims(self, shape, 1)
        return Size(shape)

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """n numbers onto the simplex of n + 1: each breaks its share off what is left of a stick"""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        shares = sigmoid(x - self._offset(x).log())
        left = cumprod(1 - shares, -1)
        return pad(shares, (0, 1), value=1.0) * pad(left, (1, 0), value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        cropped = y[..., :-1]
        left = (1 - cropped.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return cropped.log() - left.log() + self._offset(cropped).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        moved = x - self._offset(x).log()
        return (-softplus(-moved) - moved + y[..., :-1].log()).sum(-1)

    @staticmethod
    def _offset(x: Tensor) -> Tensor:
        """How many pieces are still to come, so that 0 gives equal shares."""
        n = x.shape[-1]
        return n - arange(n, dtype=x.dtype, device=x.device)

    def forward_shape(self, shape: Any) -> Size:
        _require_dims(self, shape, 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Size:
        _require_dims(self, shape, 1)
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Transform):
    """The lower triangle, with the exponential of the diagonal"""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return tril(x, -1) + diag_embed(x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return tril(y, -1) + diag_embed(y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(Transform):
    """L L^T for L of LowerCholeskyTransform"""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """D (D - 1) / 2 numbers onto Cholesky factors of D x D correlation matrices.

    tanh makes partial correlations of them; row by row they break up a norm of 1
    (Lewandowski, Kurowicka, Joe, "Generating random correlation matrices", 2009).
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        partial = _lower(tanh(x).clamp(min=-1 + eps, max=1 - eps), -1)
        left = cumprod((1 - partial**2).sqrt(), -1)
        full = partial + eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        return full * pad(left[..., :-1], (1, 0), value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        shifted = pad(left[..., :-1], (1, 0), value=1.0)
        partial = _vector(y, -1) / _vector(shifted, -1).sqrt()
        return (log1p(partial) - log1p(-partial)) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        stick = 0.5 * _vector(left, -2).log().sum(-1)
        squash = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return stick + squash

    def forward_shape(self, shape: Any) -> Size:
        _require_dims(self, shape, 1)
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueRangeError(complaint("CorrCholeskyTransform", "the last size must be "
                                            "D (D - 1) / 2 for some D", dict(size=n)))
        return Size((*shape[:-1], d, d))

    def inverse_shape(self, shape: Any) -> Size:
        _require_dims(self, shape, 2)
        d = shape[-1]
        return Size((*shape[:-2], d * (d - 1) // 2))


def _lower(x: Tensor, diagonal: int) -> Tensor:
    """The last dimension as the lower triangle of a matrix, row by row."""
    n = x.shape[-1]
    d = round((0.25 + 2 * n) ** 0.5 + 0.5)
    rows, columns = tril_indices(d, d, diagonal)
    places = x.new_zeros((n, d, d))
    places[arange(n), rows, columns] = 1.0
    return (x @ places.reshape(n, d * d)).reshape((*x.shape[:-1], d, d))


def _vector(y: Tensor, diagonal: int) -> Tensor:
    """The inverse of `_lower`."""
    rows, columns = tril_indices(y.shape[-2], y.shape[-1], diagonal)
    return y[..., rows, columns]


def _require_dims(transform: Transform, shape: Any, dims: int) -> None:
    if len(shape) < dims:
        raise ValueRangeError(complaint(type(transform).__name__, "too few dimensions on input",
                                        dict(shape=tuple(shape), needed=dims)))


class CatTransform(Transform):
    """Transforms side by side along `dim`, each over its length of it."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0,
                 lengths: Sequence[int] | None = None, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        self.dim = dim

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else CatTransform(
            self.transforms, self.dim, self.lengths, cache_size)

    def _slices(self, x: Tensor) -> list[Tensor]:
        if x.shape[self.dim] != sum(self.lengths):
            raise ValueRangeError(complaint("CatTransform", "the lengths must sum to the size",
                                            dict(lengths=self.lengths, size=x.shape[self.dim])))
        return list(x.split(self.lengths, self.dim))

    def _call(self, x: Tensor) -> Tensor:
        parts = zip(self.transforms, self._slices(x), strict=True)
        return cat([t(part) for t, part in parts], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._slices(y), strict=True)
        return cat([t.inv(part) for t, part in parts], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        event = self.event_dim
        terms = [sum_rightmost(t.log_abs_det_jacobian(a, b), event - t.event_dim)
                 for t, a, b in zip(self.transforms, self._slices(x), self._slices(y),
                                    strict=True)]
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        if dim + event < 0:
            return cat(terms, dim + event)
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total


class StackTransform(Transform):
    """One transform for each index of `dim`."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(
            self.transforms, self.dim, cache_size)

    def _slices(self, x: Tensor) -> list[Tensor]:
        return [x.select(self.dim, i) for i in range(x.size(self.dim))]

    def _call(self, x: Tensor) -> Tensor:
        parts = zip(self.transforms, self._slices(x), strict=True)
        return stack([t(part) for t, part in parts], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._slices(y), strict=True)
        return stack([t.inv(part) for t, part in parts], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._slices(x), self._slices(y), strict=True)
        return stack([t.log_abs_det_jacobian(a, b) for t, a, b in parts], self.dim)
