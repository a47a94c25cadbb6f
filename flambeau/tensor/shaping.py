"""Shapes and layouts: reshape, expand, permute and their kin."""

from __future__ import annotations

from flambeau.core.errors import ShapeError, complaint
from flambeau.core.spec import contiguous_strides
from flambeau.ops import views
from flambeau.ops.casts import copy
from flambeau.ops.dims import inferred_shape, int_argument, normal_dim
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor


def sizes_of(op: str, sizes: tuple) -> tuple[int, ...]:
    """Ints from `f(2, 3)` or `f((2, 3))`; negative ones are the caller's business."""
    if len(sizes) == 1 and not hasattr(sizes[0], "__index__"):
        sizes = sizes[0]
    return tuple(int_argument(op, "size", n) for n in sizes)


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


Tensor.mT = property(lambda self: self.transpose(-2, -1))
Tensor.mH = property(lambda self: self.transpose(-2, -1).conj()
                     if self.dtype.is_complex else self.transpose(-2, -1))
