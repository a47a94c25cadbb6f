"""Sums, means, products, norms and logic over dimensions, under PyTorch's names."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import FLOAT, INTEGER
from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import DtypeError, OpError, complaint
from flambeau.ops import reductions
from flambeau.ops.dims import normal_dim, normal_dims
from flambeau.tensor.forms import tensor_argument
from flambeau.tensor.public import function_of, public
from flambeau.tensor.tensor import Tensor


def reduced_dims(op: str, x: Tensor, dim) -> tuple[int, ...]:
    """The dimensions to fold; () for a zero-dimensional tensor."""
    rank = tensor_argument(op, x)._spec.ndim
    if dim is None and rank < len(EVERY):
        return EVERY[rank]
    if dim.__class__ is int and -rank <= dim < rank:
        return (dim % rank,)
    dims = normal_dims(op, dim, rank)
    return dims if rank else ()


EVERY = [tuple(range(rank)) for rank in range(8)]


def accumulation_dtype(x: Tensor, dtype: DType | None) -> DType:
    """Integers and bools add up in int64."""
    return dtype or (dtypes.int64 if x._spec.dtype.category <= INTEGER else x._spec.dtype)


def converted(x: Tensor, dtype: DType | None) -> Tensor:
    return x if dtype is None or dtype is x._spec.dtype else x.to(dtype)


@public
def sum(input, dim=None, keepdim=False, *, dtype=None):
    """Sum over `dim` (all by default); integers and bools add up in int64."""
    dims = reduced_dims("sum", input, dim)
    return reductions.sum(converted(input, dtype), dim=dims, keepdim=bool(keepdim),
                          dtype=accumulation_dtype(input, dtype))


def mean_dtype(op: str, x: Tensor, dtype: DType | None) -> DType:
    kind = dtype or x.dtype
    if kind.category < FLOAT:
        raise DtypeError(complaint(op, "the result dtype must be floating point or complex",
                                   dict(dtype=kind), "Convert with .float(), or pass dtype=."))
    return kind


@public
def mean(input, dim=None, keepdim=False, *, dtype=None):
    """Average over `dim` (all by default)."""
    dims = reduced_dims("mean", input, dim)
    return reductions.mean(converted(input, dtype), dim=dims, keepdim=bool(keepdim),
                           dtype=mean_dtype("mean", input, dtype))


@public
def prod(input, dim=None, keepdim=False, *, dtype=None):
    """Product over `dim` (all by default); integers and bools multiply in int64."""
    dims = reduced_dims("prod", input, dim)
    return reductions.prod(converted(input, dtype), dim=dims, keepdim=bool(keepdim),
                           dtype=accumulation_dtype(input, dtype))


@public(special=("logsumexp",))
def logsumexp(input, dim, keepdim=False):
    """log(sum(e ** input)) without overflow; the gradient of an all -inf line is 0."""
    if input.dtype.category <= INTEGER:
        input = input.to(dtypes.default_dtype())
    return reductions.logsumexp(input, dim=reduced_dims("logsumexp", input, dim),
                                keepdim=bool(keepdim))


# Logical -------------------------------------------------------------------------------------


@public
def any(input, dim=None, keepdim=False):
    """Is any element nonzero?"""
    return reductions.any(input, dim=reduced_dims("any", input, dim), keepdim=bool(keepdim))


@public
def all(input, dim=None, keepdim=False):
    """Are all elements nonzero?"""
    return reductions.all(input, dim=reduced_dims("all", input, dim), keepdim=bool(keepdim))


@public
def hash_tensor(input, dim=(), *, keepdim=False, mode=0):
    """Exclusive or of the elements' bits, as uint64."""
    if mode != 0:
        raise OpError(complaint("hash_tensor", "mode must be 0", dict(mode=mode)))
    return reductions.hash_bits(input, dim=reduced_dims("hash_tensor", input, dim),
                                keepdim=bool(keepdim))


# Spread --------------------------------------------------------------------------------------


def variance(op: str, x: Tensor, dim, unbiased, correction, keepdim) -> Tensor:
    """`f(dim, unbiased, keepdim)`, `f(unbiased)` and `f(dim, correction=, keepdim=)` in one."""
    if dim.__class__ is bool:
        dim, unbiased = None, dim
    if x.dtype.category < FLOAT:
        raise DtypeError(complaint(op, "std and var only support floating point and complex "
                                   "dtypes", dict(dtype=x.dtype), "Convert with .float()."))
    if unbiased is not None:
        correction = int(unbiased)
    elif correction is None:
        correction = 1
    return reductions.var(x, dim=reduced_dims(op, x, dim), correction=correction,
                          keepdim=bool(keepdim))


@public
def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Variance: squared deviations over (count - correction)."""
    return variance("var", input, dim, unbiased, correction, keepdim)


@public
def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Standard deviation: the square root of `var`."""
    return variance("std", input, dim, unbiased, correction, keepdim).sqrt()


@public(method=False, out=False)
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """(variance, mean)."""
    spread = variance("var_mean", input, dim, unbiased, correction, keepdim)
    return spread, mean(input, None if dim.__class__ is bool else dim, keepdim)


@public(method=False, out=False)
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """(standard deviation, mean)."""
    spread = variance("std_mean", input, dim, unbiased, correction, keepdim)
    return spread.sqrt(), mean(input, None if dim.__class__ is bool else dim, keepdim)


# Norms ---------------------------------------------------------------------------------------


def vector_norm(op: str, x: Tensor, ord, dim, keepdim, dtype: DType | None = None) -> Tensor:
    """The p-norm of the elements over `dim`."""
    kind = dtype or x.dtype
    if kind.category < FLOAT:
        raise DtypeError(complaint(op, "norms need a floating point or complex input",
                                   dict(dtype=kind), "Convert with .float()."))
    dims = reduced_dims(op, x, dim)
    if reductions.any_empty(x.shape, dims) and (ord < 0 or ord == math.inf):
        raise OpError(complaint(op, "this order is not defined for an empty line",
                                dict(ord=ord, shape=list(x.shape))))
    return reductions.vector_norm(converted(x, dtype), ord=float(ord), dim=dims,
                                  keepdim=bool(keepdim), dtype=kind)


def matrices(x: Tensor, dim) -> Tensor:
    """`x` with the two dimensions of its matrices last."""
    dims = [normal_dim("norm", d, x.ndim) for d in (range(x.ndim) if dim is None else dim)]
    if len(dims) != 2:
        raise OpError(complaint("norm", "the nuclear norm needs two dimensions", dict(dim=dim)))
    return x.permute([d for d in range(x.ndim) if d not in dims] + dims)


@public
def norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    """The p-norm of the elements; "nuc" is the sum of a matrix's singular values."""
    if p == "nuc":
        values = function_of("linalg", "svdvals")(matrices(input, dim)).sum(-1)
        return values if not keepdim else values.reshape(reductions.reduced_shape(
            input.shape, reduced_dims("norm", input, dim), True))
    if p is None or p == "fro":
        p = 2
    return vector_norm("norm", input, p, dim, keepdim, dtype)
