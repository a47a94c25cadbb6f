"""The C library's functions lane by lane, where code of our own would not pay.

Used for rare functions, and on the rare lanes that a fast path cannot take.
"""

from __future__ import annotations

from flambeau.codegen.text import Function, Value, element_of, lanes_of, mangled, vector


def scalar_call(f: Function, name: str, args: list[Value]) -> Value:
    element = args[0].type
    symbol = name + ("f" if element == "float" else "")
    f.module.declare(symbol, element, [a.type for a in args])
    passed = ", ".join(f"{a.type} {a}" for a in args)
    return f.fresh(element, f"call {element} @{symbol}({passed})")


def per_lane(f: Function, name: str, args: list[Value]) -> Value:
    """`name` of the C library on every lane, in a loop over the lanes."""
    lanes, type = lanes_of(args[0].type), args[0].type
    if lanes == 1:
        return scalar_call(f, name, args)
    element = element_of(type)
    slots = [f.alloca(type) for _ in args]
    for slot, a in zip(slots, args):
        f.store(a, slot)
    result = f.alloca(type)
    with f.loop(0, lanes) as loop:
        each = [f.load(element, f.gep(slot, loop.index, element)) for slot in slots]
        f.store(scalar_call(f, name, each), f.gep(result, loop.index, element))
    return f.load(type, result)


def instead(f: Function, rare: Value, fast: Value, name: str, args: list[Value]) -> Value:
    """`fast`, with the lanes where `rare` holds computed by the C library."""
    lanes = lanes_of(fast.type)
    some = rare
    if lanes > 1:
        some = f.pure_call(f"llvm.vector.reduce.or.{mangled(rare.type)}", "i1", rare)
    held = f.alloca(fast.type)
    f.store(fast, held)
    with f.when(some):
        f.store(f.select(rare, per_lane(f, name, args), fast), held)
    return f.load(fast.type, held)


def product_error(f: Function, a: Value, b: Value, product: Value) -> Value:
    """a * b - product, exactly."""
    return (
        f.intrinsic("llvm.fma", a.type, a, b, f.fneg(product))
        if f.module.vector_bits > 128
        else split_product_error(f, a, b, product)
    )


def split_product_error(f: Function, a: Value, b: Value, product: Value) -> Value:
    """Dekker's product, for CPUs without a fused multiply-add."""
    from flambeau.codegen.text import constant

    factor = 4097.0 if element_of(a.type) == "float" else 134217729.0

    def split(x: Value) -> tuple[Value, Value]:
        big = f.binary("fmul", x, constant(factor, x.type))
        high = f.binary("fsub", big, f.binary("fsub", big, x))
        return high, f.binary("fsub", x, high)

    (a1, a2), (b1, b2) = split(a), split(b)
    error = f.binary("fsub", f.binary("fmul", a1, b1), product)
    error = f.binary("fadd", error, f.binary("fmul", a1, b2))
    error = f.binary("fadd", error, f.binary("fmul", a2, b1))
    return f.binary("fadd", error, f.binary("fmul", a2, b2))


__all__ = ["instead", "per_lane", "product_error", "scalar_call", "vector"]
