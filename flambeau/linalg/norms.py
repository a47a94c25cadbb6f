"""Norms of vectors and of matrices."""

from __future__ import annotations

import math

from flambeau.core.dtype import FLOAT
from flambeau.core.errors import DtypeError, OpError, complaint
from flambeau.ops.dims import normal_dim
from flambeau.ops.matrices import singular
from flambeau.tensor import reducing
from flambeau.tensor.forms import tensor_argument
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor

ORDERS = (1, -1, 2, -2, math.inf, -math.inf)


@public(module="linalg")
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """(sum |x|^ord)^(1 / ord) over `dim`, all dimensions by default."""
    tensor_argument("linalg.vector_norm", x, "x")
    check_dtype("linalg.vector_norm", x, dtype)
    return reducing.vector_norm("linalg.vector_norm", x, ord, dim, keepdim, dtype)


def check_dtype(op: str, x: Tensor, dtype) -> None:
    if dtype is None:
        return
    problem = None
    if dtype.category < FLOAT:
        problem = "dtype must be floating point or complex"
    elif x.is_complex() != dtype.is_complex:
        problem = "dtype must be complex for complex inputs, and real for real ones"
    elif dtype.itemsize < x.dtype.itemsize:
        problem = "the dtype of the input must convert to dtype without narrowing"
    if problem:
        raise DtypeError(complaint(op, problem, dict(input=x.dtype, dtype=dtype)))


@public(module="linalg")
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """A norm of the matrices in two dimensions: "fro", "nuc", 1, -1, 2, -2, inf, -inf."""
    op = "linalg.matrix_norm"
    rows, columns = matrix_dims(op, tensor_argument(op, A, "A"), dim)
    check_dtype(op, A, dtype)
    if A.dtype.category < FLOAT and dtype is None:
        raise DtypeError(complaint(op, "expected a floating point or complex tensor",
                                   dict(dtype=A.dtype), "Convert with .float()."))
    x = A if dtype is None else A.to(dtype)
    if ord == "fro":
        return reducing.vector_norm(op, x, 2, (rows, columns), keepdim)
    if ord in ("nuc", 2, -2):
        values = spectral_norm(x.movedim((rows, columns), (-2, -1)), ord)
        return with_dims(values, rows, columns) if keepdim else values
    if isinstance(ord, str) or ord not in ORDERS:
        raise OpError(complaint(op, f"order {ord} is not supported", dict(ord=repr(ord)),
                                "Use 'fro', 'nuc', 1, -1, 2, -2, inf or -inf."))
    add, pick = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = x.abs().sum(add, keepdim=True)
    best = sums.amax(pick, keepdim=True) if ord > 0 else sums.amin(pick, keepdim=True)
    return best if keepdim else best.squeeze((rows, columns))


def spectral_norm(x: Tensor, ord) -> Tensor:
    """The sum, the largest or the smallest of the singular values."""
    s = singular.svdvals(x)
    if ord == "nuc":
        return s.sum(-1)
    return s.amax(-1) if ord == 2 else s.amin(-1)


def with_dims(values: Tensor, rows: int, columns: int) -> Tensor:
    for d in sorted((rows, columns)):
        values = values.unsqueeze(d)
    return values


def matrix_dims(op: str, x: Tensor, dim) -> tuple[int, int]:
    if x.ndim < 2:
        raise OpError(complaint(op, "the input tensor must have at least 2 dimensions",
                                dict(shape=list(x.shape))))
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise OpError(complaint(op, "dim must be a 2-tuple", dict(dim=dim)))
    rows, columns = (normal_dim(op, d, x.ndim) for d in dim)
    if rows == columns:
        raise OpError(complaint(op, "dims must be different", dict(dim=tuple(dim))))
    return rows, columns


@public(module="linalg")
def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """A vector norm over one dimension (or all elements), a matrix norm over two."""
    tensor_argument("linalg.norm", A, "A")
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    pair = dim is not None and not isinstance(dim, int) and len(dim) == 2
    if pair or (dim is None and A.ndim == 2):
        return matrix_norm(A, ord, tuple(dim) if pair else (-2, -1), keepdim, dtype=dtype)
    if dim is None and A.ndim != 1:
        raise OpError(complaint("linalg.norm", "if dim is None but ord is not, the input must be "
                                "1D or 2D", dict(ndim=A.ndim)))
    if isinstance(ord, str):
        raise OpError(complaint("linalg.norm", "orders by name are norms of matrices",
                                dict(ord=repr(ord), dim=dim)))
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)
