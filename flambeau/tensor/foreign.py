"""Tensors on memory that others own: buffers, files, DLPack, anything array-like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.device import CPU
from flambeau.core.device import of as device_of
from flambeau.core.errors import (
    ArgumentError,
    AutogradError,
    OpError,
    ValueRangeError,
    complaint,
)
from flambeau.core.spec import spec
from flambeau.tensor.interop import as_tensor, tensor
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor, from_array, make


def over_bytes(flat: np.ndarray, kind, count: int) -> Tensor:
    """A tensor of `count` elements on the first of these bytes."""
    of = spec(kind, (count,), (1,), CPU)
    return make(flat[: count * kind.itemsize].view(of.numpy), of)


@public(method=False, out=False)
def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A one-dimensional tensor on the buffer's own memory."""
    flat = np.frombuffer(buffer, np.uint8)
    if not 0 <= offset < max(flat.size, 1) or not flat.size:
        raise ValueRangeError(complaint("frombuffer", "offset must lie inside of the buffer", dict(
            offset=offset, nbytes=flat.size)))
    rest = flat.size - offset
    if count < 0 and rest % dtype.itemsize:
        raise ValueRangeError(complaint(
            "frombuffer", "the bytes after offset must be a multiple of the element size",
            dict(nbytes=rest, itemsize=dtype.itemsize)))
    count = rest // dtype.itemsize if count < 0 else count
    if count == 0 or count * dtype.itemsize > rest:
        raise ValueRangeError(complaint("frombuffer", "the buffer must hold count elements", dict(
            nbytes=rest, count=count, itemsize=dtype.itemsize)))
    t = over_bytes(flat[offset:], dtype, count)
    return t.requires_grad_() if requires_grad else t


@public(method=False, out=False)
def from_file(filename, shared=None, size=0, *, dtype=None, layout=None, device=None,
              pin_memory=False, requires_grad=False):
    """A tensor on a file of `size` elements; with `shared`, what is written goes to the file."""
    kind = dtype or dtypes.default_dtype()
    nbytes = size * kind.itemsize
    if shared:
        with open(filename, "ab") as file:
            if file.tell() < nbytes:
                file.truncate(nbytes)
    flat = np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(nbytes,))
    return over_bytes(np.asarray(flat), kind, size)


@public(method=False, out=False)
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor from a tensor, an array, a DLPack owner, a buffer, numbers or sequences of them;
    `copy` says whether the memory must be (True) or must not be (False) copied."""
    source: Any = obj
    if not isinstance(obj, (Tensor, np.ndarray, np.generic, bool, int, float, complex, Sequence)):
        source = from_dlpack(obj) if hasattr(obj, "__dlpack__") else source
    if isinstance(obj, (bytes, bytearray, memoryview)):
        source = frombuffer(obj, dtype=dtype or dtypes.default_dtype())
    if not isinstance(source, (Tensor, np.ndarray)):
        if copy is False:
            raise ValueRangeError(complaint("asarray", "can't alias arbitrary sequence", {},
                                            "Leave out copy=False."))
        made = tensor(source, dtype=dtype, device=device)
        return made.requires_grad_() if requires_grad else made
    made = as_tensor(source, dtype=dtype, device=device)
    memory = source._array if isinstance(source, Tensor) else source
    aliased = made is source or made._array is memory or (
        made._array is not None and np.shares_memory(made._array, memory))
    if copy is False and not aliased:
        raise ValueRangeError(complaint("asarray", "can't alias and convert at once", dict(
            dtype=dtype, device=device), "Leave out copy=False."))
    made = made.clone() if copy and aliased else made
    if not requires_grad:
        return made.detach() if made.requires_grad else made
    return made if made.requires_grad else made.detach().requires_grad_()


class _Capsule:
    """A bare DLPack capsule as an object that NumPy can import from."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@public(method=False, out=False)
def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor on the memory of another library's array, through DLPack."""
    if isinstance(ext_tensor, Tensor):
        made = ext_tensor.detach()
    elif type(ext_tensor).__name__ == "PyCapsule":
        made = from_array(np.from_dlpack(_Capsule(ext_tensor)))
    elif not hasattr(ext_tensor, "__dlpack__"):
        raise ArgumentError(complaint("from_dlpack", "the object must have __dlpack__", dict(
            got=type(ext_tensor).__name__)))
    else:
        made = from_array(np.from_dlpack(ext_tensor))
    made = made.to(device_of(device)) if device is not None else made
    return made.clone() if copy else made


def dlpack(self: Tensor, *, stream=None, max_version=None, dl_device=None, copy=None):
    """The memory as a DLPack capsule."""
    if self.requires_grad:
        raise AutogradError(complaint(
            "__dlpack__", "Can't export tensors that require gradient", {},
            "Use tensor.detach()."))
    if self._array is None or self.dtype.itemsize == 1 and self.dtype.is_floating_point or (
            self.dtype is dtypes.bfloat16):
        raise OpError(complaint("__dlpack__", "the tensor must be on the CPU, of a dtype that "
                                "NumPy has", dict(device=self.device, dtype=self.dtype)))
    array = self._array
    if not array.flags.writeable:
        array = array.copy()
    return array.__dlpack__()


def dlpack_device(self: Tensor) -> tuple[int, int]:
    """(1, 0): DLPack's name of the CPU."""
    return 1, 0


@public(method=False, out=False)
def to_dlpack(tensor):
    """The memory as a DLPack capsule, for `from_dlpack` of another library."""
    return tensor.__dlpack__()


Tensor.__dlpack__ = dlpack
Tensor.__dlpack_device__ = dlpack_device
