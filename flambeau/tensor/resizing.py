"""New tensors like this one, and changing a tensor's size in place."""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.device import of as device_of
from flambeau.core.errors import AutogradError, OpError, ValueRangeError, complaint
from flambeau.core.spec import contiguous_strides, spec
from flambeau.ops.dims import normal_shape
from flambeau.ops.windows import extent
from flambeau.tensor.factories import empty_strided, filled
from flambeau.tensor.interop import tensor
from flambeau.tensor.public import public
from flambeau.tensor.shaping import sizes_of
from flambeau.tensor.storage import Storage
from flambeau.tensor.tensor import Tensor, array_at, from_array, storage_of


@public(function=False, out=False)
def new_full(self, size, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False,
             pin_memory=False):
    """A tensor of one value, with this one's dtype and device."""
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return filled(normal_shape("new_full", (size,)), value, dtype or self.dtype,
                  device or self.device, requires_grad)


@public(function=False, out=False)
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """A copy of `data`, with this one's dtype and device."""
    return tensor(data, dtype=dtype or self.dtype, device=device or self.device,
                  requires_grad=requires_grad)


@public(function=False, out=False)
def new_empty_strided(self, size, stride, *, dtype=None, layout=None, device=None,
                      requires_grad=False, pin_memory=False):
    """A tensor of the given size and strides, with this one's dtype and device."""
    return empty_strided(size, stride, dtype=dtype or self.dtype, device=device or self.device,
                         requires_grad=requires_grad)


@public(method=False, out=False)
def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None,
                   requires_grad=False, pin_memory=False):
    """A tensor whose dimensions lie in memory in the order of physical_layout."""
    size = tuple(size)
    if len(physical_layout) != len(size):
        raise OpError(complaint("empty_permuted", "Number of dimensions in size does not match the "
                                "length of the physical_layout", dict(
                                    size=size, physical_layout=physical_layout)))
    if any(not 0 <= d < len(size) for d in physical_layout):
        raise OpError(complaint("empty_permuted", "dimensions must be within those of size", dict(
            physical_layout=physical_layout)))
    order = list(physical_layout)
    if len(set(order)) != len(order):
        raise OpError(complaint("empty_permuted", "Duplicate dim not allowed", dict(
            physical_layout=physical_layout)))
    strides, step = [0] * len(size), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(size[d], 1)
    return filled(size, 0, dtype, device, requires_grad, tuple(strides))


def resized(self: Tensor, shape: tuple) -> Tensor:
    """Give `self` another shape over its storage, which grows where needed."""
    if self._requires_grad:
        raise AutogradError(complaint("resize_", "cannot resize variables that require grad"))
    of = spec(self.dtype, shape, contiguous_strides(shape), self.device)
    storage = storage_of(self)
    need = (self._offset + extent(shape, of.strides)) * of.itemsize
    if need > storage.nbytes and storage.flat is not None:
        flat = np.zeros(need, np.uint8)
        flat[:storage.nbytes] = storage.flat
        storage.flat, storage.nbytes = flat, need
    self._spec, self._array = of, array_at(storage, of, self._offset)
    return self


@public(function=False, out=False)
def resize_(self, *sizes, memory_format=None):
    """Change the shape in place; new elements are not specified (here: zeros)."""
    shape = sizes_of("resize_", sizes)
    if any(n < 0 for n in shape):
        raise OpError(complaint("resize_", "requires non-negative sizes", dict(size=list(shape))))
    return self if tuple(self.shape) == shape else resized(self, shape)


@public(function=False, out=False)
def resize_as_(self, the_template, *, memory_format=None):
    """Change the shape in place to that of another tensor."""
    return self if self.shape == the_template.shape else resized(self, tuple(the_template.shape))


Tensor.resize = lambda self, *sizes: self.reshape(*sizes)


@public(function=False, out=False)
def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Make this tensor stand for the memory of another one."""
    if isinstance(source, Tensor):
        if size is None:
            self._array, self._spec = source._array, source._spec
            self._storage, self._offset = storage_of(source), source._offset
            return self
        storage = storage_of(source)
    elif source is None:
        storage, size = Storage(np.empty(0, np.uint8), 0), (0,)
    else:
        storage = getattr(source, "_storage", source)
    size = (storage.nbytes // self.element_size(),) if size is None else tuple(size)
    strides = contiguous_strides(size) if stride is None else tuple(stride)
    of = spec(self.dtype, size, strides, self.device)
    self._array = array_at(storage, of, storage_offset)
    self._spec, self._storage, self._offset = of, storage, storage_offset
    return self


# Index tensors -------------------------------------------------------------------------------


def triangle_indices(name: str, pick) -> None:
    def indices(row, col, offset=0, *, dtype=dtypes.int64, layout=None, device=None,
                pin_memory=False):
        if row < 0 or col < 0:
            raise OpError(complaint(name, "row and col must be non-negative", dict(
                row=row, col=col)))
        found = np.stack(pick(row, offset, col)) if row and col else np.zeros((2, 0), np.int64)
        return from_array(found.astype(np.int64)).to(device_of(device), dtype)

    indices.__doc__ = "Rows and columns of a triangle's elements, as a 2 x n tensor."
    public(indices, name=name, method=False, out=False)


triangle_indices("tril_indices", np.tril_indices)
triangle_indices("triu_indices", np.triu_indices)


@public(method=False, out=False)
def unravel_index(indices, shape):
    """Flat positions as one index tensor per dimension."""
    sizes = (shape,) if hasattr(shape, "__index__") else tuple(int(n) for n in shape)
    if indices.dtype.category != dtypes.INTEGER:
        raise ValueRangeError(complaint(
            "unravel_index", "expected 'indices' to be an integer tensor",
            dict(dtype=indices.dtype)))
    if any(n < 0 for n in sizes):
        raise ValueRangeError(complaint("unravel_index", "shape must not be negative",
                                     dict(shape=sizes)))
    steps = contiguous_strides(sizes)
    return tuple(indices.div(s, rounding_mode="floor") % n for s, n in zip(steps, sizes))
