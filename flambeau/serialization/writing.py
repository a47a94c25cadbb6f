"""The pickle inside a checkpoint: ordinary pickling, with tensors under PyTorch's names.

Storages are not part of the pickle; it refers to them by number, one number for all tensors that
share memory. Our own classes are written under the name that PyTorch has for them.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from types import FunctionType
from typing import Any

from flambeau.core.device import device
from flambeau.core.dtype import dtype as DType
from flambeau.core.spec import Size
from flambeau.nn.parameter import Buffer, Parameter, UninitializedTensor
from flambeau.random import Generator
from flambeau.serialization.allowed import OUR_PACKAGE, name_of
from flambeau.serialization.kinds import UNTYPED, StorageKind, kind_of
from flambeau.tensor.layout import layout
from flambeau.tensor.storage import Storage
from flambeau.tensor.tensor import Tensor, alias, storage_of


class Named:
    """A global of PyTorch, by name only. A call of it does nothing: only its pickle counts."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str):
        self.module = module
        self.name = name

    def __call__(self) -> None:
        """`pickle` insists that what rebuilds an object can be called."""


_TENSOR_V2 = Named("torch._utils", "_rebuild_tensor_v2")
_TENSOR_V3 = Named("torch._utils", "_rebuild_tensor_v3")
_META_TENSOR = Named("torch._utils", "_rebuild_meta_tensor_no_storage")
_PARAMETER = Named("torch._utils", "_rebuild_parameter")
_PARAMETER_WITH_STATE = Named("torch._utils", "_rebuild_parameter_with_state")
_FROM_TYPE = Named("torch._tensor", "_rebuild_from_type_v2")
_SIZE = Named("torch", "Size")
_DEVICE = Named("torch", "device")
_GENERATOR = Named("torch._C", "Generator")
_LAYOUT = Named("torch.serialization", "_get_layout")


class StorageEntry:
    """A storage with its number in the file and the class it was first met under."""

    __slots__ = ("storage", "key", "kind", "location")

    def __init__(self, storage: Storage, key: str, kind: StorageKind, location: str):
        self.storage = storage
        self.key = key
        self.kind = kind
        self.location = location

    def persistent_id(self) -> tuple:
        count = self.storage.nbytes // self.kind.dtype.itemsize
        return ("storage", self.kind, self.key, self.location, count)


_PythonPickler: Any = pickle._Pickler  # type: ignore[attr-defined]


class CheckpointPickler(_PythonPickler):
    """Writes one object; `entries` are then the storages that belong to it.

    It is the Python pickler, as only that lets a class choose the names of globals.
    """

    dispatch = dict(_PythonPickler.dispatch)

    def __init__(self, file: Any, protocol: int):
        super().__init__(file, protocol)
        self.entries: dict[Any, StorageEntry] = {}

    def persistent_id(self, value: Any) -> Any:
        return value.persistent_id() if type(value) is StorageEntry else None

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, Tensor) and not isinstance(value, UninitializedTensor):
            return self._reduced(value)
        if kind is DType:
            return f"torch.{value.name}"
        if kind is Size:
            return _SIZE, (tuple(value),)
        if kind is device:
            index = () if value.index is None else (value.index,)
            return _DEVICE, (value.type, *index)
        if kind is layout:
            return _LAYOUT, (repr(value),)
        if kind is Generator:
            return _GENERATOR, (value.device,), (value.initial_seed(), None, value.get_state())
        return NotImplemented

    def _reduced(self, value: Tensor) -> tuple:
        state = value.__dict__ or None
        if type(value) is Parameter:
            data: tuple = (alias(value), value.requires_grad, OrderedDict())
            return (_PARAMETER_WITH_STATE, (*data, state)) if state else (_PARAMETER, data)
        rebuild, arguments = self._plain(value)
        if type(value) is Buffer or (type(value) is Tensor and not state):
            return rebuild, arguments
        return _FROM_TYPE, (rebuild, type(value), arguments, state or {})

    def _plain(self, t: Tensor) -> tuple:
        size, stride = tuple(t.shape), tuple(t.stride())
        if t.device.type == "meta":
            return _META_TENSOR, (t.dtype, size, stride, t.requires_grad)
        entry = self._entry(t)
        data: tuple = (entry, t.storage_offset(), size, stride, t.requires_grad, OrderedDict())
        if entry.kind.dtype is t.dtype and entry.kind is not UNTYPED:
            return _TENSOR_V2, data
        return _TENSOR_V3, (*data, t.dtype)

    def _entry(self, t: Tensor) -> StorageEntry:
        storage = storage_of(t)
        # Two storages may be aliases of one memory; empty ones have no memory to go by.
        flat = storage.flat
        where = flat.ctypes.data if flat is not None and flat.size else ("empty", id(storage))
        key = (str(t.device), where, storage.nbytes)
        if key not in self.entries:
            self.entries[key] = StorageEntry(storage, str(len(self.entries)), kind_of(t.dtype),
                                             str(t.device))
        return self.entries[key]

    def save_global(self, value: Any, name: str | None = None) -> None:
        if isinstance(value, DType):
            self._write_global(value, "torch", value.name)
        elif _is_ours(value):
            self._write_global(value, *name_of(value))
        else:
            super().save_global(value, name)

    def save_type(self, value: type) -> None:
        """As pickle does, except for our classes: those of None and the like have their own way."""
        if _is_ours(value):
            self.save_global(value)
        else:
            super().save_type(value)

    def save_named(self, value: Named | StorageKind) -> None:
        self._write_global(value, value.module, value.name)

    def _write_global(self, value: Any, module: str, name: str) -> None:
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(value)

    dispatch[Named] = save_named
    dispatch[StorageKind] = save_named
    dispatch[type] = save_type
    dispatch[FunctionType] = save_global


def _is_ours(value: Any) -> bool:
    return getattr(value, "__module__", None) is not None and (
        value.__module__ == OUR_PACKAGE or value.__module__.startswith(OUR_PACKAGE + "."))
