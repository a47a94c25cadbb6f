"""Inverses and pseudo-inverses."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, complaint
from flambeau.linalg import results
from flambeau.linalg.checks import SINGULAR, field, matrices, squares, succeeded
from flambeau.ops.matrices import lu as lu_ops
from flambeau.ops.matrices import singular
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor


@public(module="linalg")
def inv_ex(A, *, check_errors=False):
    """(inverse, info)."""
    inverse, info = lu_ops.inverse(squares("linalg.inv", A))
    if check_errors:
        succeeded("linalg.inv", info, SINGULAR)
    return results.linalg_inv_ex(inverse, info)


@public(module="linalg")
def inv(A):
    """The inverse."""
    return inv_ex(A, check_errors=True).inverse


def tolerance(x: Tensor, atol, rtol, hint: float | None = None) -> tuple[Tensor, Tensor]:
    """(absolute, relative) as tensors: relative is max(m, n) eps unless something was given."""
    real = x.dtype.to_real()
    if rtol is None:
        rtol = max(x.shape[-2:]) * dtypes.finfo(x.dtype).eps if hint is None else hint
        if isinstance(atol, Tensor):
            rtol = (atol <= 0).to(real) * rtol
        elif atol is not None and atol > 0:
            rtol = 0.0
    return as_real(x, 0.0 if atol is None else atol), as_real(x, rtol)


def as_real(x: Tensor, value) -> Tensor:
    real = x.dtype.to_real()
    if not isinstance(value, Tensor):
        return x.new_ones((), dtype=real).detach() * float(value)
    if value.is_complex():
        raise OpError(complaint("linalg", "tolerances must be real", dict(dtype=value.dtype)))
    return value.detach().to(real)


@public(module="linalg")
def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    """The Moore-Penrose inverse; singular values up to max(atol, rtol s_max) count as zero."""
    x = field("linalg.pinv", matrices("linalg.pinv", A))
    if hermitian:
        squares("linalg.pinv", x)
    absolute, relative = tolerance(x, atol, rcond if rtol is None else rtol)
    return singular.pinv(x, absolute, relative, hermitian=bool(hermitian))


@public(module="linalg")
def tensorinv(A, ind=2):
    """The inverse of A as a map from its last dimensions to its first `ind`."""
    if ind <= 0:
        raise OpError(complaint("linalg.tensorinv", "expected a strictly positive integer for ind",
                                dict(ind=ind)))
    rows, columns = A.shape[:ind], A.shape[ind:]
    n = math.prod(rows)
    if n != math.prod(columns):
        raise OpError(complaint("linalg.tensorinv", "expected self to satisfy the requirement "
                                "prod(self.shape[ind:]) == prod(self.shape[:ind])",
                                dict(shape=list(A.shape), ind=ind)))
    return inv(A.reshape((n, n))).reshape((*columns, *rows))
