"""Vectors whose elements lie apart in memory, and transposing copies."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau.codegen.templates.microkernel import transposed
from flambeau.codegen.templates.stored import Stored
from flambeau.codegen.text import (
    Function,
    Module,
    Operand,
    Value,
    constant,
    constants,
    element_of,
    lanes_of,
    mangled,
    size_of,
    vector,
    zero,
)

FEW_LANES = 4  # so many elements are faster one by one than gathered


def load_strided(f: Function, type: str, pointer: Value, stride: int, count: int = 0) -> Value:
    """Elements `stride` apart; the first `count` lanes are read (0: all), the others are zero."""
    lanes, element = lanes_of(type), element_of(type)
    count = count or lanes
    if stride == 1:
        return f.load_lanes(type, pointer, count)
    if lanes * size_of(element) < 32:
        return _gathered_one_by_one(f, type, pointer, stride, count)
    addresses = _addresses(f, pointer, stride, lanes, element)
    return _gather(f, type, addresses, f.lane_mask(count, lanes), zero(type))


def load_gathered(
    f: Function,
    type: str,
    pointer: Value,
    offsets: Sequence[int],
    inside: Sequence[bool],
    fill: float,
) -> Value:
    """Elements at the given offsets; lanes that are not `inside` are `fill` and read nothing."""
    lanes, element = lanes_of(type), element_of(type)
    other = constant(fill, type)
    if lanes * size_of(element) < 32 or sum(inside) <= FEW_LANES:
        x = other
        for lane, offset in enumerate(offsets):
            if inside[lane]:
                x = f.insert(x, f.load(element, f.gep(pointer, offset, element)), lane)
        return x
    steps = constants(offsets, "i64")
    kind = vector(lanes, "ptr")
    addresses = f.value(kind, f"getelementptr {element}, ptr {pointer}, {steps.type} {steps}")
    return _gather(f, type, addresses, constants(inside, "i1"), other)


def _gather(f: Function, type: str, addresses: Value, mask: Value, other: Value) -> Value:
    name = f"llvm.masked.gather.{mangled(type)}.v{lanes_of(type)}p0"
    f.module.declare(name, type, (addresses.type, "i32", mask.type, type))
    align = size_of(element_of(type))
    arguments = f"{addresses.type} {addresses}, i32 {align}, {mask.type} {mask}, {type} {other}"
    return f.fresh(type, f"call {type} @{name}({arguments})")


def _gathered_one_by_one(f: Function, type: str, pointer: Value, stride: int, count: int) -> Value:
    element = element_of(type)
    x = zero(type)
    for lane in range(count):
        x = f.insert(x, f.load(element, f.gep(pointer, lane * stride, element)), lane)
    return x


def store_strided(f: Function, x: Value, pointer: Value, stride: int, count: int = 0) -> None:
    """Store the first `count` lanes (0: all) `stride` elements apart."""
    lanes, element = lanes_of(x.type), element_of(x.type)
    count = count or lanes
    if stride == 1:
        f.store_lanes(x, pointer, count)
        return
    if lanes * size_of(element) < 64:
        for lane in range(count):
            f.store(f.extract(x, lane), f.gep(pointer, lane * stride, element))
        return
    addresses = _addresses(f, pointer, stride, lanes, element)
    name = f"llvm.masked.scatter.{mangled(x.type)}.v{lanes}p0"
    mask = f.lane_mask(count, lanes)
    f.module.declare(name, "void", (x.type, addresses.type, "i32", mask.type))
    align = size_of(element)
    arguments = f"{x.type} {x}, {addresses.type} {addresses}, i32 {align}, {mask.type} {mask}"
    f.effect(f"call void @{name}({arguments})")


def _addresses(f: Function, pointer: Value, stride: int, lanes: int, element: str) -> Value:
    steps = constants([i * stride for i in range(lanes)], "i64")
    type = vector(lanes, "ptr")
    return f.value(type, f"getelementptr {element}, ptr {pointer}, {steps.type} {steps}")


def emit_transpose(
    module: Module,
    name: str,
    columns: int,
    source_stride: int,
    target_stride: int,
    type: str,
    read: Stored | None = None,
    written: Stored | None = None,
    rows: int = 0,
) -> None:
    """``name(source, target, rows)``: element (i, j) of source becomes (j, i) of target.

    Rows are `source_stride` and `target_stride` elements apart. `columns` counts j; rows, i, are
    counted at run time, or are known to be `rows`. Exactly these elements are written. `read` and
    `written` say how source and target lie in memory where that is not as `type`.
    """
    parameters = [("ptr noalias readonly", "source"), ("ptr noalias", "target"), ("i64", "rows")]
    f = module.function(name, parameters)
    source, target, given = f.arguments
    lanes = lanes_of(type)
    total: Operand = rows or given
    whole = f.sub(total, f.urem(total, lanes))
    plain = Stored(element_of(type))
    how = (columns, source_stride, target_stride, type, read or plain, written or plain)
    with f.loop(0, whole, lanes) as loop:
        _transpose_band(f, source, target, loop.index, None, *how)
    rest = f.sub(total, whole)
    if isinstance(rest, Value):
        with f.when(f.compare("ne", rest, 0)):
            _transpose_band(f, source, target, whole, rest, *how)
    elif rest:
        _transpose_band(f, source, target, whole, rest, *how)
    f.ret()


def _transpose_band(
    f: Function,
    source: Value,
    target: Value,
    row: Operand,
    count: Operand | None,
    columns: int,
    source_stride: int,
    target_stride: int,
    type: str,
    read: Stored,
    written: Stored,
) -> None:
    """One vector of rows, or `count` of them."""
    lanes = lanes_of(type)
    source = read.gep(f, source, f.mul(row, source_stride))
    target = written.gep(f, target, row)
    whole = columns // lanes * lanes

    def block(column: Operand, wide: int) -> None:
        kernel = _transpose_block(f.module, type, read, written, count, wide)
        start = read.gep(f, source, column)
        at = written.gep(f, target, f.mul(column, target_stride))
        f.call(kernel, "void", start, at, source_stride, target_stride, count or 0)

    if whole:
        with f.loop(0, whole, lanes) as loop:
            block(loop.index, lanes)
    if columns > whole:
        block(whole, columns - whole)


def _transpose_block(
    module: Module,
    type: str,
    read: Stored,
    written: Stored,
    count: Operand | None,
    wide: int,
) -> str:
    """``block(source, target, source stride, target stride, count)``: a vector of rows, or `count`
    of them, by `wide` columns.

    All transposing copies of a module share these: LLVM takes 15 ms for one.
    """
    rows = "" if count is None else f"_{count}rows" if isinstance(count, int) else "_rows"
    name = f"transpose_{read.element}_{written.element}{rows}_{wide}"
    if name in module:
        return name
    parameters = [("ptr noalias readonly", "source"), ("ptr noalias", "target")]
    strides = [("i64", "source_stride"), ("i64", "target_stride"), ("i64", "count")]
    f = module.function(name, [*parameters, *strides])
    source, target, source_stride, target_stride, given = f.arguments
    if isinstance(count, Value):
        count = given
    lanes, loaded = lanes_of(type), []
    for i in range(lanes):
        loaded.append(_row(f, source, i, count, wide, type, read))
        source = read.gep(f, source, source_stride)
    for x in transposed(f, loaded)[:wide]:
        if isinstance(count, Value):
            written.store_masked(f, x, target, f.lane_mask(count, lanes))
        else:
            written.store(f, x, target, lanes if count is None else count)
        target = written.gep(f, target, target_stride)
    f.ret()
    return name


def _row(
    f: Function, at: Value, i: int, count: Operand | None, wide: int, type: str, read: Stored
) -> Value:
    """Row i of a block; rows from `count` on are not read."""
    lanes = lanes_of(type)
    if count is None:
        return read.load(f, type, at, wide)
    if isinstance(count, int):
        return read.load(f, type, at, wide) if i < count else zero(type)
    inside = f.splat(f.compare("sgt", count, i), lanes)
    mask = f.binary("and", inside, f.lane_mask(wide, lanes)) if wide < lanes else inside
    return read.load_masked(f, type, at, mask)


def fill(f: Function, target: Value, count: Operand, element: str) -> None:
    """Set `count` elements to zero."""
    f.clear(target, f.mul(count, size_of(element)))
