"""Cholesky, LU, QR, LDL: matrices as products of simpler ones."""

from __future__ import annotations

from flambeau.core.errors import OpError, ValueRangeError, complaint
from flambeau.linalg import results
from flambeau.linalg.checks import INDEFINITE, matrices, squares, succeeded
from flambeau.ops.matrices import cholesky as cholesky_ops
from flambeau.ops.matrices import lu as lu_ops
from flambeau.ops.matrices import orthogonal, symmetric
from flambeau.tensor.factories import arange
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor


@public(module="linalg")
def cholesky_ex(input, *, upper=False, check_errors=False):
    """(L, info) with A = L L^H, or U^H U if upper."""
    factor, info = cholesky_ops.cholesky(squares("linalg.cholesky", input), upper=bool(upper))
    if check_errors:
        succeeded("linalg.cholesky", info, INDEFINITE)
    return results.linalg_cholesky_ex(factor, info)


@public(module="linalg")
def cholesky(input, *, upper=False):
    """L with A = L L^H, of a Hermitian positive definite matrix."""
    return cholesky_ex(input, upper=upper, check_errors=True).L


# LU ------------------------------------------------------------------------------------------


@public(module="linalg")
def lu_factor_ex(A, *, pivot=True, check_errors=False):
    """(L and U packed, row exchanges counted from one, info)."""
    packed, pivots, info = lu_ops.lu_factor(matrices("linalg.lu_factor", A), pivot=bool(pivot))
    if check_errors:
        succeeded("linalg.lu_factor", info, "U must not have zeros on its diagonal")
    return results.linalg_lu_factor_ex(packed, pivots, info)


@public(module="linalg")
def lu_factor(A, *, pivot=True):
    """(L and U packed, row exchanges counted from one)."""
    return results.linalg_lu_factor(*lu_factor_ex(A, pivot=pivot)[:2])


@public(module="linalg")
def lu(A, *, pivot=True):
    """(P, L, U) with A = P L U."""
    packed, pivots = lu_factor(A, pivot=pivot)
    p, lower, upper = unpacked(packed, pivots)
    return results.linalg_lu(p if pivot else A.new_empty((0,)), lower, upper)


def unpacked(packed: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    m, n = packed.shape[-2:]
    k = min(m, n)
    eye = packed.new_ones((k,)).diag_embed()
    lower = packed[..., :k].tril(-1)
    if m > k:
        eye = packed.new_ones((m,)).diag_embed()[:, :k]
    return permutation_matrix(packed, pivots), lower + eye, packed[..., :k, :].triu()


def permutation_matrix(packed: Tensor, pivots: Tensor) -> Tensor:
    """P with A = P L U."""
    m = packed.shape[-2]
    order = lu_ops.permutation(pivots, rows=m, inverse=False)
    rows = arange(m, device=packed.device).unsqueeze(-1)
    return (order.unsqueeze(-2) == rows).to(packed.dtype)


@public(method=False)
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """(P, L, U) from the packed factors and pivots."""
    if str(LU_pivots.dtype) != "torch.int32":
        raise OpError(complaint("lu_unpack", "LU_pivots must have dtype int32", dict(
            dtype=LU_pivots.dtype), "Pass what lu_factor returned."))
    nothing = LU_data.new_empty((0,))
    lower = upper = p = nothing
    if unpack_data:
        _, lower, upper = unpacked(LU_data, LU_pivots)
    if unpack_pivots:
        p = permutation_matrix(LU_data, LU_pivots)
    return results.lu_unpack(p, lower, upper)


# QR and reflectors ---------------------------------------------------------------------------


@public(module="linalg")
def qr(A, mode="reduced"):
    """(Q, R) with A = Q R; mode "reduced", "complete", or "r" for R alone."""
    if mode not in ("reduced", "complete", "r"):
        raise OpError(complaint("linalg.qr", "mode must be 'reduced', 'complete' or 'r'",
                                dict(mode=repr(mode))))
    return results.linalg_qr(*orthogonal.qr(matrices("linalg.qr", A), mode=mode))


@public(module="linalg")
def householder_product(A, tau):
    """The first columns of the product of reflectors I - tau v v^H packed below A's diagonal."""
    matrices("linalg.householder_product", A)
    check_reflectors("linalg.householder_product", A, tau)
    return orthogonal.householder_product(A, tau)


def check_reflectors(op: str, packed: Tensor, tau: Tensor) -> None:
    m, n = packed.shape[-2:]
    problem = None
    if m < n:
        problem = "input.shape[-2] must be greater than or equal to input.shape[-1]"
    elif tau.ndim < 1 or tau.shape[-1] > n:
        problem = "input.shape[-1] must be greater than or equal to tau.shape[-1]"
    elif tau.ndim != packed.ndim - 1:
        problem = "tau must have one dimension less than input"
    elif tau.shape[:-1] != packed.shape[:-2]:
        problem = "batch dimensions of tau must be equal to input.shape[:-2]"
    elif tau.dtype is not packed.dtype:
        problem = "tau must have the dtype of input"
    if problem:
        raise OpError(complaint(op, problem, dict(input=list(packed.shape), tau=list(tau.shape))))


# LDL -----------------------------------------------------------------------------------------


@public(module="linalg")
def ldl_factor_ex(A, *, hermitian=False, check_errors=False):
    """(L and D packed, pivots, info) of a symmetric or Hermitian matrix."""
    packed, pivots, info = symmetric.ldl_factor(squares("linalg.ldl_factor", A.detach()),
                                                hermitian=bool(hermitian))
    if check_errors:
        succeeded("linalg.ldl_factor", info, "D must not have zeros on its diagonal")
    return results.linalg_ldl_factor_ex(packed, pivots, info)


@public(module="linalg")
def ldl_factor(A, *, hermitian=False):
    """(L and D packed, pivots) of a symmetric or Hermitian matrix."""
    return results.linalg_ldl_factor(*ldl_factor_ex(A, hermitian=hermitian)[:2])


@public(module="linalg")
def ldl_solve(LD, pivots, B, *, hermitian=False):
    """X with A X = B, from the factors of A."""
    from flambeau.linalg.checks import same_batch

    squares("linalg.ldl_solve", LD)
    matrices("linalg.ldl_solve", B)
    if B.shape[-2] != LD.shape[-1]:
        raise ValueRangeError(complaint("linalg.ldl_solve", "B must have as many rows as A", dict(
            LD=list(LD.shape), B=list(B.shape))))
    packed, right = same_batch("linalg.ldl_solve", LD, B)
    pivots = pivots.expand(packed.shape[:-1])
    return symmetric.ldl_solve(packed.detach(), pivots, right.detach(), hermitian=bool(hermitian))
