"""Conversions between element types, and between memory and registers."""

from __future__ import annotations

from flambeau.codegen.nest.types import is_float, is_signed, memory_type, register_type
from flambeau.codegen.text import Function, Value, constant, element_of, lanes_of, size_of, vector
from flambeau.core import dtype as dtypes


def to_register(f: Function, x: Value, d: dtypes.dtype) -> Value:
    """An element as loaded, as computed with."""
    lanes = lanes_of(x.type)
    if d.category == dtypes.BOOL:
        return f.compare("ne", x, 0)
    if d.name == "bfloat16":
        wide = f.cast("zext", x, vector(lanes, "i32"))
        return f.cast("bitcast", f.binary("shl", wide, 16), vector(lanes, "float"))
    if d.name == "float16":
        return from_half_bits(f, x)
    return x


def to_memory(f: Function, x: Value, d: dtypes.dtype) -> Value:
    """An element as computed with, as stored."""
    lanes = lanes_of(x.type)
    if d.category == dtypes.BOOL:
        return f.cast("zext", x, vector(lanes, "i8"))
    if d.name == "bfloat16":
        return bfloat16_bits(f, x)
    if d.name == "float16":
        return half_bits(f, x)
    return x


def bfloat16_bits(f: Function, x: Value) -> Value:
    """float32 rounded to the nearest bfloat16, ties to even; NaN stays NaN."""
    lanes = lanes_of(x.type)
    whole = f.cast("bitcast", x, vector(lanes, "i32"))
    odd = f.binary("and", f.binary("lshr", whole, 16), 1)
    up = f.binary("add", whole, f.binary("add", odd, 0x7FFF))
    rounded = f.binary("lshr", up, 16)
    kept = f.select(f.compare("uno", x, x), constant(0x7FC0, rounded.type), rounded)
    return f.cast("trunc", kept, vector(lanes, "i16"))


def has_half(f: Function) -> bool:
    """Does the CPU convert float16 itself? Baseline x86-64 does not."""
    return f.module.vector_bits > 128


def from_half_bits(f: Function, x: Value) -> Value:
    """float16 as float32: the exponent moved up, denormals through an exact product."""
    lanes = lanes_of(x.type)
    single = vector(lanes, "float")
    if has_half(f):
        return f.cast("fpext", f.cast("bitcast", x, vector(lanes, "half")), single)
    wide = f.cast("zext", x, vector(lanes, "i32"))
    sign = f.binary("shl", f.binary("and", wide, 0x8000), 16)
    rest = f.binary("and", wide, 0x7FFF)
    moved = f.binary("add", f.binary("shl", rest, 13), 112 << 23)
    special = f.binary("add", moved, 112 << 23)
    moved = f.select(f.compare("uge", rest, 0x7C00), special, moved)
    small = f.binary("fmul", f.cast("sitofp", rest, single), constant(2.0**-24, single))
    bits = f.select(f.compare("ult", rest, 0x400), f.cast("bitcast", small, moved.type), moved)
    return f.cast("bitcast", f.binary("or", bits, sign), single)


def half_bits(f: Function, x: Value) -> Value:
    """float32 rounded to the nearest float16, ties to even."""
    lanes = lanes_of(x.type)
    narrow = vector(lanes, "i16")
    if has_half(f):
        return f.cast("bitcast", f.cast("fptrunc", x, vector(lanes, "half")), narrow)
    bits = f.cast("bitcast", x, vector(lanes, "i32"))
    sign = f.binary("and", f.binary("lshr", bits, 16), 0x8000)
    size = f.binary("and", bits, 0x7FFFFFFF)
    odd = f.binary("and", f.binary("lshr", size, 13), 1)
    up = f.binary("add", size, f.binary("add", odd, 0xFFF - (112 << 23)))
    normal = f.binary("lshr", up, 13)
    lifted = f.binary("fadd", f.cast("bitcast", size, x.type), constant(0.5, x.type))
    small = f.binary("sub", f.cast("bitcast", lifted, size.type), 0x3F000000)
    result = f.select(f.compare("ult", size, 0x38800000), small, normal)
    result = f.select(f.compare("uge", size, 0x477FF000), constant(0x7C00, result.type), result)
    result = f.select(f.compare("ugt", size, 0x7F800000), constant(0x7E00, result.type), result)
    return f.cast("trunc", f.binary("or", result, sign), narrow)


def narrowed(f: Function, x: Value, d: dtypes.dtype) -> Value:
    """A result computed in float32 rounded to the 16-bit type it stands for."""
    return to_register(f, to_memory(f, x, d), d) if d.is_narrow_float else x


def converted(f: Function, x: Value, source: dtypes.dtype, target: dtypes.dtype) -> Value:
    """A cast between register forms."""
    lanes = lanes_of(x.type)
    wanted = vector(lanes, register_type(target))
    if target.category == dtypes.BOOL:
        return f.compare("une" if is_float(source) else "ne", x, 0)
    if is_float(source) and is_float(target):
        return float_to_float(f, x, target, wanted)
    if is_float(source):
        return float_to_integer(f, x, target, wanted)
    if is_float(target):
        return narrowed(f, integer_to_float(f, x, source, wanted), target)
    return integer_to_integer(f, x, source, wanted)


def float_to_float(f: Function, x: Value, target: dtypes.dtype, wanted: str) -> Value:
    have, want = size_of(element_of(x.type)), size_of(element_of(wanted))
    if have != want:
        x = f.cast("fpext" if have < want else "fptrunc", x, wanted)
    return narrowed(f, x, target)


def float_to_integer(f: Function, x: Value, target: dtypes.dtype, wanted: str) -> Value:
    """Toward zero; narrow targets go through int32 and wrap, as C does on this hardware."""
    lanes = lanes_of(x.type)
    if target.name == "uint64":
        return float_to_uint64(f, x, wanted)
    through = "i32" if target.itemsize < 4 or target.name == "int32" else "i64"
    whole = f.cast("fptosi", x, vector(lanes, through))
    return whole if whole.type == wanted else f.cast("trunc", whole, wanted)


def float_to_uint64(f: Function, x: Value, wanted: str) -> Value:
    """Negative numbers wrap as through int64; from 2**63 up the top bit is put back."""
    limit = constant(2.0**63, x.type)
    large = f.compare("oge", x, limit)
    small = f.select(large, f.binary("fsub", x, limit), x)
    low = f.cast("fptosi", small, wanted)
    return f.select(large, f.binary("xor", low, constant(-(2**63), wanted)), low)


def integer_to_float(f: Function, x: Value, source: dtypes.dtype, wanted: str) -> Value:
    return f.cast("sitofp" if is_signed(source) else "uitofp", x, wanted)


def integer_to_integer(f: Function, x: Value, source: dtypes.dtype, wanted: str) -> Value:
    have, want = element_of(x.type), element_of(wanted)
    if have == want:
        return x
    if have != "i1" and size_of(have) > size_of(want):
        return f.cast("trunc", x, wanted)
    return f.cast("sext" if is_signed(source) else "zext", x, wanted)


__all__ = ["converted", "memory_type", "narrowed", "to_memory", "to_register"]
