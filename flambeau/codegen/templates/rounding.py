"""float32 to bfloat16, to nearest and even, on CPUs with and without an instruction for it."""

from __future__ import annotations

from flambeau.codegen.target import Target
from flambeau.codegen.text import Function, Value, lanes_of, vector


def to_bfloat(f: Function, x: Value, target: Target) -> Value:
    """The nearest bfloat16 of each lane; NaN stays NaN."""
    lanes = lanes_of(x.type)
    result = vector(lanes, "bfloat")
    if target.bfloat16_dot and lanes == target.lanes():
        return f.cast("fptrunc", x, result)
    bits = f.cast("bitcast", x, vector(lanes, "i32"))
    odd = f.binary("and", f.binary("lshr", bits, 16), 1)
    rounded = f.binary("add", f.binary("add", bits, 0x7FFF), odd)
    quiet = f.binary("or", bits, 0x400000)
    bits = f.select(f.compare("uno", x, x), quiet, rounded)
    half = f.cast("trunc", f.binary("lshr", bits, 16), vector(lanes, "i16"))
    return f.cast("bitcast", half, result)
