"""gather, scatter and index functions along one dimension."""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.bounds import out_of_range
from flambeau.core.errors import (
    DimError,
    DtypeError,
    IndexOutOfRange,
    OpError,
    ShapeError,
    complaint,
)
from flambeau.ops import choice, gathering, scattering
from flambeau.ops import scatter_reduce as folding
from flambeau.ops.casts import convert
from flambeau.ops.dims import normal_dim
from flambeau.tensor.ensuring import ensure, has_values
from flambeau.tensor.public import assign, public
from flambeau.tensor.tensor import Tensor, from_array


def same_dtype(op: str, text: str, **operands: Tensor) -> None:
    """DtypeError saying `text` unless the operands have one dtype."""
    kinds = {name: x.dtype for name, x in operands.items()}
    if len(set(kinds.values())) > 1:
        raise DtypeError(complaint(op, text, kinds))


def checked_index(op: str, x: Tensor, index: Tensor, d: int, along: bool) -> Tensor:
    if index.dtype not in (dtypes.int64, dtypes.int32) and index.numel():
        raise DtypeError(complaint(op, "expected dtype int64 for index", dict(dtype=index.dtype)))
    if max(index.ndim, 1) != max(x.ndim, 1):
        if index.numel() == 0:
            return index.long()
        raise ShapeError(
            complaint(
                op,
                "index tensor must have the same number of dimensions as self tensor",
                dict(index=index.ndim, self=x.ndim),
            )
        )
    for k, (n, limit) in enumerate(zip(index.shape, x.shape)):
        if n > limit and not (along and k == d) and index.numel():
            raise ShapeError(
                complaint(
                    op,
                    f"size does not match at dimension {k}: index may not exceed self apart from "
                    f"dimension {d}",
                    dict(index=list(index.shape), self=list(x.shape)),
                )
            )
    return index if index.dtype is dtypes.int64 else index.long()


@public(exact_out=True)
def gather(input, dim, index, *, sparse_grad=False):
    """out[i][j] = input[index[i][j]][j] for dim 0, and so on."""
    d = normal_dim("gather", dim, input.ndim)
    if not index.numel() and index.ndim != input.ndim:
        return input.reshape((-1,))[:0].expand((0,)).reshape(tuple(index.shape))
    return scattering.gather(input, checked_index("gather", input, index, d, True), dim=d)


@public
def take_along_dim(input, indices, dim=None):
    """gather with broadcasting; over the flattened input without dim."""
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    if input.ndim != indices.ndim:
        raise ShapeError(
            complaint(
                "take_along_dim",
                "input and indices should have the same number of dimensions",
                dict(input=input.ndim, indices=indices.ndim),
            )
        )
    d = normal_dim("take_along_dim", dim, input.ndim)
    sizes = [max(a, b) if a and b else 0 for a, b in zip(input.shape, indices.shape)]
    shape = [n if k != d else m for k, (n, m) in enumerate(zip(sizes, indices.shape))]
    whole = [n if k != d else m for k, (n, m) in enumerate(zip(sizes, input.shape))]
    indices = indices.expand(shape)
    size = input.shape[d]
    return gather(input.expand(whole), d, choice.where(indices < 0, indices + size, indices))


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
    if isinstance(src, Tensor):
        same_dtype("scatter", "expected self.dtype to be equal to src.dtype", self=input, src=src)
    return scattering.scatter(input, index, src, dim=d, add=False)


@public(inplace=True)
def scatter_add(input, dim, index, src):
    """input with src added at the positions along dim."""
    d = normal_dim("scatter_add", dim, input.ndim)
    index = checked_index("scatter_add", input, index, d, True)
    if src.ndim == index.ndim and any(n > m for n, m in zip(index.shape, src.shape)):
        raise ShapeError(
            complaint(
                "scatter_add",
                "index may not exceed src in any dimension",
                dict(index=list(index.shape), src=list(src.shape)),
            )
        )
    same_dtype("scatter_add", "expected self.dtype to be equal to src.dtype", self=input, src=src)
    return scattering.scatter(input, index, src, dim=d, add=True)


def vector_index(op: str, index: Tensor) -> Tensor:
    if index.ndim > 1:
        raise (DimError if op == "index_select" else ShapeError)(
            complaint(op, "index is supposed to be a vector", dict(shape=list(index.shape)))
        )
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise DtypeError(
            complaint(op, "expected dtype int32 or int64 for index", dict(dtype=index.dtype))
        )
    return index.reshape((1,)).long() if index.ndim == 0 else index.long()


@public
def index_select(input, dim, index):
    """The slices of dim at the positions of a vector."""
    index = vector_index("index_select", index)
    d = normal_dim("index_select", dim, input.ndim)
    if input.ndim == 0:
        return gathering.index(input.reshape((1,)), index, dims=(0,)).reshape(())
    refuse_negative("index_select", index, input.shape[d], d)
    return gathering.index(input, index, dims=(d,))


@public(inplace=True)
def index_add(input, dim, index, source, *, alpha=1):
    """input with alpha * source added to the slices of dim at the positions of a vector."""
    index = vector_index("index_add", index)
    d = normal_dim("index_add", dim, input.ndim)
    same_dtype("index_add", "self and source expected to have the same dtype",
               self=input, source=source)
    if input.ndim == 0:
        return input + (source * alpha).sum().to(input.dtype)
    shape = [index.numel() if k == d else n for k, n in enumerate(input.shape)]
    if source.numel() != 1 and tuple(source.shape) != tuple(shape):
        raise ShapeError(
            complaint(
                "index_add",
                f"source must have the sizes of self, and of index at dimension {d}",
                dict(source=list(source.shape), expected=shape),
            )
        )
    within("index_add", index, input.shape[d], d)
    source = source if alpha == 1 else source * alpha
    return gathering.index_put(input, source, index, dims=(d,), accumulate=True)


def ensure_not_negative(op: str, index: Tensor) -> None:
    """The check of a graph; whoever uses the index looks for too large ones."""
    ensure(index >= 0, IndexOutOfRange, op, "an index must not be negative")


def within(op: str, index: Tensor, size: int, dim: int) -> None:
    """RuntimeError, as PyTorch has it for this op, unless 0 <= index < size."""
    if not has_values(index):
        must = f"an index must be within [0, {size - 1}] for dimension {dim}"
        ensure((index >= 0) & (index < size), OpError, op, must)
        return
    if not index.numel():
        return
    least, most = int(index._array.min()), int(index._array.max())
    if least < 0 or most >= size:
        wrong = least if least < 0 else most
        raise OpError(
            complaint(op, f"index {wrong} is out of bounds for dimension {dim} with size {size}")
        )


def refuse_negative(op: str, index: Tensor, size: int, dim: int) -> None:
    if not has_values(index):
        ensure_not_negative(op, index)
    elif index.numel() and (least := int(index._array.min())) < 0:
        raise out_of_range(f"{op}.{dim}", least, size)


@public(inplace=True)
def index_copy(input, dim, index, source):
    """input with source written to the slices of dim at the positions of a vector."""
    index = vector_index("index_copy", index)
    d = normal_dim("index_copy", dim, input.ndim)
    same_dtype("index_copy", "self and source expected to have the same dtype",
               self=input, source=source)
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
            raise OpError(
                complaint(
                    "index_fill_",
                    "only supports a 0-dimensional value tensor",
                    dict(shape=list(value.shape)),
                )
            )
        value = convert(value, dtype=input.dtype)
        if value.requires_grad:  # its gradient counts each slice once
            index = index.unique()
    if input.ndim == 0:
        return (input * 0 + value).to(input.dtype)
    return gathering.index_put(input, value, index, dims=(d,), accumulate=False)


@public(inplace=True)
def index_put(input, indices, values, accumulate=False):
    """input with values written (or added) at the positions of broadcast index tensors."""
    from flambeau.tensor.indexing import viewed

    x, found = viewed(input, tuple(indices))
    dims = tuple(sorted(found))
    return gathering.index_put(
        x, values, *[found[d] for d in dims], dims=dims, accumulate=bool(accumulate)
    )


FOLDS = ("sum", "prod", "mean", "amax", "amin")


@public(inplace=True)
def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    """input with src folded in at the positions along dim: sum, prod, mean, amax or amin."""
    d = normal_dim("scatter_reduce", dim, input.ndim)
    if reduce not in FOLDS:
        raise OpError(
            complaint(
                "scatter_reduce",
                "reduce argument must be either sum, prod, mean, amax or amin",
                dict(reduce=reduce),
            )
        )
    index = checked_index("scatter_reduce", input, index, d, True)
    same_dtype("scatter_reduce", "expected self.dtype to be equal to src.dtype",
               self=input, src=src)
    if any(i > s for i, s in zip(index.shape, src.shape)) or max(src.ndim, 1) != max(index.ndim, 1):
        raise ShapeError(
            complaint(
                "scatter_reduce",
                "index must not exceed src",
                dict(index=list(index.shape), src=list(src.shape)),
            )
        )
    return folding.scatter_reduce(
        input, index, src, dim=d, fold=reduce, include_self=bool(include_self)
    )


@public(inplace=True)
def index_reduce(input, dim, index, source, reduce, *, include_self=True):
    """input with slices of source folded in at the positions of a vector."""
    index = vector_index("index_reduce", index)
    d = normal_dim("index_reduce", dim, input.ndim)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise OpError(
            complaint(
                "index_reduce",
                "reduce argument must be either prod, mean, amax or amin",
                dict(reduce=reduce),
            )
        )
    if input.ndim == 0:
        input_, source = input.reshape((1,)), source.reshape((-1,))
        return index_reduce(input_, 0, index, source, reduce, include_self=include_self).reshape(())
    refuse_negative("index_reduce", index, input.shape[d], d)
    shape = tuple(-1 if k == d else 1 for k in range(input.ndim))
    full = index.reshape(shape).expand(source.shape)
    return folding.scatter_reduce(
        input, full, source, dim=d, fold=reduce, include_self=bool(include_self)
    )


# Masks ---------------------------------------------------------------------------------------


def nonzero_positions(input: Tensor):
    if input._array is None:
        raise OpError(
            complaint(
                "nonzero",
                "the number of elements depends on values, which a meta tensor does not have",
            )
        )
    return gathering.nonzero_of(input._array)


@public
def nonzero(input, *, as_tuple=False):
    """Positions of the elements that are not zero, one a row."""
    found = nonzero_positions(input)
    if as_tuple:
        if not input.ndim:
            return (from_array(np.zeros(len(found), np.int64)),)
        return tuple(from_array(np.ascontiguousarray(c)) for c in found.T)
    return from_array(np.ascontiguousarray(found))


@public
def argwhere(input):
    """Positions of the elements that are not zero, one a row."""
    return nonzero(input)


@public
def nonzero_static(input, *, size, fill_value=-1):
    """nonzero, cut or filled up to `size` rows."""
    if size < 0:
        raise OpError(
            complaint("nonzero_static", "'size' must be a non-negative integer", dict(size=size))
        )
    found = nonzero_positions(input)[:size]
    out = np.full((size, input.ndim), fill_value, np.int64)
    out[: len(found)] = found
    return from_array(out)


@public
def masked_select(input, mask):
    """The elements where a broadcast mask holds, in order."""
    if mask.dtype is not dtypes.bool:
        raise DtypeError(
            complaint("masked_select", "expected BoolTensor for mask", dict(dtype=mask.dtype))
        )
    from flambeau.tensor.rearranging import broadcast_tensors

    x, mask = broadcast_tensors(input, mask)
    return x[mask] if x.ndim else x.reshape((1,))[mask.reshape((1,))]


@public(inplace=True, out=False)
def masked_scatter(input, mask, source):
    """input with elements of source, in order, where the mask holds."""
    if mask.dtype is not dtypes.bool:
        raise DtypeError(
            complaint("masked_scatter", "only supports boolean masks", dict(dtype=mask.dtype))
        )
    same_dtype("masked_scatter", "expected self and source to have same dtypes",
               self=input, source=source)
    from flambeau.tensor.rearranging import broadcast_tensors

    x, mask = broadcast_tensors(input, mask)
    where = nonzero(mask.reshape((-1,)))[:, 0]
    if where.numel() > source.numel():
        raise OpError(
            complaint(
                "masked_scatter",
                "number of elements of source < number of ones in mask",
                dict(source=source.numel(), ones=where.numel()),
            )
        )
    flat = x.reshape((-1,))
    values = source.reshape((-1,))[: where.numel()]
    done = gathering.index_put(flat, values, where, dims=(0,), accumulate=False)
    return done.reshape(tuple(x.shape))


@public
def take(input, index):
    """Elements of the flattened input."""
    if index.dtype is not dtypes.int64:
        raise DtypeError(
            complaint("take", "expected a long tensor for index", dict(dtype=index.dtype))
        )
    return gathering.index(input.reshape((-1,)), index, dims=(0,))


@public(function=False, out=False)
def put_(self, index, source, accumulate=False):
    """self with source written (or added) at positions of the flattened tensor."""
    return assign("put_", self, put(self, index, source, accumulate))


@public
def put(input, index, source, accumulate=False):
    """input with source written (or added) at positions of the flattened tensor."""
    if index.dtype is not dtypes.int64:
        raise DtypeError(
            complaint("put_", "expected a long tensor for index", dict(dtype=index.dtype))
        )
    same_dtype("put_", "self and source expected to have the same dtype", self=input, source=source)
    if index.numel() != source.numel():
        raise ShapeError(
            complaint(
                "put_",
                "expected source and index to have the same number of elements",
                dict(source=source.numel(), index=index.numel()),
            )
        )
    done = gathering.index_put(
        input.reshape((-1,)),
        source.reshape((-1,)),
        index.reshape((-1,)),
        dims=(0,),
        accumulate=bool(accumulate),
    )
    return done.reshape(tuple(input.shape))


@public(function=False, out=False)
def fill_diagonal_(self, fill_value, wrap=False):
    """Fill the main diagonal; with `wrap`, that of a tall matrix starts again below."""
    if self.ndim < 2 or (self.ndim > 2 and len(set(self.shape)) > 1):
        raise OpError(
            complaint(
                "fill_diagonal_",
                "the tensor must be a matrix, or have all dimensions of equal length",
                dict(shape=list(self.shape)),
            )
        )
    step, (rows, columns) = sum(self.stride()), (self.shape[0], self.shape[1])
    self.as_strided((min(self.shape),), (step,)).fill_(fill_value)
    if wrap and self.ndim == 2 and rows > columns + 1:
        self[columns + 1 :].fill_diagonal_(fill_value, wrap=True)
    return self
