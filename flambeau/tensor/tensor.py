"""`Tensor`: a spec, an array over shared storage, and its place in the autograd graph.

The class here holds state and the few methods that every layer needs; the operators and the
hundreds of named methods are attached by `tensor.public` where each operation is defined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau.core.device import CPU
from flambeau.core.dtype import FLOAT, from_numpy_dtype
from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import AutogradError, ValueRangeError, complaint
from flambeau.core.spec import Size, Spec, spec
from flambeau.ops.dims import normal_dim
from flambeau.tensor.storage import Storage, storage_of_array


class Tensor:
    """A multi-dimensional array of one dtype on one device.

    _array         ndarray view of the memory; None for meta and traced tensors
    _spec          dtype, shape, strides, device
    _storage       shared memory and version; None until a view, a write or autograd needs it
    _offset        first element's place in the storage, in elements
    _requires_grad, _node, _output_nr, _grad   see flambeau.autograd
    _base          the tensor that this is a view of, never itself a view
    _node_version  storage version for which a view's `_node` holds; -1: not tracked
    _extra         rarely needed state (hooks, name), see flambeau.autograd.hooks
    """

    __slots__ = ("_array", "_spec", "_storage", "_offset", "_requires_grad", "_node", "_output_nr",
                 "_grad", "_base", "_node_version", "_extra", "__weakref__", "__dict__")

    if TYPE_CHECKING:  # what is attached later, for type checkers
        _any: Any = None
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __pos__ = _any
        __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _any
        __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __abs__ = __and__ = __or__ = __xor__ = _any
        __invert__ = __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __setitem__ = _any
        __iadd__ = __isub__ = __imul__ = __itruediv__ = __bool__ = __int__ = __float__ = _any
        __index__ = __iter__ = __contains__ = __complex__ = _any

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    def __new__(cls, *args, **kwargs):
        """The legacy constructor: `Tensor(2, 3)` is uninitialised, `Tensor([1, 2])` float data."""
        from flambeau.tensor import legacy

        made = legacy.construct(*args, **kwargs)
        return made if cls is Tensor else made.as_subclass(cls)

    @property
    def shape(self) -> Size:
        return self._spec.size

    @property
    def dtype(self) -> DType:
        return self._spec.dtype

    @property
    def device(self):
        return self._spec.device

    @property
    def ndim(self) -> int:
        return self._spec.ndim

    def dim(self) -> int:
        return self._spec.ndim

    def numel(self) -> int:
        return self._spec.numel

    nelement = numel

    def size(self, dim: int | None = None):
        """The shape, or one of its entries."""
        if dim is None:
            return self._spec.size
        return self._spec.shape[normal_dim("size", dim, self._spec.ndim)]

    def stride(self, dim: int | None = None):
        """Strides in elements, or one of them."""
        if dim is None:
            return self._spec.strides
        return self._spec.strides[normal_dim("stride", dim, self._spec.ndim)]

    def storage_offset(self) -> int:
        return self._offset

    def element_size(self) -> int:
        return self._spec.itemsize

    @property
    def itemsize(self) -> int:
        return self._spec.itemsize

    @property
    def nbytes(self) -> int:
        return self._spec.nbytes

    def __len__(self) -> int:
        if not self._spec.shape:
            raise TypeError("len() of a 0-d tensor")
        return self._spec.shape[0]

    def __hash__(self) -> int:
        return id(self)

    @staticmethod
    def _make_subclass(cls, data, require_grad: bool = False) -> Tensor:
        """A `cls` on the memory of `data`, without history."""
        if require_grad and data._spec.dtype.category < FLOAT:
            raise AutogradError(complaint(
                cls.__name__, "only Tensors of floating point and complex dtype can require "
                "gradients", dict(dtype=data._spec.dtype), "Pass requires_grad=False."))
        t = alias(data, cls)
        t._requires_grad = bool(require_grad)
        return t

    def as_subclass(self, cls) -> Tensor:
        """A `cls` on the same memory with the same history."""
        t = alias(self, cls)
        t._node, t._output_nr, t._requires_grad = self._node, self._output_nr, self._requires_grad
        t._base = self._base
        if self._base is not None:
            t._node_version = self._node_version
        return t

    @property
    def _version(self) -> int:
        """How often the memory has been written in place."""
        return 0 if self._storage is None else self._storage.version


_allocate = object.__new__


def make(array: np.ndarray | None, of: Spec, cls: type = Tensor) -> Tensor:
    """A tensor that owns fresh memory laid out as `of` says."""
    t = _allocate(cls)
    t._array = array
    t._spec = of
    t._storage = None
    t._offset = 0
    t._requires_grad = False
    t._node = None
    t._output_nr = 0
    t._grad = None
    t._base = None
    t._extra = None
    return t


def storage_of(t: Tensor) -> Storage:
    """The storage under `t`, made on first need."""
    storage = t._storage
    if storage is None:
        if t._array is None:
            storage = Storage(None, t._spec.nbytes)
        else:
            storage = storage_of_array(t._array)
        t._storage = storage
    return storage


def array_at(storage: Storage, of: Spec, offset: int) -> np.ndarray | None:
    """An ndarray over part of a storage; NumPy refuses what would leave it."""
    if storage.flat is None:
        return None
    if not of.numel:
        return np.empty(of.shape, of.numpy)
    return np.ndarray(of.shape, of.numpy, storage.flat, offset * of.itemsize, of.byte_strides)


def make_view(base: Tensor, of: Spec, offset: int) -> Tensor:
    """A tensor over `base`'s storage; `offset` in elements of the new dtype."""
    storage = base._storage or storage_of(base)
    t = make(array_at(storage, of, offset), of)
    t._storage, t._offset = storage, offset
    t._base = base if base._base is None else base._base
    t._node_version = storage.version
    return t


def alias(t: Tensor, cls: type = Tensor) -> Tensor:
    """Another tensor on the same storage and version, without history (`detach`)."""
    if t._array is None and hasattr(t, "_aliased"):  # a stand-in, such as a slice under vmap
        return t._aliased()
    new = make(t._array, t._spec, cls)
    new._storage = t._storage or storage_of(t)
    new._offset = t._offset
    return new


def adopt(t: Tensor, other: Tensor) -> None:
    """Make `t` stand for `other`'s memory and layout; history stays."""
    t._array, t._spec = other._array, other._spec
    t._storage, t._offset = other._storage, other._offset


def from_array(array: np.ndarray) -> Tensor:
    """A tensor on the memory of `array`, which it keeps alive; negative strides are refused."""
    kind = from_numpy_dtype(array.dtype)
    size = kind.itemsize
    strides = tuple(s // size for s in array.strides)
    if any(s < 0 for s in strides) or any(s % size for s in array.strides):
        raise ValueRangeError(complaint(
            "from_numpy", "strides must be positive multiples of the item size",
            dict(strides=array.strides), "Pass `array.copy()`."))
    if 0 in array.shape or array.ndim == 0:
        strides = None
    return make(array, spec(kind, array.shape, strides, CPU))


def is_plain(t) -> bool:
    """A Tensor whose class leaves operations to flambeau."""
    return type(t) is Tensor
