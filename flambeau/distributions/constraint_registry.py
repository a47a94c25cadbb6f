"""Transforms from real numbers onto a constraint: `biject_to` one to one, `transform_to` freely."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core.errors import ArgumentError, UnsupportedError, complaint
from flambeau.distributions import constraints
from flambeau.distributions.constraints import Constraint
from flambeau.distributions.matrix_transforms import (
    CatTransform,
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
)
from flambeau.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    IndependentTransform,
    SigmoidTransform,
    Transform,
    identity_transform,
)


class ConstraintRegistry:
    """Finds the transform for a constraint by the constraint's class."""

    def __init__(self) -> None:
        self._factories: dict[type, Callable[[Any], Transform]] = {}

    def register(self, constraint: Any, factory: Callable | None = None) -> Callable:
        """Add a factory for a constraint's class; as a decorator without `factory`."""
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, Constraint):
            raise ArgumentError(complaint("register", "expected a Constraint or a subclass of it",
                                          dict(got=constraint)))
        self._factories[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        factory = self._factories.get(type(constraint))
        if factory is None:
            raise UnsupportedError(complaint(
                "biject_to", f"Cannot transform {type(constraint).__name__} constraints"))
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable:
    def register(factory: Callable) -> Callable:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_both(constraints.real)
def _real(constraint: Any) -> Transform:
    return identity_transform


@biject_to.register(constraints.independent)
def _independent_one_to_one(constraint: Any) -> Transform:
    return IndependentTransform(biject_to(constraint.base_constraint),
                                constraint.reinterpreted_batch_ndims)


@transform_to.register(constraints.independent)
def _independent(constraint: Any) -> Transform:
    return IndependentTransform(transform_to(constraint.base_constraint),
                                constraint.reinterpreted_batch_ndims)


@_both(constraints.positive, constraints.nonnegative)
def _above(constraint: Any) -> Transform:
    rise = ExpTransform()
    bound = constraint.lower_bound
    if isinstance(bound, int | float) and bound == 0:
        return rise
    return ComposeTransform([rise, AffineTransform(bound, 1)])


@_both(constraints.less_than)
def _below(constraint: Any) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.upper_bound, -1)])


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, int | float) and isinstance(high, int | float) and (low, high) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


@biject_to.register(constraints.simplex)
def _simplex_one_to_one(constraint: Any) -> Transform:
    return StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _simplex(constraint: Any) -> Transform:
    return SoftmaxTransform()


@_both(constraints.lower_cholesky)
def _cholesky(constraint: Any) -> Transform:
    return LowerCholeskyTransform()


@_both(constraints.positive_definite, constraints.positive_semidefinite)
def _definite(constraint: Any) -> Transform:
    return PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _correlation(constraint: Any) -> Transform:
    return CorrCholeskyTransform()


@biject_to.register(constraints.cat)
def _cat_one_to_one(constraint: Any) -> Transform:
    return CatTransform([biject_to(c) for c in constraint.cseq], constraint.dim,
                        constraint.lengths)


@transform_to.register(constraints.cat)
def _cat(constraint: Any) -> Transform:
    return CatTransform([transform_to(c) for c in constraint.cseq], constraint.dim,
                        constraint.lengths)


@biject_to.register(constraints.stack)
def _stack_one_to_one(constraint: Any) -> Transform:
    return StackTransform([biject_to(c) for c in constraint.cseq], constraint.dim)


@transform_to.register(constraints.stack)
def _stack(constraint: Any) -> Transform:
    return StackTransform([transform_to(c) for c in constraint.cseq], constraint.dim)
