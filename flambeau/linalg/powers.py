"""Determinants, powers and the exponential."""

from __future__ import annotations

from flambeau.core.dtype import FLOAT
from flambeau.core.errors import OpError, complaint
from flambeau.linalg import results
from flambeau.linalg.checks import squares
from flambeau.linalg.inverting import inv
from flambeau.ops.matrices import determinants, exponential
from flambeau.tensor.public import public


@public(module="linalg")
def det(A):
    """The determinant."""
    return determinants.det(squares("linalg.det", A))


@public(module="linalg")
def slogdet(A):
    """(sign, log |det|)."""
    return results.linalg_slogdet(*determinants.slogdet(squares("linalg.slogdet", A)))


@public(module="linalg")
def matrix_exp(A):
    """The sum of A^k / k!."""
    squares("linalg.matrix_exp", A)
    if A.dtype.is_narrow_float:
        return exponential.matrix_exp(A.float()).to(A.dtype)
    return exponential.matrix_exp(A)


@public(module="linalg")
def matrix_power(A, n):
    """A multiplied with itself n times; negative n take the inverse."""
    squares("linalg.matrix_power", A)
    if not hasattr(n, "__index__"):
        raise OpError(complaint("linalg.matrix_power", "n must be an int", dict(n=repr(n))))
    if n == 0:
        eye = A.new_ones((A.shape[-1],)).diag_embed().expand(A.shape).clone()
        return A * 0 + eye if A.dtype.category >= FLOAT and A.requires_grad else eye
    base, n = (inv(A), -n) if n < 0 else (A, n)
    total = None
    while n:
        if n & 1:
            total = base if total is None else total @ base
        n >>= 1
        base = base @ base if n else base
    return total.clone() if total is A else total


@public(module="linalg")
def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """The diagonals of the matrices, a view."""
    return A.diagonal(offset, dim1, dim2)
