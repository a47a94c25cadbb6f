"""Approximate factorisations of low rank from random projections (Halko et al. 2009), and the
largest or smallest eigenpairs of a large Hermitian matrix."""

from __future__ import annotations

from flambeau.core.errors import ValueRangeError, complaint
from flambeau.linalg.factoring import cholesky, qr
from flambeau.linalg.solving import solve_triangular
from flambeau.linalg.spectra import eigh, svd
from flambeau.random import functions as _random  # noqa: F401  registers randn
from flambeau.tensor.joining import cat
from flambeau.tensor.public import FUNCTIONS, public
from flambeau.tensor.tensor import Tensor


def drawn(x: Tensor, *shape: int) -> Tensor:
    return FUNCTIONS[""]["randn"](*shape, dtype=x.dtype, device=x.device)


def range_basis(x: Tensor, q: int, niter: int, m: Tensor | None = None) -> Tensor:
    """Orthonormal columns that nearly span the range of x - m, by subspace iteration."""
    def forward(y):
        return x @ y if m is None else x @ y - m @ y

    def backward(y):
        return x.mH @ y if m is None else x.mH @ y - m.mH @ y

    basis = qr(forward(drawn(x, x.shape[-1], q))).Q
    for _ in range(niter):
        basis = qr(backward(basis)).Q
        basis = qr(forward(basis)).Q
    return basis


@public(method=False, out=False)
def svd_lowrank(A, q=6, niter=2, M=None):
    """(U, S, V) of rank q, nearly A (or A - M)."""
    q = 6 if q is None else q
    if not 0 <= q <= min(A.shape[-2:]):
        raise ValueRangeError(complaint("svd_lowrank", "q must be between 0 and min(m, n)", dict(
            q=q, shape=list(A.shape))))
    m = None if M is None else M.expand(A.shape)
    if A.shape[-2] < A.shape[-1]:
        u, s, v = svd_lowrank(A.mH, q, niter, None if m is None else m.mH)
        return v, s, u
    basis = range_basis(A, q, niter, m)
    core = basis.mH @ A
    if m is not None:
        core = core - basis.mH @ m
    u, s, vh = svd(core, full_matrices=False)
    return basis @ u, s, vh.mH


@public(method=False, out=False)
def pca_lowrank(A, q=None, center=True, niter=2):
    """(U, S, V) of the principal components of A's rows."""
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueRangeError(complaint("pca_lowrank", "q must be between 0 and min(m, n)", dict(
            q=q, shape=list(A.shape))))
    if niter < 0:
        raise ValueRangeError(complaint("pca_lowrank", "niter must not be negative",
                                        dict(niter=niter)))
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


@public(method=False, out=False)
def lobpcg(A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None,
           largest=None, method=None, tracker=None, ortho_iparams=None, ortho_fparams=None,
           ortho_bparams=None):
    """(eigenvalues, eigenvectors) of A x = w B x: the k largest, or smallest ones.

    Knyazev's method: the Rayleigh-Ritz procedure on the span of the iterate, the preconditioned
    residual and the last direction.
    """
    size = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    if size < 3 * k:
        raise ValueRangeError(complaint("lobpcg", "the matrix must be at least three times as "
                                        "large as k", dict(size=size, k=k)))
    if A.ndim != 2:
        rows = [lobpcg(a, k, B, X, n, iK, niter, tol, largest) for a in A]
        stack = FUNCTIONS[""]["stack"]
        return stack([w for w, _ in rows]), stack([v for _, v in rows])
    x = drawn(A, size, n or k) if X is None else X
    limit = 1000 if niter is None or niter < 0 else niter
    tol = 1e-6 if tol is None and A.element_size() == 4 else 1e-12 if tol is None else tol
    return iterated(A, B, x, iK, k, limit, tol, largest is not False)


def iterated(a, b, x, preconditioner, k: int, limit: int, tol: float, largest: bool):
    values, x = ritz(a, b, x, x.shape[-1], largest)
    direction = None
    for _ in range(limit):
        residual = a @ x - (x if b is None else b @ x) * values
        if float(residual[:, :k].norm() / (values[:k].abs().max() + 1)) < tol:
            break
        step = residual if preconditioner is None else preconditioner @ residual
        old = x
        space = [x, step] if direction is None else [x, step, direction]
        values, x = ritz(a, b, cat(space, 1), x.shape[-1], largest)
        direction = x - old @ (old.mH @ (x if b is None else b @ x))
    return values[:k], x[:, :k]


def ritz(a, b, space, count: int, largest: bool):
    """The best `count` eigenpairs within a space."""
    basis = qr(space).Q
    if b is not None:
        factor = cholesky(basis.mH @ (b @ basis))
        basis = solve_triangular(factor.mH, basis, upper=True, left=False)
    values, vectors = eigh(basis.mH @ (a @ basis))
    if largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[:count], basis @ vectors[:, :count]



