"""How element types look in memory and in registers.

bool is a byte in memory and an i1 in registers; the 16-bit floats are computed in float32 and
rounded after every operation, so a value in a register is always one that memory could hold.
"""

from __future__ import annotations

from flambeau.core import dtype as dtypes

_MEMORY = {
    "float64": "double",
    "float32": "float",
    "float16": "i16",
    "bfloat16": "i16",
    "bool": "i8",
}
_REGISTER = {
    "float64": "double",
    "float32": "float",
    "float16": "float",
    "bfloat16": "float",
    "bool": "i1",
}


def memory_type(d: dtypes.dtype) -> str:
    """The LLVM type of an element in memory."""
    return _MEMORY.get(d.name) or f"i{8 * d.itemsize}"


def register_type(d: dtypes.dtype) -> str:
    """The LLVM type of an element in a register."""
    return _REGISTER.get(d.name) or f"i{8 * d.itemsize}"


def is_float(d: dtypes.dtype) -> bool:
    return d.category == dtypes.FLOAT


def is_signed(d: dtypes.dtype) -> bool:
    return d.is_signed and d.category == dtypes.INTEGER


def lowest(d: dtypes.dtype) -> float | int | bool:
    """The identity of max."""
    if d.category == dtypes.FLOAT:
        return float("-inf")
    if d.category == dtypes.BOOL:
        return False
    return -(1 << (8 * d.itemsize - 1)) if d.is_signed else 0


def highest(d: dtypes.dtype) -> float | int | bool:
    """The identity of min."""
    if d.category == dtypes.FLOAT:
        return float("inf")
    if d.category == dtypes.BOOL:
        return True
    return (1 << (8 * d.itemsize - 1)) - 1 if d.is_signed else (1 << 8 * d.itemsize) - 1
