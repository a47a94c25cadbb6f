"""Systems of equations: general, triangular, from factors, least squares."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, ShapeError, complaint
from flambeau.linalg import results
from flambeau.linalg.checks import (
    SINGULAR,
    empty,
    is_vector_case,
    matrices,
    same_batch,
    squares,
    succeeded,
)
from flambeau.ops.matrices import lu as lu_ops
from flambeau.ops.matrices import singular, triangular
from flambeau.tensor.forms import tensor_argument
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor


@public(module="linalg")
def solve_ex(A, B, *, left=True, check_errors=False):
    """(X, info) with A X = B, or X A = B if not left."""
    op = "linalg.solve"
    squares(op, A)
    tensor_argument(op, B, "B")
    vector = is_vector_case(A, B)
    if vector and not left:
        raise OpError(complaint(op, "vectors as right-hand sides need left=True"))
    b = B.unsqueeze(-1) if vector else B
    check_system(op, A, b, left)
    a, b = same_batch(op, A, b)
    if not left:
        a, b = a.mT, b.mT
    x, info = lu_ops.solve(a, b)
    if check_errors:
        succeeded(op, info, SINGULAR)
    x = x if left else x.mT
    return results.linalg_solve_ex(x.squeeze(-1) if vector else x, info)


def check_system(op: str, a: Tensor, b: Tensor, left: bool) -> None:
    if b.ndim < 2:
        raise OpError(complaint(op, "the right-hand side must have at least 2 dimensions",
                                dict(shape=list(b.shape))))
    if a.dtype is not b.dtype:
        raise OpError(complaint(op, "A and B must have the same dtype", dict(A=a.dtype, B=b.dtype)))
    if b.shape[-2 if left else -1] != a.shape[-1]:
        equation = "AX = B" if left else "XA = B"
        raise ShapeError(complaint(op, f"incompatible shapes of A and B for the equation "
                                   f"{equation}", dict(A=list(a.shape), B=list(b.shape))))


@public(module="linalg")
def solve(A, B, *, left=True):
    """X with A X = B, or X A = B if not left."""
    return solve_ex(A, B, left=left, check_errors=True).result


@public(module="linalg")
def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    """X with A X = B, or X A = B, reading one triangle of A."""
    op = "linalg.solve_triangular"
    squares(op, A)
    check_system(op, A, matrices(op, B), left)
    a, b = same_batch(op, A, B)
    if left:
        return triangular.triangular_solve(a, b, upper=bool(upper), unit=bool(unitriangular))
    return triangular.triangular_solve(a.mT, b.mT, upper=not upper, unit=bool(unitriangular)).mT


@public(module="linalg")
def lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    """X with A X = B, or A^H X = B if adjoint, or X on the left, from lu_factor's results."""
    op = "linalg.lu_solve"
    squares(op, LU)
    check_system(op, LU, matrices(op, B), left)
    factors, b = same_batch(op, LU, B)
    order = pivots.expand(factors.shape[:-1])
    if not left:  # X A = B is A^H X^H = B^H
        return from_factors(factors, order, b.mH, not adjoint).mH
    return from_factors(factors, order, b, bool(adjoint))


def from_factors(factors: Tensor, pivots: Tensor, b: Tensor, adjoint: bool) -> Tensor:
    """U^-1 L^-1 P^T b, or P L^-H U^-H b."""
    solver = triangular.triangular_solve
    if adjoint:
        y = solver(factors.mH, b, upper=False, unit=False)
        y = solver(factors.mH, y, upper=True, unit=True)
        return permuted(y, pivots, inverse=True)
    y = solver(factors, permuted(b, pivots, inverse=False), upper=False, unit=True)
    return solver(factors, y, upper=True, unit=False)


def permuted(x: Tensor, pivots: Tensor, inverse: bool) -> Tensor:
    order = lu_ops.permutation(pivots, rows=x.shape[-2], inverse=inverse)
    return x.gather(-2, order.unsqueeze(-1).expand(x.shape))


# Least squares -------------------------------------------------------------------------------

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@public(module="linalg")
def lstsq(A, B, rcond=None, *, driver=None):
    """(solution, residuals, rank, singular values) of min |A X - B|.

    Residuals are there for systems of full rank with more rows than columns, except for driver
    "gelsy", the default; rank except for "gels", singular values for "gelsd" and "gelss".
    """
    op = "linalg.lstsq"
    if driver is not None and driver not in DRIVERS:
        raise OpError(complaint(op, f"parameter `driver` should be one of {DRIVERS}",
                                dict(driver=driver)))
    vector = check_least_squares(op, A, B)
    b = B.unsqueeze(-1) if vector else B
    a, b = same_batch(op, A, b)
    m, n = a.shape[-2:]
    if rcond is None:
        rcond = dtypes.finfo(a.dtype).eps * max(m, n)
    full_rank = driver == "gels"
    x, rank, s = singular.lstsq(a, b, rcond=0.0 if full_rank else float(rcond))
    rest = nothing_of(x)
    if m > n and driver not in (None, "gelsy") and (full_rank or ranks_are(rank, n)):
        gap = a @ x - b
        rest = (gap * gap.conj()).real.sum(-2) if gap.is_complex() else (gap * gap).sum(-2)
    return results.linalg_lstsq(
        x.squeeze(-1) if vector else x, rest,
        rank if not full_rank else empty(rank),
        s.detach() if driver in ("gelsd", "gelss") else empty(s))


def check_least_squares(op: str, a: Tensor, b: Tensor) -> bool:
    """Whether the right-hand sides are vectors."""
    matrices(op, a)
    if b.ndim < 1:
        raise OpError(complaint(op, "other must have at least 1 dimension", dict(ndim=b.ndim)))
    if a.ndim - b.ndim not in (0, 1) and b.ndim < a.ndim:
        raise OpError(complaint(op, "input.dim() must be greater or equal to other.dim() and "
                                "(input.dim() - other.dim()) <= 1", dict(
                                    input=a.ndim, other=b.ndim)))
    vector = is_vector_case(a, b)
    rows = b.shape[-1 if vector else -2]
    if rows != a.shape[-2]:
        raise OpError(complaint(op, "input and other must have as many rows", dict(
            input=list(a.shape), other=list(b.shape))))
    if a.dtype is not b.dtype:
        raise OpError(complaint(op, "input and other must have the same dtype", dict(
            input=a.dtype, other=b.dtype)))
    return vector


def nothing_of(x: Tensor) -> Tensor:
    """No elements of x, with its history."""
    x = x.reshape((x.numel(),))[:0]
    return x.real if x.is_complex() else x


def ranks_are(rank: Tensor, n: int) -> bool:
    return rank._array is None or bool((rank._array == n).all())


# Tensors as matrices -------------------------------------------------------------------------


@public(module="linalg")
def tensorsolve(A, B, dims=None):
    """X with tensordot(A, X, X.ndim) = B; `dims` of A are moved to its end first."""
    if dims is not None:
        dims = (dims,) if isinstance(dims, int) else tuple(dims)
        A = A.movedim(dims, tuple(range(A.ndim - len(dims), A.ndim)))
    shape = tuple(A.shape[B.ndim:])
    if math.prod(shape) != math.prod(A.shape[:B.ndim]):
        raise OpError(complaint("linalg.tensorsolve", "expected self to satisfy the requirement "
                                "prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim])",
                                dict(A=list(A.shape), B=list(B.shape))))
    n = math.prod(shape)
    return solve(A.reshape((n, n)), B.reshape((n,))).reshape(shape)
