"""safetensors files: named tensors and nothing else. The functions' names are the library's own.

The library writes, and checks what is read; the bytes are read straight into the tensors' memory.
"""

from __future__ import annotations

import io
import json
import struct
from typing import Any, BinaryIO

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.device import CPU
from flambeau.core.errors import ArgumentError, OpError, ValueRangeError, complaint
from flambeau.core.spec import contiguous_strides
from flambeau.serialization.atomic import replacing
from flambeau.serialization.errors import EmptyFile
from flambeau.serialization.location import destination
from flambeau.serialization.machine import damaged
from flambeau.serialization.rebuild import LoadedStorage
from flambeau.tensor.storage import Storage
from flambeau.tensor.tensor import Tensor, storage_of

_NAMES = dict(F64="float64", F32="float32", F16="float16", BF16="bfloat16", I64="int64",
              I32="int32", I16="int16", I8="int8", U64="uint64", U32="uint32", U16="uint16",
              U8="uint8", BOOL="bool", F8_E4M3="float8_e4m3fn", F8_E5M2="float8_e5m2",
              C64="complex64")
_WRITABLE = set(_NAMES.values())


def save_file(tensors: dict[str, Tensor], filename: Any,
              metadata: dict[str, str] | None = None) -> None:
    """Write tensors to a path, which is replaced only when all is written."""
    data = save(tensors, metadata)
    with replacing(filename) as file:
        file.write(data)


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file. Tensors are written row-major, whatever their strides."""
    from safetensors import serialize

    _check(tensors)
    arrays = {name: _bytes_of(t) for name, t in tensors.items()}
    specs = {name: _spec(t, arrays[name]) for name, t in tensors.items()}
    return serialize(specs, metadata)


def _check(tensors: Any) -> None:
    if not isinstance(tensors, dict):
        raise ValueRangeError(complaint("save_file", "tensors must be a dict of tensors by name",
                                        dict(got=type(tensors).__name__)))
    owners: dict[int, str] = {}
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise ValueRangeError(complaint("save_file", "values must be tensors",
                                            {name: type(t).__name__}))
        if t.dtype.name not in _WRITABLE:
            raise ArgumentError(complaint("save_file", "the format must know the dtype",
                                          {name: t.dtype}, "Convert it, or use torch.save."))
        other = owners.setdefault(id(storage_of(t)), name) if t.numel() else name
        if other != name:
            raise OpError(complaint("save_file", "Some tensors share memory, which the format "
                                    "cannot say", dict(tensors=[other, name]),
                                    "Save only one of them, or a clone(); or use torch.save."))


def _bytes_of(t: Tensor) -> np.ndarray:
    if t._array is None:
        raise OpError(complaint("save_file", "tensors must have memory", dict(device=t.device)))
    return np.ascontiguousarray(t._array).reshape(-1).view(np.uint8)


def _spec(t: Tensor, data: np.ndarray) -> Any:
    import safetensors

    shape = list(t.shape)
    if hasattr(safetensors, "TensorSpec"):
        return safetensors.TensorSpec(dtype=t.dtype.name, shape=shape, data_ptr=data.ctypes.data,
                                      data_len=data.nbytes)
    return dict(dtype=t.dtype.name, shape=shape, data=data.tobytes())  # before version 0.7


def load_file(filename: Any, device: Any = "cpu") -> dict[str, Tensor]:
    """The tensors of a file, by name."""
    with open(filename, "rb") as file:
        _validate(lambda: _open_and_close(filename))
        return _read(file, device)


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors in the bytes of a file."""
    from safetensors import deserialize

    _validate(lambda: deserialize(bytes(data)))
    return _read(io.BytesIO(data), "cpu")


def _open_and_close(filename: Any) -> None:
    from safetensors import safe_open

    with safe_open(filename, framework="np"):
        pass


def _validate(attempt: Any) -> None:
    """Let the library check the header: sizes, offsets without gaps, dtypes."""
    from safetensors import SafetensorError

    try:
        attempt()
    except SafetensorError as error:
        raise damaged("the file must be in the safetensors format", reason=repr(str(error))
                      ) from error


def _read(file: BinaryIO, device: Any) -> dict[str, Tensor]:
    length = struct.unpack("<Q", file.read(8))[0]
    header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    return {name: _tensor(file, 8 + length, facts, device) for name, facts in header.items()}


def _tensor(file: BinaryIO, start: int, facts: dict, device: Any) -> Tensor:
    if facts["dtype"] not in _NAMES:
        raise ArgumentError(complaint("load_file", "the dtype must be one of flambeau's",
                                      dict(dtype=facts["dtype"])))
    dtype = dtypes.by_name(_NAMES[facts["dtype"]])
    begin, end = facts["data_offsets"]
    where = destination("cpu", device)
    flat = None
    if where == CPU:
        flat = np.empty(end - begin, np.uint8)
        file.seek(start + begin)
        if file.readinto(flat) != end - begin:  # type: ignore[attr-defined]
            raise EmptyFile(str(damaged("a tensor must not end early", bytes=end - begin)))
    shape = tuple(facts["shape"])
    memory = LoadedStorage(Storage(flat, end - begin), dtype, where)
    return memory.tensor(0, shape, contiguous_strides(shape), dtype)
