"""Addresses, loads, stores and checked indices.

An address is a base plus terms; those of outer loops are added first, so that they are shared and
leave the inner loop one scaled index. Along the vector loop an access is contiguous, uniform, or a
gather.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flambeau.codegen.nest.convert import to_memory, to_register
from flambeau.codegen.nest.operations import OPERATIONS
from flambeau.codegen.nest.types import memory_type
from flambeau.codegen.target import Target
from flambeau.codegen.text import (
    Function,
    Operand,
    Value,
    constant,
    constants,
    lanes_of,
    mangled,
    size_of,
    vector,
    zero,
)
from flambeau.loops.affine import affine
from flambeau.loops.expr import Expr
from flambeau.loops.nest import Buf
from flambeau.schedule.rows import LANES, ROW


@dataclass(frozen=True, slots=True)
class Access:
    """One element of a buffer."""

    buf: Buf
    offset: Expr


class Accesses:
    """The part of the emitter that touches memory."""

    f: Function
    target: Target
    buffers: dict[str, Value]
    status: Value | None
    order: list[Expr]
    index: dict[Expr, Operand]
    vector: Expr | None
    lanes: int
    mask: Value | None
    tiles: dict[Expr, Value]
    tile_row: Operand

    if TYPE_CHECKING:

        def value(self, e: Expr) -> Value: ...

        def widened(self, x: Value) -> Value: ...

    # addresses

    def address_needs(self, offset: Expr) -> list[Expr]:
        """What an address computes beside loop counters."""
        sums = affine(offset)
        needs = [a for a in sums.terms if a.kind != "iter"]
        factors = [*sums.terms.values(), sums.constant]
        return needs + [k for k in factors if isinstance(k, Expr)]

    def base(self, buf: Buf) -> Value:
        found = self.buffers.get(buf.name)
        if found is None:
            assert buf.name.startswith(ROW), f"{buf} was not given"
            found = self.buffers[buf.name] = self.f.alloca(memory_type(buf.dtype), buf.shape[0])
        return found

    def lane_row(self, access: Access) -> Value:
        """The address of a whole vector in a row that holds one for every position."""
        f, kind = self.f, memory_type(access.buf.dtype)
        key = f"{access.buf.name}.{self.lanes}"
        base = self.buffers.get(key)
        if base is None:
            base = self.buffers[key] = f.alloca(kind, access.buf.shape[0] * self.lanes)
        (row,) = affine(access.offset).terms
        return f.gep(base, f.mul(self.position(row), self.lanes), kind)

    def level(self, term: Expr) -> int:
        """The position of the innermost open loop that a term depends on."""
        return max((self.order.index(i) for i in term.free), default=-1)

    def pointer(self, access: Access, within: frozenset | None = None) -> Value:
        """The address of lane 0, or its part that depends on the loops in `within` only."""
        f, sums, element = self.f, affine(access.offset), memory_type(access.buf.dtype)
        at = self.base(access.buf)
        terms = [
            a for a in sums.terms if (within is None or a.free <= within) and not self.varies(a)
        ]
        if within is not None:
            terms = [a for a in terms if a.kind == "iter"]
        constant_part: Operand = 0
        if within is None or not sums.terms:
            constant_part = self.number(sums.constant)
        for a in sorted(terms, key=self.level):
            at = f.gep(at, f.mul(self.position(a), self.number(sums.terms[a])), element)
        return f.gep(at, constant_part, element)

    def varies(self, a: Expr) -> bool:
        """Does an atom that is not a loop counter differ between lanes?"""
        return a.kind != "iter" and self.lanes > 1 and self.vector in a.free

    def position(self, a: Expr) -> Operand:
        return self.index[a] if a.kind == "iter" else self.value(a)

    def number(self, k: int | Expr) -> Operand:
        return k if isinstance(k, int) else self.value(k)

    def stride(self, access: Access) -> Operand | None:
        """Elements from one lane to the next; None when lanes lie anywhere."""
        if self.lanes == 1 or self.vector not in access.offset.free:
            return 0
        sums = affine(access.offset)
        if any(self.varies(a) for a in sums.terms):
            return None
        return self.number(sums.coefficient(self.vector))

    def lane_offsets(self, access: Access, stride: Operand | None) -> Value:
        """Elements from the pointer to each lane's element."""
        f, lanes = self.f, self.lanes
        if isinstance(stride, int):
            return constants([stride * k for k in range(lanes)], "i64")
        if stride is not None:
            return f.binary("mul", f.splat(stride, lanes), constants(range(lanes), "i64"))
        sums = affine(access.offset)
        own = self.lane_offsets(access, self.number(sums.coefficient(self.vector)))
        total = own
        for a, k in sums.terms.items():
            if self.varies(a):
                factor = self.number(k)
                wide = (
                    constant(factor, own.type)
                    if isinstance(factor, int)
                    else f.splat(factor, lanes)
                )
                total = f.binary("add", total, f.binary("mul", self.value(a), wide))
        return total

    # transposed blocks

    def stage(self, node: Expr, side: int, rows: int, count: Operand) -> None:
        """Read a block along the rows of memory and keep it transposed, a square at a time."""
        f, kind = self.f, memory_type(node.dtype)
        start = self.pointer(Access(node.attr, node.args[0]))
        tile = self.tiles[node] = f.alloca(kind, rows * side)
        with f.loop(0, rows if isinstance(count, int) else count, side) as square:
            mask = None if isinstance(count, int) else f.lane_mask(f.sub(count, square.index), side)
            lines = self.square(node, f.gep(start, square.index, kind), side, mask)
            for k, column in enumerate(transposed(f, lines)):
                f.store(column, f.gep(tile, f.mul(f.add(square.index, k), side), kind))

    def square(self, node: Expr, start: Value, side: int, mask: Value | None) -> list[Value]:
        """One line of memory for each lane; lanes beyond the end repeat the last line."""
        f, kind = self.f, memory_type(node.dtype)
        stride = self.stride(Access(node.attr, node.args[0]))
        assert stride is not None and self.vector is not None
        last = f.sub(f.sub(self.extent_of_vector(), self.index[self.vector]), 1)
        type = vector(side, kind)
        lines = []
        for lane in range(side):
            at = lane if self.mask is None else f.minimum(lane, last)
            place = f.gep(start, f.mul(at, stride), kind)
            lines.append(f.load(type, place) if mask is None else f.load_masked(type, place, mask))
        return lines

    def extent_of_vector(self) -> Operand:
        n = self.vector.attr[1]
        return n if isinstance(n, int) else self.value(n)

    # loads and stores

    def load(self, node: Expr) -> Value:
        access = Access(node.attr, node.args[-1])
        kind = memory_type(node.dtype)
        if node.attr.name.startswith(LANES):
            return to_register(
                self.f, self.f.load(vector(self.lanes, kind), self.lane_row(access)), node.dtype
            )
        if node in self.tiles:
            row = self.f.gep(self.tiles[node], self.f.mul(self.tile_row, self.lanes), kind)
            return to_register(self.f, self.f.load(vector(self.lanes, kind), row), node.dtype)
        condition = self.value(node.args[0]) if node.kind == "at_where" else None
        stride = self.stride(access)
        if (
            isinstance(stride, int)
            and stride == 0
            and (condition is None or lanes_of(condition.type) == 1)
        ):
            raw = self.uniform_load(kind, self.pointer(access), condition)
        else:
            raw = self.lane_load(access, kind, stride, condition)
        x = to_register(self.f, raw, node.dtype)
        if condition is None:
            return x
        other = self.value(node.args[1])
        if lanes_of(x.type) == 1 and lanes_of(other.type) == 1:
            return self.f.select(condition, x, other)
        lanes = max(lanes_of(x.type), lanes_of(other.type))
        spread = [
            self.f.splat(v, lanes)
            if lanes_of(v.type) == 1 and v[0] == "%"
            else v
            if lanes_of(v.type) == lanes
            else Value(f"splat ({v.type} {v})", vector(lanes, v.type))
            for v in (condition, x, other)
        ]
        return self.f.select(*spread)

    def uniform_load(self, kind: str, at: Value, condition: Value | None) -> Value:
        f = self.f
        if condition is None:
            return f.fresh(kind, f"load {kind}, ptr {at}, align {size_of(kind)}")
        spare = f.alloca(kind)
        f.store(zero(kind) if kind != "ptr" else zero("ptr"), spare)
        return f.load(kind, f.select(condition, at, spare))

    def lane_load(
        self, access: Access, kind: str, stride: Operand | None, condition: Value | None
    ) -> Value:
        f, type = self.f, vector(self.lanes, kind)
        mask = self.lane_condition(condition)
        if isinstance(stride, int) and stride == 1:
            at = self.pointer(access)
            return f.load(type, at) if mask is None else f.load_masked(type, at, mask)
        if isinstance(stride, int) and stride == -1:
            at = self.last_lane(access)
            mask = None if mask is None else self.turned(mask)
            return self.turned(f.load(type, at) if mask is None else f.load_masked(type, at, mask))
        return self.gather(access, type, stride, mask)

    def last_lane(self, access: Access) -> Value:
        """Where the last lane of a run that goes down lies: lowest in memory."""
        kind = memory_type(access.buf.dtype)
        at = self.pointer(access)  # lanes that are off may lie before the buffer: not `inbounds`
        return self.f.value("ptr", f"getelementptr {kind}, ptr {at}, i64 {1 - self.lanes}")

    def turned(self, x: Value) -> Value:
        """The lanes in the opposite order."""
        return self.f.shuffle(x, x, list(range(self.lanes))[::-1])

    def lane_condition(self, condition: Value | None) -> Value | None:
        """The loop's mask and a condition together."""
        if condition is None:
            return self.mask
        wide = self.widened(condition)
        return wide if self.mask is None else self.f.binary("and", wide, self.mask)

    def gather(
        self, access: Access, type: str, stride: Operand | None, mask: Value | None
    ) -> Value:
        f, kind = self.f, memory_type(access.buf.dtype)
        places = self.places(access, kind, stride)
        on = mask or constant(True, vector(self.lanes, "i1"))
        name = f"llvm.masked.gather.{mangled(type)}.v{self.lanes}p0"
        f.module.declare(name, type, (places.type, "i32", on.type, type))
        return f.fresh(
            type,
            f"call {type} @{name}({places.type} {places}, i32 {size_of(kind)}, "
            f"{on.type} {on}, {type} {zero(type)})",
        )

    def places(self, access: Access, kind: str, stride: Operand | None) -> Value:
        offsets = self.lane_offsets(access, stride)
        at = self.pointer(access)
        return self.f.value(
            vector(self.lanes, "ptr"), f"getelementptr {kind}, ptr {at}, {offsets.type} {offsets}"
        )

    def store(self, access: Access, x: Value, combine: str | None, iters: tuple) -> None:
        """Write (or fold in) a value for every lane that is on."""
        d = access.buf.dtype
        if access.buf.name.startswith(LANES):
            self.f.store(to_memory(self.f, self.widened(x), d), self.lane_row(access))
            return
        stride = self.stride(access)
        alone = self.vector not in iters or self.lanes == 1
        if combine is not None:
            self.fold_into(access, x, combine, stride, alone)
        elif alone:
            self.f.store(to_memory(self.f, x, d), self.pointer(access))
        else:
            self.lane_store(access, to_memory(self.f, self.widened(x), d), stride)

    def lane_store(self, access: Access, x: Value, stride: Operand | None) -> None:
        f, kind = self.f, memory_type(access.buf.dtype)
        if isinstance(stride, int) and stride == 1:
            at = self.pointer(access)
            return f.store(x, at) if self.mask is None else f.store_masked(x, at, self.mask)
        if isinstance(stride, int) and stride == -1:
            at, x = self.last_lane(access), self.turned(x)
            mask = None if self.mask is None else self.turned(self.mask)
            return f.store(x, at) if mask is None else f.store_masked(x, at, mask)
        places = self.places(access, kind, stride)
        on = self.mask or constant(True, vector(self.lanes, "i1"))
        name = f"llvm.masked.scatter.{mangled(x.type)}.v{self.lanes}p0"
        f.module.declare(name, "void", (x.type, places.type, "i32", on.type))
        f.effect(
            f"call void @{name}({x.type} {x}, {places.type} {places}, i32 {size_of(kind)}, "
            f"{on.type} {on})"
        )

    def fold_into(
        self, access: Access, x: Value, combine: str, stride: Operand | None, alone: bool
    ) -> None:
        """Read, fold, write back. Lanes that may meet at one element go one after the other."""
        f, d = self.f, access.buf.dtype
        kind = memory_type(d)
        if alone or (isinstance(stride, int) and stride == 1):
            at = self.pointer(access)
            wide = x if alone else self.widened(x)
            type = vector(lanes_of(wide.type), kind)
            mask = None if alone else self.mask
            old = f.load(type, at) if mask is None else f.load_masked(type, at, mask)
            new = OPERATIONS[combine](f, d, [to_register(f, old, d), wide])
            raw = to_memory(f, new, d)
            return f.store(raw, at) if mask is None else f.store_masked(raw, at, mask)
        places, wide = self.places(access, kind, stride), self.widened(x)
        for lane in range(self.lanes):
            self.fold_lane(f.extract(places, lane), f.extract(wide, lane), lane, combine, d)

    def fold_lane(self, at: Value, x: Value, lane: int, combine: str, d) -> None:
        f, kind = self.f, memory_type(d)

        def go() -> None:
            old = to_register(f, f.load(kind, at), d)
            f.store(to_memory(f, OPERATIONS[combine](f, d, [old, x]), d), at)

        if self.mask is None:
            return go()
        with f.when(f.extract(self.mask, lane)):
            go()

    # checked indices

    def checked(self, node: Expr) -> Value:
        """The index where it is in range; elsewhere 0, and the kernel's status tells."""
        f = self.f
        at, n = self.value(node.args[0]), self.value(node.args[1])
        lanes = max(lanes_of(at.type), lanes_of(n.type))
        at, n = (v if lanes_of(v.type) == lanes else self.widened(v) for v in (at, n))
        place = at
        if node.attr[1]:
            place = f.select(f.compare("slt", at, 0), f.binary("add", at, n), at)
        bad = f.compare("uge", place, n)
        if lanes > 1 and self.mask is not None:
            bad = f.binary("and", bad, self.mask)
        self.report(bad, at, n, lanes, self.sites.index(node.attr[0]))
        return f.select(bad, constant(0, place.type), place)

    def report(self, bad: Value, at: Value, n: Value, lanes: int, site: int) -> None:
        """Note the first bad index that this thread meets."""
        f = self.f
        assert self.status is not None
        some = bad
        if lanes > 1:
            some = f.pure_call(f"llvm.vector.reduce.or.{mangled(bad.type)}", "i1", bad)
        with f.when(some):
            worst, size = at, f.extract(n, 0)
            if lanes > 1:
                hidden = f.select(bad, at, constant(-(1 << 63), at.type))
                top = f.pure_call(f"llvm.vector.reduce.smax.{mangled(at.type)}", "i64", hidden)
                worst = top
            f.store(worst, f.gep(self.status, 1, "i64"))
            f.store(size, f.gep(self.status, 2, "i64"))
            f.store(constant(site, "i64"), f.gep(self.status, 3, "i64"))
            f.store(constant(1, "i64"), self.status)


def transposed(f: Function, rows: list[Value]) -> list[Value]:
    """The columns of a square of vectors: blocks of 1, 2, 4 ... lanes change places."""
    side = len(rows)
    step = 1
    while step < side:
        new = list(rows)
        for k in range(side):
            if not k & step:
                a, b = rows[k], rows[k + step]
                low = [lane if not lane & step else side + lane - step for lane in range(side)]
                high = [lane + step if not lane & step else side + lane for lane in range(side)]
                new[k], new[k + step] = f.shuffle(a, b, low), f.shuffle(a, b, high)
        rows, step = new, step * 2
    return rows
