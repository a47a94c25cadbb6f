"""`UntypedStorage` and `TypedStorage`: a tensor's memory as an object of its own.

Both show the same bytes as the tensors over them; `Tensor.set_` takes either.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.device import CPU, META
from flambeau.core.device import device as Device
from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import DeviceError, complaint
from flambeau.core.spec import spec
from flambeau.tensor.public import public
from flambeau.tensor.storage import Storage
from flambeau.tensor.tensor import Tensor, array_at, make, storage_of
from flambeau.tensor.typed import WORDS


class UntypedStorage:
    """Bytes on a device: `UntypedStorage(size)`, or from a sequence of numbers below 256."""

    __slots__ = ("_storage", "device", "__weakref__")

    def __init__(self, size: Any = 0, *, device: Any = None):
        self.device = Device(device or CPU)
        if hasattr(size, "__index__"):
            flat = None if self.device == META else np.zeros(int(size), np.uint8)
            self._storage = Storage(flat, int(size))
        else:
            flat = np.array(list(size), np.uint8)
            self._storage = Storage(flat, flat.nbytes)

    @classmethod
    def of(cls, storage: Storage, device: Device) -> UntypedStorage:
        """Over memory that exists."""
        made = object.__new__(cls)
        made._storage, made.device = storage, device
        return made

    @property
    def _bytes(self) -> np.ndarray:
        if self._storage.flat is None:
            raise DeviceError(complaint("UntypedStorage", "the storage must have memory",
                                        dict(device=self.device)))
        return self._storage.flat

    def nbytes(self) -> int:
        """Its size in bytes."""
        return self._storage.nbytes

    size = __len__ = nbytes

    def element_size(self) -> int:
        """Bytes an element: 1."""
        return 1

    def data_ptr(self) -> int:
        """The address of its first byte; 0 without memory."""
        flat = self._storage.flat
        return 0 if flat is None or not flat.size else flat.__array_interface__["data"][0]

    def __getitem__(self, index: Any) -> Any:
        found = self._bytes[index]
        if isinstance(index, slice):
            return UntypedStorage.of(Storage(found, found.nbytes), self.device)
        return int(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._bytes[index] = value
        self._storage.version += 1

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        return self._bytes.tolist()

    def fill_(self, value: int) -> UntypedStorage:
        """Every byte <- value."""
        self[:] = value
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """The bytes of another storage of the same size."""
        self[:] = source._bytes
        return self

    def clone(self) -> UntypedStorage:
        """A copy of the memory."""
        return UntypedStorage.of(Storage(self._bytes.copy(), self.nbytes()), self.device)

    def cpu(self) -> UntypedStorage:
        """Itself: the memory is on the CPU."""
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Another size in bytes. Tensors over it keep the memory that they had."""
        flat = np.zeros(size, np.uint8)
        kept = min(size, self.nbytes())
        flat[:kept] = self._bytes[:kept]
        self._storage.flat, self._storage.nbytes = flat, size
        return self

    def share_memory_(self) -> UntypedStorage:
        """Accepted: data loaders put what they send into shared memory by themselves."""
        return self

    def is_shared(self) -> bool:
        """Is it shared between processes?"""
        return False

    is_pinned = is_sparse = is_sparse_csr = is_cuda = is_hpu = property(lambda self: False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._storage is other._storage

    def __hash__(self) -> int:
        return id(self._storage)

    def __repr__(self) -> str:
        known = self._storage.flat is not None
        rows = "\n".join(f" {n}" for n in self.tolist()) if known else " ..."
        return (f"{rows}\n[torch.storage.UntypedStorage(device={self.device}) of size "
                f"{self.nbytes()}]")

    def __reduce__(self) -> tuple:
        return UntypedStorage, (self._bytes.tobytes(),)


class TypedStorage:
    """A storage seen as elements of one dtype."""

    __slots__ = ("_untyped", "dtype")

    def __init__(self, *args: Any, wrap_storage: UntypedStorage | None = None,
                 dtype: DType | None = None, device: Any = None, _internal: bool = False):
        self.dtype = dtype or dtypes.default_dtype()
        if wrap_storage is not None:
            self._untyped = wrap_storage
        elif args and not hasattr(args[0], "__index__"):
            from flambeau.tensor.interop import tensor

            self._untyped = tensor(list(args[0]), dtype=self.dtype).untyped_storage()
        else:
            count = int(args[0]) if args else 0
            self._untyped = UntypedStorage(count * self.dtype.itemsize, device=device)

    @property
    def _storage(self) -> Storage:
        return self._untyped._storage

    @property
    def device(self) -> Device:
        return self._untyped.device

    def _tensor(self) -> Tensor:
        of = spec(self.dtype, (len(self),), (1,), self.device)
        made = make(array_at(self._storage, of, 0), of)
        made._storage = self._storage
        return made

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped

    def __len__(self) -> int:
        return self._storage.nbytes // self.dtype.itemsize

    size = __len__

    def element_size(self) -> int:
        """Bytes an element."""
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """Its size in bytes."""
        return self._storage.nbytes

    def data_ptr(self) -> int:
        """The address of its first byte."""
        return self._untyped.data_ptr()

    def __getitem__(self, index: Any) -> Any:
        found = self._tensor()[index]
        return found.tolist() if isinstance(index, slice) else found.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._tensor()[index] = value

    def tolist(self) -> list:
        """The elements as Python numbers."""
        return self._tensor().tolist()

    def __iter__(self):
        return iter(self.tolist())

    def fill_(self, value: Any) -> TypedStorage:
        """Every element <- value."""
        self._tensor().fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """The elements of another storage of the same length."""
        self._tensor().copy_(source._tensor())
        return self

    def clone(self) -> TypedStorage:
        """A copy of the memory."""
        return TypedStorage(wrap_storage=self._untyped.clone(), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        """Itself: the memory is on the CPU."""
        return self

    def is_shared(self) -> bool:
        """Is it shared between processes?"""
        return False

    def share_memory_(self) -> TypedStorage:
        """Accepted, see UntypedStorage."""
        return self

    def __repr__(self) -> str:
        rows = "\n".join(f" {n}" for n in self.tolist())
        return (f"{rows}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) "
                f"of size {len(self)}]")


class StorageKind:
    """`torch.FloatStorage` and its like: a TypedStorage of one dtype."""

    def __init__(self, word: str, kind: DType):
        self.dtype, self.__module__ = kind, "torch"
        self.__name__ = self.__qualname__ = f"{word}Storage"

    def __call__(self, *args: Any, **kwargs: Any) -> TypedStorage:
        return TypedStorage(*args, dtype=self.dtype, **kwargs)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, TypedStorage) and value.dtype is self.dtype

    def __repr__(self) -> str:
        return f"<class 'torch.{self.__name__}'>"

    def __reduce__(self) -> str:
        return self.__name__


KINDS = {f"{word}Storage": StorageKind(word, kind) for word, kind in WORDS.items()}
globals().update(KINDS)
_KIND_OF = {kind.dtype: kind for kind in KINDS.values()}


@public(function=False, out=False)
def untyped_storage(self):
    """The memory under this tensor and its views."""
    return UntypedStorage.of(storage_of(self), self.device)


@public(function=False, out=False)
def storage(self):
    """The memory under this tensor and its views, as elements of its dtype."""
    return TypedStorage(wrap_storage=untyped_storage(self), dtype=self.dtype)


@public(function=False, out=False)
def storage_type(self):
    """The class of `storage()`."""
    return _KIND_OF[self.dtype]
