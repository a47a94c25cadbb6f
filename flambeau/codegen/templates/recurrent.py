"""Recurrent sequences, forward: all steps of one direction of a layer in one kernel.

The hidden state's weights are packed once into panels that hold, for a few elements of the state,
the columns of all gates: a register tile has all that the cell needs for these elements, so the
gates of the hidden state never go to memory. A chunk of the thread pool takes some rows of the
batch through all steps, as rows know nothing of each other: threads never wait within a sequence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from flambeau.codegen import maths
from flambeau.codegen.target import Target
from flambeau.codegen.templates import microkernel
from flambeau.codegen.templates.entry import Kernel, slot
from flambeau.codegen.templates.gemm_plan import ELEMENTS, GFLOPS_GUESS
from flambeau.codegen.templates.microkernel import Strides
from flambeau.codegen.templates.recurrent_spec import RecurrentSpec
from flambeau.codegen.text import Function, Module, Operand, Value, size_of, vector, zero
from flambeau.runtime import pool

CHUNK = [("ptr", "slots"), ("i64", "i"), ("i64", "thread")]
SERIAL_NANOSECONDS = 40_000  # below, rows are not spread over threads
CELL_NANOSECONDS = 2.0  # of a gate's nonlinearity and what surrounds it, an element


@dataclass(slots=True)
class Recurrent:
    """What forward and backward share: geometry, panels, rows over threads."""

    module: Module
    name: str
    spec: RecurrentSpec
    target: Target
    element: str = field(init=False)
    type: str = field(init=False)
    lanes: int = field(init=False)

    def __post_init__(self) -> None:
        self.element = ELEMENTS[self.spec.dtype]
        self.lanes = self.target.lanes(self.element)
        self.type = vector(self.lanes, self.element)

    # what the two passes decide

    @property
    def pointers(self) -> tuple[str, ...]:
        raise NotImplementedError

    @property
    def vectors(self) -> int:
        """Vectors of a row of a tile."""
        raise NotImplementedError

    @property
    def depth(self) -> int:
        """Steps of a product's sum."""
        raise NotImplementedError

    @property
    def panel_elements(self) -> int:
        """Elements of the state that a panel is for."""
        raise NotImplementedError

    @property
    def own_bytes(self) -> int:
        """Working memory of a thread."""
        return 0

    def pack(self, f: Function, panel: Operand, target: Value, columns: int) -> None:
        """Copy one panel that is for `columns` elements of the state."""
        raise NotImplementedError

    def sequence(self, f: Function, low: Operand, high: Operand) -> None:
        """All steps of the tiles low..high of rows."""
        raise NotImplementedError

    # geometry

    @property
    def bytes(self) -> int:
        return size_of(self.element)

    @property
    def row(self) -> int:
        return self.spec.size

    @property
    def step(self) -> int:
        """Elements of the states of one step."""
        return self.spec.batch * self.spec.size

    @property
    def width(self) -> int:
        return self.vectors * self.lanes

    @property
    def panels(self) -> int:
        return math.ceil(self.spec.size / self.panel_elements)

    @property
    def last_elements(self) -> int:
        return self.spec.size - (self.panels - 1) * self.panel_elements

    @property
    def panel_room(self) -> int:
        line = 64 // self.bytes
        return -(-(self.depth * self.width + self.lanes) // line) * line

    @property
    def most_rows(self) -> int:
        """Accumulators, vectors of a panel and one broadcast must fit into the registers."""
        return max(1, (self.target.vector_registers - self.vectors - 1) // self.vectors)

    @property
    def nanoseconds(self) -> int:
        spec = self.spec
        cells = spec.steps * spec.batch * spec.size * spec.groups
        return int(spec.flops / GFLOPS_GUESS + cells * CELL_NANOSECONDS / self.lanes)

    @property
    def tiles(self) -> list[int]:
        """Rows of each tile, evenly over the threads."""
        batch, count = self.spec.batch, math.ceil(self.spec.batch / self.most_rows)
        threads = pool.get_num_threads()
        if self.nanoseconds > SERIAL_NANOSECONDS and batch >= 2 * threads:
            count = min(batch, -(-count // threads) * threads)
        return microkernel.even_parts(batch, math.ceil(batch / count))

    @property
    def chunks(self) -> int:
        serial = self.nanoseconds <= SERIAL_NANOSECONDS
        return 1 if serial else min(len(self.tiles), pool.get_num_threads())

    # the kernel

    def emit(self) -> Kernel:
        f = self.module.function(self.name, [("ptr", "slots")])
        work = self.spec.groups * self.spec.size**2
        f.parallel_for(self.packer(), f.arguments[0], self.panels, work // 2)
        f.parallel_for(self.chunk(), f.arguments[0], self.chunks, self.nanoseconds)
        f.ret()
        count = len(self.pointers)
        room = self.panels * self.panel_room * self.bytes
        return Kernel(self.name, count, count + 1, room, self.own_bytes, self.nanoseconds)

    def pointer(self, f: Function, name: str) -> Value:
        return slot(f, f.arguments[0], self.pointers.index(name))

    def memory(self, f: Function) -> Value:
        return slot(f, f.arguments[0], len(self.pointers))

    def at(self, f: Function, pointer: Value, *places: Operand) -> Value:
        total: Operand = 0
        for place in places:
            total = f.add(total, place)
        return f.gep(pointer, total, self.element)

    def packer(self) -> str:
        name = f"{self.name}_pack"
        f = self.module.function(name, CHUNK)
        panel = f.arguments[1]
        target = self.at(f, self.memory(f), f.mul(panel, self.panel_room))
        last = f.compare("eq", panel, self.panels - 1)
        with f.either(last) as branch:
            self.pack(f, panel, target, self.last_elements)
            branch.otherwise()
            if self.panels > 1:
                self.pack(f, panel, target, self.panel_elements)
        f.ret()
        return name

    def chunk(self) -> str:
        name = f"{self.name}_rows"
        f = self.module.function(name, CHUNK)
        count, i = len(self.tiles), f.arguments[1]
        low = f.udiv(f.mul(i, count), self.chunks)
        high = f.udiv(f.mul(f.add(i, 1), count), self.chunks)
        self.sequence(f, low, high)
        f.ret()
        return name

    def first_row(self, f: Function, tile: Operand) -> Operand:
        """Where a tile begins; larger ones come first."""
        larger = self.tiles.count(self.tiles[0])
        if larger == len(self.tiles):
            return f.mul(tile, self.tiles[0])
        return f.add(f.mul(tile, self.tiles[-1]), f.minimum(tile, larger))

    def each_tile(self, f: Function, low: Operand, high: Operand,
                  body: Callable[[Operand, int], None]) -> None:
        """body(first row, rows) for the tiles low..high."""
        at, done = 0, 0
        for rows in dict.fromkeys(self.tiles):
            count = self.tiles.count(rows)
            start = f.maximum(f.sub(low, at), 0)
            stop = f.minimum(f.sub(high, at), count)
            with f.loop(start, stop) as loop:
                body(f.add(f.mul(loop.index, rows), done), rows)
            at, done = at + count, done + count * rows

    def each_panel(self, f: Function, body: Callable[[Value, Operand, int], None]) -> None:
        """body(panel's memory, first element, elements)."""
        memory, whole = self.memory(f), self.panels - (self.last_elements < self.panel_elements)
        if whole:
            with f.loop(0, whole) as loop:
                at = self.at(f, memory, f.mul(loop.index, self.panel_room))
                body(at, f.mul(loop.index, self.panel_elements), self.panel_elements)
        if whole < self.panels:
            at = self.at(f, memory, whole * self.panel_room)
            body(at, whole * self.panel_elements, self.last_elements)

    def product(self, rows: int) -> str:
        """``product(a, panel, tile)``: rows of a times a panel."""
        name = f"{self.name}_product{rows}"
        if name not in self.module:
            parameters = [("ptr noalias readonly", "a"), ("ptr noalias readonly", "panel")]
            f = self.module.function(name, [*parameters, ("ptr noalias", "tile")])
            a, panel, tile = f.arguments
            strides = Strides(self.depth, 1, self.width)
            sums = microkernel.outer_product(
                f, a, panel, self.depth, rows, self.vectors, self.type, strides)
            for r, line in enumerate(sums):
                for v, x in enumerate(line):
                    f.store(x, self.at(f, tile, (r * self.vectors + v) * self.lanes))
            f.ret()
        return name

    def tile_memory(self, f: Function) -> Value:
        return f.alloca(self.element, max(self.tiles) * self.width)

    def copy_rows(self, f: Function, target: Value, source: Value | None, low: Operand,
                  high: Operand) -> None:
        """Rows of the state; zeros without a source."""
        first, last = self.first_row(f, low), self.first_row(f, high)
        start = f.mul(first, self.row)
        nbytes = f.mul(f.sub(last, first), self.row * self.bytes)
        if source is None:
            f.clear(self.at(f, target, start), nbytes)
        else:
            f.copy(self.at(f, target, start), self.at(f, source, start), nbytes)

    def step_of(self, f: Function, k: Operand) -> Operand:
        """The k-th step that the layer visits."""
        return f.sub(self.spec.steps - 1, k) if self.spec.reverse else k

    def step_before(self, f: Function, t: Operand) -> Operand:
        return f.add(t, 1) if self.spec.reverse else f.sub(t, 1)

    def load(self, f: Function, pointer: Value, count: int) -> Value:
        return f.load_lanes(self.type, pointer, count)


@dataclass(slots=True)
class RecurrentForward(Recurrent):
    """``f(gates, h, [c], w, [b], out, last_h, [last_c], [kept])``."""

    @property
    def pointers(self) -> tuple[str, ...]:
        return self.spec.forward_pointers

    @property
    def is_gated(self) -> bool:
        return self.spec.groups > 1

    @property
    def vectors(self) -> int:
        return self.spec.groups if self.is_gated else 2

    @property
    def depth(self) -> int:
        return self.spec.size

    @property
    def panel_elements(self) -> int:
        return self.lanes if self.is_gated else self.width

    def lanes_used(self, vector: int, elements: int) -> int:
        """Of a vector of a tile whose panel is for `elements` elements."""
        used = elements if self.is_gated else elements - vector * self.lanes
        return max(0, min(self.lanes, used))

    def offset(self, vector: int) -> int:
        """Columns from a panel's first column to those of one of its vectors."""
        return vector * (self.spec.size if self.is_gated else self.lanes)

    def pack(self, f: Function, panel: Operand, target: Value, columns: int) -> None:
        """Blocks of w, whose rows are columns of the product, transposed."""
        size, w = self.spec.size, self.pointer(f, "w")
        first = f.mul(panel, self.panel_elements)

        def block(k: Operand, count: int) -> None:
            for v in range(self.vectors):
                used = self.lanes_used(v, columns)
                rows = []
                for i in range(self.lanes):
                    row = f.add(first, self.offset(v) + i)
                    at = self.at(f, w, f.mul(row, size), k)
                    rows.append(self.load(f, at, count) if i < used else zero(self.type))
                turned = microkernel.transposed(f, rows) if self.lanes > 1 else rows
                for i in range(count):
                    place = f.mul(f.add(k, i), self.width)
                    f.store(turned[i], self.at(f, target, place, v * self.lanes))

        whole = size // self.lanes * self.lanes
        if whole:
            with f.loop(0, whole, self.lanes) as loop:
                block(loop.index, self.lanes)
        if whole < size:
            block(whole, size - whole)

    def sequence(self, f: Function, low: Operand, high: Operand) -> None:
        spec = self.spec
        names = ("gates", "h", "out", "last_h")
        gates, start, out, last = (self.pointer(f, name) for name in names)
        bias = self.pointer(f, "b") if spec.bias else Value("null", "ptr")
        c = kept = Value("null", "ptr")
        if spec.cell == "lstm":
            c = self.pointer(f, "last_c")
            self.copy_rows(f, c, self.pointer(f, "c"), low, high)
        if "kept" in self.pointers:
            kept = self.pointer(f, "kept")
        tile = self.tile_memory(f)
        with f.loop(0, spec.steps) as time:
            t = self.step_of(f, time.index)
            before = self.at(f, out, f.mul(self.step_before(f, t), self.step))
            h = f.select(f.compare("eq", time.index, 0), start, before)

            def panel(memory: Value, j: Operand, elements: int) -> None:
                def rows(first: Operand, count: int) -> None:
                    row, place = f.mul(first, self.row), f.add(f.mul(t, spec.batch), first)
                    own = self.at(f, h, row)
                    f.call(self.product(count), "void", own, memory, tile)
                    f.call(
                        self.cell(elements), "void", tile, count,
                        self.at(f, gates, f.mul(place, spec.groups * spec.size), j),
                        self.at(f, bias, j), self.at(f, own, j), self.at(f, c, row, j),
                        self.at(f, out, f.mul(place, self.row), j),
                        self.at(f, kept, f.mul(place, spec.kept * spec.size), j))

                self.each_tile(f, low, high, rows)

            self.each_panel(f, panel)
        end = self.at(f, out, f.mul(self.step_of(f, spec.steps - 1), self.step))
        self.copy_rows(f, last, end, low, high)

    def cell(self, elements: int) -> str:
        """``cell(tile, rows, gates, bias, h, c, out, kept)``: new states of a tile."""
        name = f"{self.name}_cell{elements}"
        if name in self.module:
            return name
        parameters = [("ptr noalias readonly", "tile"), ("i64", "rows")]
        parameters += [("ptr noalias readonly", "gates"), ("ptr noalias readonly", "bias")]
        parameters += [("ptr readonly", "h"), ("ptr noalias", "c"), ("ptr", "out")]
        f = self.module.function(name, [*parameters, ("ptr noalias", "kept")])
        tile, rows, gates, bias, h, c, out, kept = f.arguments
        size = self.spec.size
        with f.loop(0, rows) as loop:
            r = loop.index
            state = f.mul(r, size)
            hidden, given = [], []
            for v in range(self.vectors):
                used = self.lanes_used(v, elements)
                x = f.load(self.type, self.at(f, tile, f.mul(r, self.width), v * self.lanes))
                if self.spec.bias and used:
                    x = f.fadd(x, self.load(f, self.at(f, bias, self.offset(v)), used))
                hidden.append(x)
                at = self.at(f, gates, f.mul(r, self.spec.groups * size), self.offset(v))
                given.append(self.load(f, at, used) if used else x)
            if not self.is_gated:
                for v in range(self.vectors):
                    if used := self.lanes_used(v, elements):
                        y = self.activated(f, f.fadd(hidden[v], given[v]))
                        f.store_lanes(y, self.at(f, out, state, self.offset(v)), used)
            elif self.spec.cell == "lstm":
                self.lstm(f, hidden, given, elements, self.at(f, c, state),
                          self.at(f, out, state), self.at(f, kept, f.mul(r, 5 * size)))
            else:
                self.gru(f, hidden, given, elements, self.at(f, h, state),
                         self.at(f, out, state), self.at(f, kept, f.mul(r, 4 * size)))
        f.ret()
        return name

    def activated(self, f: Function, x: Value) -> Value:
        if self.spec.cell == "tanh":
            return maths.tanh(f, x)
        return f.select(f.compare("olt", x, zero(x.type)), zero(x.type), x)  # NaN stays

    def keep(self, f: Function, kept: Value, values: list[Value], n: int) -> None:
        if "kept" in self.pointers:
            for k, x in enumerate(values):
                f.store_lanes(x, self.at(f, kept, k * self.spec.size), n)

    def lstm(self, f: Function, hidden: list[Value], given: list[Value], n: int, c: Value,
             out: Value, kept: Value) -> None:
        i, g_f, g, o = (f.fadd(x, y) for x, y in zip(hidden, given, strict=True))
        i, g_f, o = (maths.sigmoid(f, x) for x in (i, g_f, o))
        g = maths.tanh(f, g)
        new = f.fadd(f.fmul(g_f, self.load(f, c, n)), f.fmul(i, g))
        f.store_lanes(new, c, n)
        f.store_lanes(f.fmul(o, maths.tanh(f, new)), out, n)
        self.keep(f, kept, [i, g_f, g, o, new], n)

    def gru(self, f: Function, hidden: list[Value], given: list[Value], n: int, h: Value,
            out: Value, kept: Value) -> None:
        r, z = (maths.sigmoid(f, f.fadd(given[k], hidden[k])) for k in range(2))
        new = maths.tanh(f, f.fadd(given[2], f.fmul(r, hidden[2])))
        state = f.fadd(new, f.fmul(z, f.fsub(self.load(f, h, n), new)))
        f.store_lanes(state, out, n)
        self.keep(f, kept, [r, z, new, hidden[2]], n)
