"""Eigenvalues, singular values, and what follows from them: rank and condition."""

from __future__ import annotations

import math

from flambeau.core.errors import OpError, complaint
from flambeau.linalg import results
from flambeau.linalg.checks import field, matrices, squares
from flambeau.linalg.inverting import inv_ex, tolerance
from flambeau.linalg.norms import matrix_norm
from flambeau.ops.matrices import eigen, singular
from flambeau.tensor.public import public


@public(module="linalg")
def eig(A):
    """(eigenvalues, eigenvectors in columns), complex."""
    return results.linalg_eig(*eigen.eig(squares("linalg.eig", A)))


@public(module="linalg")
def eigvals(A):
    """Eigenvalues, complex."""
    return eigen.eigvals(squares("linalg.eigvals", A))


def is_upper(op: str, uplo: str) -> bool:
    if not isinstance(uplo, str) or uplo.upper() not in ("U", "L"):
        raise OpError(complaint(op, "UPLO must be 'L' or 'U'", dict(UPLO=repr(uplo))))
    return uplo.upper() == "U"


@public(module="linalg")
def eigh(A, UPLO="L"):
    """(eigenvalues ascending, eigenvectors in columns) of a Hermitian matrix."""
    upper = is_upper("linalg.eigh", UPLO)
    return results.linalg_eigh(*eigen.eigh(squares("linalg.eigh", A), upper=upper))


@public(module="linalg")
def eigvalsh(A, UPLO="L"):
    """Eigenvalues of a Hermitian matrix, ascending."""
    upper = is_upper("linalg.eigvalsh", UPLO)
    return eigen.eigvalsh(squares("linalg.eigvalsh", A), upper=upper)


@public(module="linalg")
def svd(A, full_matrices=True, *, driver=None):
    """(U, S, V^H) with A = U diag(S) V^H."""
    return results.linalg_svd(*singular.svd(matrices("linalg.svd", A), full=bool(full_matrices)))


@public(module="linalg")
def svdvals(A, *, driver=None):
    """Singular values, descending."""
    return singular.svdvals(matrices("linalg.svdvals", A))


@public(module="linalg")
def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None):
    """How many singular values exceed max(atol, rtol times the largest)."""
    x = field("linalg.matrix_rank", matrices("linalg.matrix_rank", A)).detach()
    if hermitian:
        squares("linalg.matrix_rank", x)
    if tol is not None:
        atol, rtol = tol, 0.0
    absolute, relative = tolerance(x, atol, rtol)
    s = eigvalsh(x).abs() if hermitian else svdvals(x)
    if not s.shape[-1]:
        return s.new_zeros(s.shape[:-1]).long()
    limit = (relative * s.amax(-1)).maximum(absolute)
    return (s > limit.unsqueeze(-1)).sum(-1)


@public(module="linalg")
def cond(A, p=None):
    """The condition number |A| |A^-1| in a matrix norm."""
    x = matrices("linalg.cond", A)
    if p is None or p in (2, -2):
        s = svdvals(x)
        if not s.shape[-1]:
            return s.new_zeros(s.shape[:-1])
        ratio = s[..., 0] / s[..., -1]
        return ratio if p != -2 else s[..., -1] / s[..., 0]
    if p not in (1, -1, math.inf, -math.inf, "fro", "nuc"):
        raise OpError(complaint("linalg.cond", "p must be a norm of matrices", dict(p=repr(p))))
    squares("linalg.cond", x)
    if not x.numel():
        return x.new_zeros(x.shape[:-2], dtype=x.dtype.to_real())
    inverse, info = inv_ex(x)
    result = matrix_norm(x, p) * matrix_norm(inverse, p)
    return result.masked_fill(info != 0, math.inf)
