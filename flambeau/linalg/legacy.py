"""The names that linear algebra had before `torch.linalg`, as functions and methods."""

from __future__ import annotations

from flambeau.core.errors import OpError, complaint
from flambeau.linalg import factoring, inverting, powers, results, solving, spectra
from flambeau.linalg.checks import matrices, same_batch, squares
from flambeau.ops.matrices import cholesky as cholesky_ops
from flambeau.ops.matrices import orthogonal, triangular
from flambeau.tensor.public import public


@public
def cholesky(input, upper=False):
    """linalg.cholesky."""
    return factoring.cholesky(input, upper=upper)


@public
def cholesky_solve(B, L, upper=False):
    """X with A X = B, from the Cholesky factor of A."""
    matrices("cholesky_solve", B)
    squares("cholesky_solve", L)
    solving.check_system("cholesky_solve", L, B, True)
    factor, b = same_batch("cholesky_solve", L, B)
    return cholesky_ops.cholesky_solve(b, factor, upper=bool(upper))


@public
def cholesky_inverse(L, upper=False):
    """The inverse of A from its Cholesky factor."""
    squares("cholesky_inverse", L)
    eye = L.new_ones((L.shape[-1],)).diag_embed().expand(L.shape)
    return cholesky_solve(eye, L, upper)


@public
def qr(input, some=True):
    """linalg.qr, reduced or complete."""
    return results.qr(*factoring.qr(input, "reduced" if some else "complete"))


@public
def svd(input, some=True, compute_uv=True):
    """(U, S, V) with A = U diag(S) V^H."""
    if compute_uv:
        u, s, vh = spectra.svd(input, not some)
        return results.svd(u, s, vh.mH)
    m, n = matrices("svd", input).shape[-2:]
    batch = input.shape[:-2]
    return results.svd(input.new_zeros((*batch, m, m)), spectra.svdvals(input),
                       input.new_zeros((*batch, n, n)))


@public
def geqrf(input):
    """(R over packed reflectors, their factors tau)."""
    return results.geqrf(*orthogonal.geqrf(matrices("geqrf", input).detach()))


@public
def orgqr(input, input2):
    """linalg.householder_product."""
    return factoring.householder_product(input, input2)


@public
def ormqr(input, tau, other, left=True, transpose=False):
    """Q other, Q^H other, other Q or other Q^H, for the product Q of packed reflectors."""
    problem = None
    for name, t, rank in (("input", input, 2), ("tau", tau, 1), ("other", other, 2)):
        if t.ndim < rank:
            problem = f"{name} must have at least {rank} dimensions"
    if problem is None:
        rows = other.shape[-2 if left else -1]
        if tau.shape[-1] > rows or input.shape[-2] != rows:
            problem = "other must have as many rows (columns on the right) as input has rows"
        elif tau.ndim != input.ndim - 1 or other.ndim != input.ndim:
            problem = "input, tau and other must have matching numbers of dimensions"
        elif tau.dtype is not input.dtype or other.dtype is not input.dtype:
            problem = "input, tau and other must have the same dtype"
    if problem:
        raise OpError(complaint("ormqr", problem, dict(
            input=list(input.shape), tau=list(tau.shape), other=list(other.shape))))
    return orthogonal.apply_reflectors(input, tau, other, left=bool(left),
                                       transpose=bool(transpose))


@public
def lu(input, pivot=True, get_infos=False):
    """(packed factors, pivots[, info])."""
    packed, pivots, info = factoring.lu_factor_ex(input, pivot=pivot, check_errors=not get_infos)
    return (packed, pivots, info) if get_infos else (packed, pivots)


@public
def lu_solve(b, LU_data, LU_pivots):
    """X with A X = b, from lu_factor's results."""
    return solving.lu_solve(LU_data, LU_pivots, b)


@public
def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False):
    """(X with A X = b, A)."""
    op = "triangular_solve"
    squares(op, A)
    solving.check_system(op, A, matrices(op, b), True)
    a, right = same_batch(op, A, b)
    turned, upper = (a.mT, not upper) if transpose else (a, bool(upper))
    x = triangular.triangular_solve(turned, right, upper=upper, unit=bool(unitriangular))
    return results.triangular_solve(x, a.clone())


@public
def det(input):
    """linalg.det."""
    return powers.det(input)


@public
def slogdet(input):
    """linalg.slogdet."""
    return results.slogdet(*powers.slogdet(input))


@public(out=False)
def logdet(input):
    """log det; NaN where a real determinant is negative."""
    sign, size = powers.slogdet(input)
    if input.is_complex():
        return sign.log() + size
    return size.masked_fill(sign == -1, float("nan"))


@public
def inverse(input):
    """linalg.inv."""
    return inverting.inv(input)


@public(out=False)
def pinverse(input, rcond=1e-15):
    """linalg.pinv with a fixed relative tolerance."""
    return inverting.pinv(input, rcond)


@public
def matrix_power(input, n):
    """linalg.matrix_power."""
    return powers.matrix_power(input, n)


@public(out=False)
def matrix_exp(input):
    """linalg.matrix_exp."""
    return powers.matrix_exp(input)
