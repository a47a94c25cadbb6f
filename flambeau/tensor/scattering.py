"""gather, scatter and index functions along one dimension."""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.core.errors import DtypeError, OpError, ShapeError, complaint
from flambeau.ops import gathering, scattering
from flambeau.ops.casts import convert
from flambeau.ops.dims import normal_dim
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor


def checked_index(op: str, x: Tensor, index: Tensor, d: int, along: bool) -> Tensor:
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise DtypeError(complaint(op, "expected dtype int64 for index", dict(dtype=index.dtype)))
    if max(index.ndim, 1) != max(x.ndim, 1):
        if index.numel() == 0:
            return index.long()
        raise ShapeError(complaint(op, "index tensor must have the same number of dimensions as "
                                   "self tensor", dict(index=index.ndim, self=x.ndim)))
    for k, (n, limit) in enumerate(zip(index.shape, x.shape)):
        if n > limit and not (along and k == d) and index.numel():
            raise ShapeError(complaint(
                op, f"size does not match at dimension {k}: index may not exceed self apart from "
                f"dimension {d}", dict(index=list(index.shape), self=list(x.shape))))
    return index if index.dtype is dtypes.int64 else index.long()


@public
def gather(input, dim, index, *, sparse_grad=False):
    """out[i][j] = input[index[i][j]][j] for dim 0, and so on."""
    d = normal_dim("gather", dim, input.ndim)
    return scattering.gather(input, checked_index("gather", input, index, d, True), dim=d)


@public
def take_along_dim(input, indices, dim=None):
    """gather with broadcasting; over the flattened input without dim."""
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    if input.ndim != indices.ndim:
        raise ShapeError(complaint("take_along_dim", "input and indices should have the same "
                                   "number of dimensions", dict(
                                       input=input.ndim, indices=indices.ndim)))
    d = normal_dim("take_along_dim", dim, input.ndim)
    sizes = [max(a, b) if a and b else 0 for a, b in zip(input.shape, indices.shape)]
    shape = [n if k != d else m for k, (n, m) in enumerate(zip(sizes, indices.shape))]
    whole = [n if k != d else m for k, (n, m) in enumerate(zip(sizes, input.shape))]
    return gather(input.expand(whole), d, indices.expand(shape))


@public(inplace=True)
def scatter(input, dim, index, src=None, *, value=None, reduce=None):
    """input with src (or value) written at the positions along dim."""
    d = normal_dim("scatter", dim, input.ndim)
    index = checked_index("scatter", input, index, d, True)
    src = value if src is None else src
    if reduce in ("add", "multiply"):
        kind = "sum" if reduce == "add" else "prod"
        full = src if isinstance(src, Tensor) else input.new_full(index.shape, src)
        return input.scatter_reduce(d, index, full, kind)
    if isinstance(src, Tensor) and src.dtype is not input.dtype:
        raise DtypeError(complaint("scatter", "expected self.dtype to be equal to src.dtype", dict(
            self=input.dtype, src=src.dtype)))
    return scattering.scatter(input, index, src, dim=d, add=False)


@public(inplace=True)
def scatter_add(input, dim, index, src):
    """input with src added at the positions along dim."""
    d = normal_dim("scatter_add", dim, input.ndim)
    index = checked_index("scatter_add", input, index, d, True)
    if src.dtype is not input.dtype:
        raise DtypeError(complaint("scatter_add", "expected self.dtype to be equal to src.dtype",
                                   dict(self=input.dtype, src=src.dtype)))
    return scattering.scatter(input, index, src, dim=d, add=True)


def vector_index(op: str, index: Tensor) -> Tensor:
    if index.ndim > 1:
        raise ShapeError(complaint(op, "index is supposed to be a vector",
                                   dict(shape=list(index.shape))))
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise DtypeError(complaint(op, "expected dtype int32 or int64 for index",
                                   dict(dtype=index.dtype)))
    return index.reshape((1,)).long() if index.ndim == 0 else index.long()


@public
def index_select(input, dim, index):
    """The slices of dim at the positions of a vector."""
    index = vector_index("index_select", index)
    d = normal_dim("index_select", dim, input.ndim)
    if input.ndim == 0:
        return gathering.index(input.reshape((1,)), index, dims=(0,)).reshape(())
    if index.numel() and index._array is not None and (index._array < 0).any():
        gathering.check_bounds("index_select", index._array - 2 ** 62, input.shape[d], d)
    return gathering.index(input, index, dims=(d,))


@public(inplace=True)
def index_add(input, dim, index, source, *, alpha=1):
    """input with alpha * source added to the slices of dim at the positions of a vector."""
    index = vector_index("index_add", index)
    d = normal_dim("index_add", dim, input.ndim)
    if source.dtype is not input.dtype:
        raise DtypeError(complaint("index_add", "self and source expected to have the same dtype",
                                   dict(self=input.dtype, source=source.dtype)))
    if input.ndim == 0:
        return input + (source * alpha).sum()
    shape = [index.numel() if k == d else n for k, n in enumerate(input.shape)]
    if source.numel() != 1 and tuple(source.shape) != tuple(shape):
        raise ShapeError(complaint("index_add", "source must have the sizes of self, and of index "
                                   f"at dimension {d}", dict(
                                       source=list(source.shape), expected=shape)))
    refuse_negative("index_add", index, input.shape[d], d)
    source = source if alpha == 1 else source * alpha
    return gathering.index_put(input, source, index, dims=(d,), accumulate=True)


def refuse_negative(op: str, index: Tensor, size: int, dim: int) -> None:
    if index._array is not None and index.numel() and index._array.min() < 0:
        gathering.check_bounds(op, index._array.min(keepdims=True) - size, size, dim)


@public(inplace=True)
def index_copy(input, dim, index, source):
    """input with source written to the slices of dim at the positions of a vector."""
    index = vector_index("index_copy", index)
    d = normal_dim("index_copy", dim, input.ndim)
    if source.dtype is not input.dtype:
        raise DtypeError(complaint("index_copy", "self and source expected to have the same dtype",
                                   dict(self=input.dtype, source=source.dtype)))
    if input.ndim == 0:
        return source.reshape(()).clone()
    refuse_negative("index_copy", index, input.shape[d], d)
    return gathering.index_put(input, source, index, dims=(d,), accumulate=False)


@public(inplace=True)
def index_fill(input, dim, index, value):
    """input with value written to the slices of dim at the positions of a vector."""
    index = vector_index("index_fill", index)
    d = normal_dim("index_fill", dim, input.ndim)
    if isinstance(value, Tensor):
        if value.ndim:
            raise OpError(complaint("index_fill_", "only supports a 0-dimensional value tensor",
                                    dict(shape=list(value.shape))))
        value = convert(value, dtype=input.dtype)
    if input.ndim == 0:
        return input * 0 + value
    return gathering.index_put(input, value, index, dims=(d,), accumulate=False)


@public(inplace=True)
def index_put(input, indices, values, accumulate=False):
    """input with values written (or added) at the positions of broadcast index tensors."""
    from flambeau.tensor.indexing import viewed

    x, found = viewed(input, tuple(indices))
    dims = tuple(sorted(found))
    return gathering.index_put(x, values, *[found[d] for d in dims], dims=dims,
                               accumulate=bool(accumulate))
