"""NumPy's scalars and arrays inside a checkpoint: accuracies, random states, indices.

NumPy's own unpickling is used only after a look at what it is given; object arrays are refused,
as they could hold anything.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.errors import complaint
from flambeau.serialization.errors import DamagedFile

_BYTE_ORDERS = ("<", ">", "|", "=")


def _require(holds: bool, must: str, **facts: Any) -> None:
    if not holds:
        raise DamagedFile(complaint("load", must, facts, "Save arrays as tensors instead."))


def dtype_from(text: Any, align: Any = False, copy: Any = True) -> np.dtype:
    """`numpy.dtype("f8", False, True)`: a new object, which its state may then change."""
    _require(isinstance(text, str), "a NumPy dtype must be named by a str", got=text)
    found = np.dtype(text, copy=True)
    _require(found.kind in "biufcSU", "a NumPy dtype must be numeric or text", dtype=found)
    return found


def set_dtype_state(target: np.dtype, state: Any) -> None:
    """Take over the byte order, which is all that plain dtypes have for a state."""
    plain = (isinstance(state, tuple) and len(state) >= 8 and state[1] in _BYTE_ORDERS
             and state[2:5] == (None, None, None) and isinstance(state[5], int)
             and isinstance(state[6], int) and all(f in (0, 8, None) for f in state[7:]))
    _require(plain, "the state of a NumPy dtype must be that of a plain one", state=state)
    target.__setstate__(state)  # type: ignore[attr-defined]


def scalar_from(kind: Any, data: Any) -> np.generic:
    """`numpy.core.multiarray.scalar(dtype, bytes)`."""
    _require(isinstance(kind, np.dtype) and isinstance(data, bytes)
             and kind.itemsize == len(data), "a NumPy scalar must fit its dtype", dtype=kind)
    return np.frombuffer(data, kind)[0]


def empty_array(kind: Any, shape: Any, code: Any) -> np.ndarray:
    """`numpy.core.multiarray._reconstruct(ndarray, (0,), b"b")`: filled by its state."""
    _require(kind is np.ndarray, "arrays must be plain", kind=kind)
    return np.empty(0, np.int8)


def set_array_state(target: np.ndarray, state: Any) -> None:
    """(version, shape, dtype, is Fortran ordered, bytes)"""
    _require(isinstance(state, tuple) and len(state) == 5 and isinstance(state[1], tuple)
             and isinstance(state[2], np.dtype) and isinstance(state[4], bytes),
             "the state of a NumPy array must be its shape, dtype and bytes")
    _, shape, dtype, fortran, data = state
    count = _count(shape)
    _require(count * dtype.itemsize == len(data), "a NumPy array must have the bytes of its shape",
             shape=shape, dtype=dtype, bytes=len(data))
    target.__setstate__((1, shape, dtype, bool(fortran), data))  # type: ignore[arg-type]


def array_from_buffer(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    """`numpy.core.numeric._frombuffer`, of pickle protocol 5."""
    _require(isinstance(data, bytes | bytearray) and isinstance(dtype, np.dtype)
             and isinstance(shape, tuple) and order in ("C", "F")
             and _count(shape) * dtype.itemsize == len(data),
             "a NumPy array must have the bytes of its shape", shape=shape, dtype=dtype)
    return np.frombuffer(bytearray(data), dtype).reshape(shape, order=order)


def _count(shape: tuple) -> int:
    count = 1
    for n in shape:
        _require(type(n) is int and n >= 0, "a shape must be ints from 0", shape=shape)
        count *= n
    return count
