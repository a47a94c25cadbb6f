"""flip, roll, repeat, tile, diagonals, windows."""

from __future__ import annotations

import builtins
import itertools

from flambeau.core import dtype as dtypes
from flambeau.core.errors import DimError, OpError, ShapeError, complaint
from flambeau.core.spec import Size
from flambeau.ops import promotion, rearranging, views
from flambeau.ops.casts import copy
from flambeau.ops.dims import normal_dim
from flambeau.ops.gathering import index as index_primitive
from flambeau.ops.views import expand as expand_primitive
from flambeau.tensor.factories import arange
from flambeau.tensor.joining import cat
from flambeau.tensor.public import public
from flambeau.tensor.shaping import reshape, sizes_of, transpose, unsqueezed
from flambeau.tensor.tensor import Tensor, storage_of


@public(out=False)
def flip(input, *along, dims=None):
    """Reverse the order along dims."""
    along = along if dims is None else (dims,)
    found = [normal_dim("flip", d, input.ndim) for d in sizes_of("flip", along)]
    if len(set(found)) != len(found):
        raise OpError(complaint("flip", "each dim may appear once", dict(dims=found)))
    if not input.ndim:
        return copy(input)
    return rearranging.flip(input, dims=tuple(found))


@public(out=False)
def fliplr(input):
    """Reverse the second dimension."""
    if input.ndim < 2:
        raise OpError(complaint("fliplr", "Input must be >= 2-d", dict(ndim=input.ndim)))
    return rearranging.flip(input, dims=(1,))


@public(out=False)
def flipud(input):
    """Reverse the first dimension."""
    if input.ndim < 1:
        raise OpError(complaint("flipud", "Input must be >= 1-d", dict(ndim=input.ndim)))
    return rearranging.flip(input, dims=(0,))


@public(out=False)
def roll(input, shifts, dims=None):
    """Shift elements along dims, from the end back to the start."""
    shifts = (shifts,) if hasattr(shifts, "__index__") else tuple(shifts)
    if dims is None or dims == ():
        if len(shifts) != 1:
            raise OpError(
                complaint("roll", "shifts and dimensions must align", dict(shifts=shifts))
            )
        if not input.numel():
            return copy(input)
        flat = rearranging.roll(reshape(input, (-1,)), shifts=shifts, dims=(0,))
        return views.view(flat, shape=tuple(input.shape))
    dims = (dims,) if hasattr(dims, "__index__") else tuple(dims)
    if len(dims) != len(shifts):
        raise OpError(
            complaint("roll", "shifts and dimensions must align", dict(shifts=shifts, dims=dims))
        )
    if not input.ndim:
        raise DimError(
            complaint("roll", "a tensor without dimensions has none to roll along", dict(dims=dims))
        )
    found = tuple(normal_dim("roll", d, input.ndim) for d in dims)
    return rearranging.roll(input, shifts=shifts, dims=found)


@public(out=False)
def rot90(input, k=1, dims=(0, 1)):
    """Rotate by k quarter turns in the plane of two dims."""
    if len(dims) != 2 or input.ndim < 2:
        raise OpError(
            complaint(
                "rot90",
                "expected total rotation dims == 2 and total dims >= 2",
                dict(dims=dims, ndim=input.ndim),
            )
        )
    a, b = (normal_dim("rot90", d, input.ndim) for d in dims)
    if a == b:
        raise OpError(complaint("rot90", "expected rotation dims to be different", dict(dims=dims)))
    k %= 4
    if k == 1:
        return transpose(rearranging.flip(input, dims=(b,)), a, b)
    if k == 2:
        return rearranging.flip(input, dims=(a, b))
    if k == 3:
        return transpose(rearranging.flip(input, dims=(a,)), a, b)
    return copy(input)


@public(function=False, out=False)
def repeat(self, *repeats):
    """Copies side by side along each dimension; new ones come first."""
    counts = sizes_of("repeat", repeats)
    if len(counts) < self.ndim:
        raise OpError(
            complaint(
                "repeat",
                "Number of dimensions of repeat dims can not be smaller "
                "than number of dimensions of tensor",
                dict(repeats=list(counts), ndim=self.ndim),
            )
        )
    if any(n < 0 for n in counts):
        raise OpError(complaint("repeat", "repeats must not be negative", dict(repeats=counts)))
    lead = len(counts) - self.ndim
    shape = (1,) * lead + tuple(self.shape)
    inner = [n for size in shape for n in (1, size)]
    outer = [n for c, size in zip(counts, shape) for n in (c, size)]
    x = reshape(self, tuple(inner))
    x = copy(expand_primitive(x, shape=tuple(outer)), strides=None)
    return reshape(x, tuple(c * n for c, n in zip(counts, shape)))


@public(out=False)
def tile(input, *dims):
    """repeat, with missing leading counts taken as one."""
    counts = sizes_of("tile", dims)
    counts = (1,) * (input.ndim - len(counts)) + counts
    return repeat(input, *counts)


@public(out=False)
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Each element (or slice of dim) several times in a row."""
    if repeats is None:
        return interleaved(arange(input.shape[0]), input, 0)
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
    d = normal_dim("repeat_interleave", dim, input.ndim)
    return interleaved(input, repeats, d)


def interleaved(x: Tensor, repeats, d: int) -> Tensor:
    n = x.shape[d] if x.ndim else 1
    if not isinstance(repeats, Tensor):
        if repeats < 0:
            raise OpError(
                complaint("repeat_interleave", "repeats can not be negative", dict(repeats=repeats))
            )
        shape = (*x.shape[: d + 1], repeats, *x.shape[d + 1 :])
        wide = expand_primitive(unsqueezed(x, d + 1), shape=shape)
        return reshape(wide, (*x.shape[:d], n * repeats, *x.shape[d + 1 :]))
    if repeats.dtype not in (dtypes.int64, dtypes.int32):
        raise OpError(
            complaint(
                "repeat_interleave",
                "repeats has to be Long or Int tensor",
                dict(dtype=repeats.dtype),
            )
        )
    counts = repeats.tolist()
    counts = (
        [counts] * n if not isinstance(counts, list) else counts * n if len(counts) == 1 else counts
    )
    if len(counts) != n or any(c < 0 for c in counts):
        raise OpError(
            complaint(
                "repeat_interleave",
                "repeats must have the same size as input along dim and be non-negative",
                dict(repeats=len(counts), size=n),
            )
        )
    from flambeau.tensor.interop import tensor

    rows = tensor([i for i, c in enumerate(counts) for _ in builtins.range(c)], dtype=dtypes.int64)
    return index_primitive(x, rows, dims=(d,))


# Diagonals -----------------------------------------------------------------------------------


@public(out=False)
def diagonal(input, offset=0, dim1=0, dim2=1):
    """The diagonal of two dimensions as a view, in a new last dimension."""
    a, b = (normal_dim("diagonal", d, input.ndim) for d in (dim1, dim2))
    if a == b:
        raise OpError(
            complaint(
                "diagonal", "diagonal dimensions cannot be identical", dict(dim1=dim1, dim2=dim2)
            )
        )
    return rearranging.diagonal(input, offset=int(offset), dim1=a, dim2=b)


@public
def diag(input, diagonal=0):
    """The diagonal of a matrix, or a matrix with a vector on its diagonal."""
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise OpError(complaint("diag", "Supports 1D or 2D tensors", dict(ndim=input.ndim)))
    return copy(rearranging.diagonal(input, offset=int(diagonal), dim1=0, dim2=1))


@public(out=False)
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Matrices with the last dimension on their diagonals."""
    rank = input.ndim + 1
    a, b = (normal_dim("diag_embed", d, rank) for d in (dim1, dim2))
    if a == b:
        raise OpError(
            complaint(
                "diag_embed", "diagonal dimensions cannot be identical", dict(dim1=dim1, dim2=dim2)
            )
        )
    n = input.shape[-1]
    size = n + abs(offset)
    column = arange(size, device=input.device)
    row = arange(n, device=input.device)
    here = unsqueezed(row + max(offset, 0), 1) == column
    x = (
        unsqueezed(input, input.ndim) * here.to(input.dtype)
        if input.dtype is not dtypes.bool
        else unsqueezed(input, input.ndim) & here
    )
    if offset:
        shape = (*input.shape[:-1], abs(offset), size)
        edge = input.new_zeros(shape)
        x = cat([x, edge] if offset > 0 else [edge, x], -2)
    return x.movedim((-2, -1), (a, b))


@public(out=False)
def diagflat(input, offset=0):
    """A matrix with all elements on its diagonal."""
    return diag_embed(reshape(input, (-1,)), offset)


@public
def trace(input):
    """Sum of the diagonal of a matrix."""
    if input.ndim != 2:
        raise OpError(complaint("trace", "expected a matrix", dict(ndim=input.ndim)))
    return diagonal(input).sum()


# Windows -------------------------------------------------------------------------------------


@public(function=False, out=False)
def unfold(self, dimension, size, step):
    """All windows of `size` along a dimension, `step` apart, as a view."""
    d = normal_dim("unfold", dimension, self.ndim)
    limit = self.shape[d] if self.ndim else 1
    if size < 0 or size > limit or step <= 0:
        raise OpError(
            complaint(
                "unfold",
                f"size must be in [0, {limit}] and step positive",
                dict(size=size, step=step),
            )
        )
    return rearranging.unfold(self, dim=d, size=int(size), step=int(step))


@public(out=False)
def as_strided(input, size, stride, storage_offset=None):
    """A view of the storage under any size and strides."""
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride):
        raise OpError(
            complaint(
                "as_strided",
                "mismatch in length of strides and shape",
                dict(size=size, stride=stride),
            )
        )
    if any(s < 0 for s in stride) or any(n < 0 for n in size):
        raise OpError(
            complaint(
                "as_strided", "size and stride must not be negative", dict(size=size, stride=stride)
            )
        )
    offset = input.storage_offset() if storage_offset is None else int(storage_offset)
    check_inside(input, size, stride, offset)
    return views.as_strided(input, size=size, stride=stride, offset=offset - input._offset)


def check_inside(x: Tensor, size: tuple, stride: tuple, offset: int) -> None:
    last = offset + builtins.sum((n - 1) * s for n, s in zip(size, stride))
    if 0 not in size and (last + 1) * x.element_size() > storage_of(x).nbytes or offset < 0:
        raise OpError(
            complaint(
                "as_strided",
                "the view must lie inside of the storage",
                dict(size=size, stride=stride, storage_offset=offset, nbytes=storage_of(x).nbytes),
            )
        )


# More dimensions, more tensors ----------------------------------------------------------------


def atleast(rank: int):
    """`atleast_{rank}d` for one tensor or several."""

    def one(x):
        if rank == 1:
            return reshape(x, (1,)) if x.ndim == 0 else x
        if rank == 2:
            return reshape(x, (1, 1)) if x.ndim == 0 else unsqueezed(x, 0) if x.ndim == 1 else x
        x = atleast_2(x)
        return unsqueezed(x, 2) if x.ndim == 2 else x

    def atleast_nd(*tensors):
        if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
            tensors = tuple(tensors[0])
            return tuple(one(t) for t in tensors)
        return one(tensors[0]) if len(tensors) == 1 else tuple(one(t) for t in tensors)

    def atleast_2(x):
        return reshape(x, (1, 1)) if x.ndim == 0 else unsqueezed(x, 0) if x.ndim == 1 else x

    atleast_nd.__doc__ = f"At least {rank} dimensions, by new ones of size one."
    return public(atleast_nd, name=f"atleast_{rank}d", method=False, out=False)


atleast_1d, atleast_2d, atleast_3d = atleast(1), atleast(2), atleast(3)


@public(method=False, aliases=())
def hstack(tensors):
    """Join along the second dimension (the first of vectors)."""
    tensors = atleast_1d(list(tensors))
    if not tensors:
        raise OpError(complaint("hstack", "expects a non-empty TensorList"))
    return cat(list(tensors), 0 if tensors[0].ndim == 1 else 1)


@public(method=False, aliases=("row_stack",))
def vstack(tensors):
    """Join along the first dimension; vectors are rows."""
    if not len(tensors):
        raise OpError(complaint("vstack", "expects a non-empty TensorList"))
    return cat(list(atleast_2d(list(tensors))), 0)


@public(method=False)
def dstack(tensors):
    """Join along the third dimension."""
    if not len(tensors):
        raise OpError(complaint("dstack", "expects a non-empty TensorList"))
    return cat(list(atleast_3d(list(tensors))), 2)


@public(method=False)
def column_stack(tensors):
    """Join along the second dimension; vectors are columns."""
    if not len(tensors):
        raise OpError(complaint("column_stack", "expects a non-empty TensorList"))
    return cat([reshape(t, (t.numel(), 1)) if t.ndim < 2 else t for t in tensors], 1)


def nsplit(name: str, least: int, dim: int):
    def splitting(input, indices_or_sections):
        if input.ndim < least:
            raise OpError(
                complaint(
                    name,
                    f"torch.{name} requires a tensor with at least {least} dimension",
                    dict(ndim=input.ndim),
                )
            )
        d = 0 if name == "hsplit" and input.ndim == 1 else dim
        if hasattr(indices_or_sections, "__index__"):
            n = indices_or_sections
            if n <= 0 or input.shape[d] % n:
                raise OpError(
                    complaint(
                        name,
                        "the size must be divisible by the number of sections",
                        dict(size=input.shape[d], sections=n),
                    )
                )
        return input.tensor_split(indices_or_sections, d)

    splitting.__doc__ = f"Split along dimension {dim}."
    public(splitting, name=name, out=False)


for _name, _least, _dim in [("hsplit", 1, 1), ("vsplit", 2, 0), ("dsplit", 3, 2)]:
    nsplit(_name, _least, _dim)


@public(method=False, out=False)
def broadcast_tensors(*tensors):
    """All expanded to their common shape."""
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tuple(tensors[0])
    shape = broadcast_shapes(*(t.shape for t in tensors))
    return tuple(t.expand(shape) for t in tensors)


@public(method=False, out=False)
def broadcast_shapes(*shapes):
    """The common shape under broadcasting."""
    found = [(s,) if hasattr(s, "__index__") else tuple(s) for s in shapes]
    if any(n < 0 for s in found for n in s):
        raise OpError(complaint("broadcast_shapes", "sizes must not be negative"))
    return Size(promotion.broadcast_shapes("broadcast_shapes", *found) if found else ())


@public(out=False)
def broadcast_to(input, size):
    """input.expand(size)."""
    return input.expand(size)


@public(function=False, out=False)
def sum_to_size(self, *size):
    """Sum over the dimensions that expanding from `size` repeated."""
    target = sizes_of("sum_to_size", size)
    lead = self.ndim - len(target)
    if lead < 0 or any(n != m and n != 1 for n, m in zip(target, self.shape[lead:])):
        raise ShapeError(
            complaint(
                "sum_to_size",
                "size must be expandable to the tensor's",
                dict(size=list(target), shape=list(self.shape)),
            )
        )
    dims = tuple(
        d
        for d in builtins.range(self.ndim)
        if d < lead or (target[d - lead] == 1 and self.shape[d] != 1)
    )
    x = self.sum(dims, keepdim=True) if dims else self
    return reshape(x, target)


@public(method=False, out=False)
def meshgrid(*tensors, indexing=None):
    """Coordinates of a grid: each vector expanded along a dimension of its own."""
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tuple(tensors[0])
    if not tensors:
        raise OpError(complaint("meshgrid", "expects a non-empty TensorList"))
    if any(t.ndim > 1 for t in tensors):
        raise OpError(complaint("meshgrid", "Expected 0D or 1D tensor in the tensor list"))
    if indexing not in (None, "ij", "xy"):
        raise OpError(
            complaint("meshgrid", "indexing must be 'ij' or 'xy'", dict(indexing=indexing))
        )
    if len({t.dtype for t in tensors}) > 1:
        raise OpError(complaint("meshgrid", "expects all tensors to have the same dtype"))
    flipped = indexing == "xy" and len(tensors) > 1
    order = [1, 0, *builtins.range(2, len(tensors))] if flipped else [*builtins.range(len(tensors))]
    given = [tensors[i] for i in order]
    shape = tuple(t.numel() for t in given)
    rank = len(shape)
    grids = [
        reshape(t, tuple(-1 if d == k else 1 for d in builtins.range(rank))).expand(shape)
        for k, t in enumerate(given)
    ]
    if flipped:
        grids = [grids[order.index(i)] for i in builtins.range(len(tensors))]
    return tuple(grids)


@public(method=False, out=False)
def block_diag(*tensors):
    """A matrix with the given ones on its diagonal."""
    tensors = [atleast_2d(t) for t in tensors]
    if any(t.ndim > 2 for t in tensors):
        raise OpError(complaint("block_diag", "Input tensors must have 2 or fewer dimensions"))
    columns = builtins.sum(t.shape[1] for t in tensors)
    rows, at = [], 0
    for t in tensors:
        n, m = t.shape
        rows.append(cat([t.new_zeros((n, at)), t, t.new_zeros((n, columns - at - m))], 1))
        at += m
    return cat(rows, 0)


@public(method=False, out=False)
def cartesian_prod(*tensors):
    """All combinations of elements, one a row."""
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(*tensors, indexing="ij")
    return cat([reshape(g, (-1, 1)) for g in grids], 1)


@public(out=False)
def combinations(input, r=2, with_replacement=False):
    """All combinations of r elements of a vector, one a row."""
    from flambeau.tensor.interop import tensor

    if input.ndim != 1 or r < 0:
        raise OpError(
            complaint(
                "combinations",
                "expects a 1D vector and a non-negative r",
                dict(ndim=input.ndim, r=r),
            )
        )
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(builtins.range(input.shape[0]), r))
    if r == 0 or not rows:
        nothing = input[:0]
        return nothing.clone() if r == 0 else nothing.unsqueeze(1).expand((0, r)).clone()
    return index_primitive(input, tensor(rows, dtype=dtypes.int64), dims=(0,))
