"""Shapes and layouts: reshape, expand, permute and their kin."""

from __future__ import annotations

import math

from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import OpError, ShapeError, complaint
from flambeau.core.spec import contiguous_strides
from flambeau.ops import triangles, views
from flambeau.ops.casts import copy
from flambeau.ops.dims import inferred_shape, int_argument, normal_dim
from flambeau.tensor.public import public, public_property
from flambeau.tensor.tensor import Tensor


def sizes_of(op: str, sizes: tuple) -> tuple[int, ...]:
    """Ints from `f(2, 3)` or `f((2, 3))`; negative ones are the caller's business."""
    if len(sizes) == 1 and not hasattr(sizes[0], "__index__"):
        sizes = sizes[0]
    for n in sizes:
        if n.__class__ is not int:
            return tuple(int_argument(op, "size", n) for n in sizes)
    return tuple(sizes)


def reshape_sizes(self: Tensor, *shape) -> Tensor:
    """Method form, which also takes the sizes one by one."""
    return reshape(self, shape[0] if len(shape) == 1 else shape)


@public(method=False, out=False)
def reshape(input, shape):
    """A view of another shape where strides allow, else a copy; one size may be -1."""
    s = input._spec
    target = inferred_shape("reshape", sizes_of("reshape", (shape,)), s.numel)
    if s.is_contiguous or views.view_strides(s.shape, s.strides, target) is not None:
        return views.view(input, shape=target)
    return views.view(copy(input, strides=contiguous_strides(s.shape)), shape=target)


Tensor.reshape = reshape_sizes


@public(function=False, out=False)
def expand(self, *sizes, implicit=False):
    """Repeat dimensions of size one without copying; -1 keeps a size."""
    sizes = sizes_of("expand", sizes)
    shape, lead = self.shape, len(sizes) - self.ndim
    if lead < 0:
        raise ShapeError(complaint("expand", "the number of sizes must not be below the tensor's",
                                   dict(sizes=list(sizes), shape=list(shape))))
    target = []
    for d, n in enumerate(sizes):
        own = shape[d - lead] if d >= lead else None
        if n == -1 and own is not None:
            n = own
        if n < 0 or (own is not None and own != 1 and own != n):
            raise ShapeError(complaint(
                "expand", f"size at dimension {d} must match or be expanded from 1",
                dict(sizes=list(sizes), shape=list(shape))))
        target.append(n)
    return views.expand(self, shape=tuple(target))


@public(out=False, aliases=("swapaxes", "swapdims"))
def transpose(input, dim0, dim1):
    """Exchange two dimensions."""
    a, b = (normal_dim("transpose", d, input.ndim) for d in (dim0, dim1))
    dims = list(range(input.ndim))
    if dims:
        dims[a], dims[b] = dims[b], dims[a]
    return views.permute(input, dims=tuple(dims))


@public(out=False)
def permute(input, *dims):
    """Reorder all dimensions."""
    rank = input.ndim
    order = [normal_dim("permute", d, rank) for d in sizes_of("permute", dims)]
    if sorted(order) != list(range(rank)):
        raise ShapeError(complaint("permute", "dims must name every dimension once",
                                   dict(dims=order, shape=list(input.shape))))
    return views.permute(input, dims=tuple(order))


@public(out=False, aliases=("moveaxis",))
def movedim(input, source, destination):
    """Move dimensions to new places; the others keep their order."""
    pairs = [(d,) if hasattr(d, "__index__") else tuple(d) for d in (source, destination)]
    src, dst = ([normal_dim("movedim", d, input.ndim) for d in p] for p in pairs)
    if len(src) != len(dst) or len(set(src)) != len(src) or len(set(dst)) != len(dst):
        raise ShapeError(complaint("movedim", "source and destination must be distinct and of "
                                   "equal length", dict(source=src, destination=dst)))
    order = [d for d in range(input.ndim) if d not in src]
    for d, s in sorted(zip(dst, src)):
        order.insert(d, s)
    return views.permute(input, dims=tuple(order))


@public(out=False)
def t(input):
    """Transpose of a matrix; vectors and scalars as they are."""
    if input.ndim > 2:
        raise ShapeError(complaint("t", "expects a tensor with <= 2 dimensions",
                                   dict(shape=list(input.shape))))
    return views.permute(input, dims=tuple(reversed(range(input.ndim))))


def view_sizes(self: Tensor, *shape):
    """The same memory in another shape, or as another dtype."""
    if len(shape) == 1 and isinstance(shape[0], DType):
        return view_dtype(self, shape[0])
    target = inferred_shape("view", sizes_of("view", shape), self._spec.numel)
    return views.view(self, shape=target)


def view_dtype(self: Tensor, dtype: DType) -> Tensor:
    return views.view_as_dtype(self, dtype=dtype)


public(view_sizes, name="view", function=False, out=False)


@public(function=False, out=False)
def view_as(self, other):
    """self.view(other.size())."""
    return view_sizes(self, tuple(other.shape))


@public(function=False, out=False)
def reshape_as(self, other):
    """self.reshape(other.size())."""
    return reshape(self, tuple(other.shape))


@public(function=False, out=False)
def expand_as(self, other):
    """self.expand(other.size())."""
    return expand(self, tuple(other.shape))


@public(out=False)
def unsqueeze(input, dim):
    """A new dimension of size one at `dim`."""
    return unsqueezed(input, normal_dim("unsqueeze", dim, input.ndim + 1))


def unsqueezed(x: Tensor, dim: int) -> Tensor:
    """`dim` counted from the front."""
    s = x._spec
    return views.view(x, shape=(*s.shape[:dim], 1, *s.shape[dim:]))


@public(out=False)
def squeeze(input, dim=None):
    """Drop dimensions of size one: all, or those named."""
    rank = input.ndim
    if dim is None:
        dims = range(rank)
    else:
        dims = [normal_dim("squeeze", d, rank)
                for d in ((dim,) if hasattr(dim, "__index__") else dim)]
    shape = tuple(n for d, n in enumerate(input.shape) if not (d in dims and n == 1))
    return views.view(input, shape=shape)


@public(out=False)
def flatten(input, start_dim=0, end_dim=-1):
    """Join the dimensions from start_dim to end_dim into one."""
    a, b = (normal_dim("flatten", d, input.ndim) for d in (start_dim, end_dim))
    if a > b:
        raise OpError(complaint("flatten", "start_dim cannot come after end_dim",
                                dict(start_dim=start_dim, end_dim=end_dim)))
    if input.ndim == 0:
        return reshape(input, (1,))
    if a == b:
        return input
    shape = input.shape
    return reshape(input, (*shape[:a], math.prod(shape[a:b + 1]), *shape[b + 1:]))


@public(out=False)
def ravel(input):
    """One dimension, contiguous."""
    return reshape(input, (-1,))


@public(out=False)
def unflatten(input, dim, sizes):
    """Split one dimension into `sizes`, one of which may be -1."""
    d = normal_dim("unflatten", dim, input.ndim)
    inner = inferred_shape("unflatten", tuple(sizes), input.shape[d])
    return view_sizes(input, (*input.shape[:d], *inner, *input.shape[d + 1:]))


public_property("T", lambda self: views.permute(self, dims=tuple(reversed(range(self.ndim)))))
public_property("H", lambda self: self.mH)
public_property("mT", lambda self: self.transpose(-2, -1))
public_property("mH", lambda self: self.transpose(-2, -1).conj()
                if self.dtype.is_complex else self.transpose(-2, -1))


@public(inplace=True)
def tril(input, diagonal=0):
    """The lower triangle of the last two dimensions; zeros above `diagonal`."""
    return triangles.tril(input, diagonal=int(diagonal))


@public(inplace=True)
def triu(input, diagonal=0):
    """The upper triangle of the last two dimensions; zeros below `diagonal`."""
    return triangles.triu(input, diagonal=int(diagonal))
