"""Recurrent sequences, backward through time: the cotangents of the gates and of the first state.

Each step has two parts. What the cell does to an element is undone row by row; then the cotangent
of the hidden state is a product of the gates' cotangents with the weights, packed once. Gradients
of the weights are one product over all steps, which is left to whoever calls.
"""

from __future__ import annotations

from dataclasses import dataclass

from flambeau.codegen import maths
from flambeau.codegen.templates import microkernel
from flambeau.codegen.templates.entry import thread_memory
from flambeau.codegen.templates.microkernel import Strides
from flambeau.codegen.templates.recurrent import Recurrent
from flambeau.codegen.text import Function, Operand, Value, constant, zero

NOWHERE = Value("null", "ptr")


@dataclass(slots=True)
class RecurrentBackward(Recurrent):
    """``f(ct.., w, [h], [c], [out], [kept], d_gates, [d_hidden], d_h, [d_c])``."""

    @property
    def pointers(self) -> tuple[str, ...]:
        return self.spec.backward_pointers

    @property
    def vectors(self) -> int:
        return 2

    @property
    def depth(self) -> int:
        return self.spec.groups * self.spec.size

    @property
    def panel_elements(self) -> int:
        return self.width

    def pack(self, f: Function, panel: Operand, target: Value, columns: int) -> None:
        w, first = self.pointer(f, "w"), f.mul(panel, self.width)
        counts = microkernel.lane_counts(columns, self.lanes)
        with f.loop(0, self.depth) as loop:
            row = self.at(f, w, f.mul(loop.index, self.spec.size), first)
            to = self.at(f, target, f.mul(loop.index, self.width))
            for v in range(self.vectors):
                x = zero(self.type)
                if v < len(counts):
                    x = self.load(f, self.at(f, row, v * self.lanes), counts[v])
                f.store(x, self.at(f, to, v * self.lanes))

    @property
    def own_row(self) -> int:
        """Elements between rows of a chunk's copy of the cotangents that a product reads: rows of
        the result may fall on the same cache lines."""
        return self.depth + 64 // self.bytes

    @property
    def own_bytes(self) -> int:
        tiles = -(-len(self.tiles) // self.chunks)
        return tiles * self.tiles[0] * self.own_row * self.bytes

    def own_memory(self, f: Function) -> Value:
        shared = self.panels * self.panel_room * self.bytes
        return thread_memory(f, self.memory(f), shared, self.own_bytes, f.arguments[2])

    def known(self, f: Function, name: str) -> Value:
        return self.pointer(f, name) if name in self.pointers else NOWHERE

    def sequence(self, f: Function, low: Operand, high: Operand) -> None:
        spec, groups = self.spec, self.spec.groups
        lstm, gru = spec.cell == "lstm", spec.cell == "gru"
        names = ("ct_out", "h", "c", "out", "kept", "d_gates", "d_hidden", "d_h", "d_c")
        ct_out, h, c, out, kept, d_gates, d_hidden, d_h, d_c = (self.known(f, n) for n in names)
        for state in ("h", "c")[: 1 + lstm]:
            given = self.known(f, f"ct_{state}") if state in spec.given else None
            self.copy_rows(f, self.pointer(f, f"d_{state}"), given, low, high)
        own = self.own_memory(f)
        start, end = self.first_row(f, low), self.first_row(f, high)
        with f.loop(0, spec.steps) as time:
            k = f.sub(spec.steps - 1, time.index)
            t, first_step = self.step_of(f, k), f.compare("eq", k, 0)
            earlier = f.mul(self.step_before(f, t), spec.batch)
            with f.loop(start, end) as each:
                r = each.index
                place, state = f.add(f.mul(t, spec.batch), r), f.mul(r, self.row)
                before = NOWHERE
                if lstm:
                    kept_before = self.at(
                        f, kept, f.mul(f.add(earlier, r), 5 * spec.size), 4 * spec.size)
                    before = f.select(first_step, self.at(f, c, state), kept_before)
                elif gru:
                    out_before = self.at(f, out, f.mul(f.add(earlier, r), self.row))
                    before = f.select(first_step, self.at(f, h, state), out_before)
                f.call(
                    self.cell(), "void",
                    self.at(f, ct_out, f.mul(place, self.row)),
                    self.at(f, out, f.mul(place, self.row)), before,
                    self.at(f, kept, f.mul(place, spec.kept * spec.size)),
                    self.at(f, d_gates, f.mul(place, groups * spec.size)),
                    self.at(f, d_hidden, f.mul(place, groups * spec.size)),
                    self.at(f, d_h, state), self.at(f, d_c, state),
                    self.at(f, own, f.mul(f.sub(r, start), self.own_row)))

            def panel(memory: Value, j: Operand, elements: int) -> None:
                def rows(first: Operand, count: int) -> None:
                    f.call(
                        self.through(count, elements), "void",
                        self.at(f, own, f.mul(f.sub(first, start), self.own_row)), memory,
                        self.at(f, d_h, f.mul(first, self.row), j))

                self.each_tile(f, low, high, rows)

            self.each_panel(f, panel)

    def through(self, rows: int, elements: int) -> str:
        """``through(d_hidden, panel, d_h)``: some columns of d_h; a gru's have a part already."""
        name = f"{self.name}_through{rows}x{elements}"
        if name in self.module:
            return name
        parameters = [("ptr noalias readonly", "a"), ("ptr noalias readonly", "panel")]
        f = self.module.function(name, [*parameters, ("ptr noalias", "d_h")])
        a, panel, d_h = f.arguments
        vectors = len(microkernel.lane_counts(elements, self.lanes))
        old = None
        if self.spec.cell == "gru":
            old = microkernel.load_tile(f, d_h, self.row, rows, elements, self.type)
        strides = Strides(self.own_row, 1, self.width)
        tile = microkernel.outer_product(
            f, a, panel, self.depth, rows, vectors, self.type, strides, start=old)
        microkernel.store_tile(f, tile, d_h, self.row, elements)
        f.ret()
        return name

    def cell(self) -> str:
        """``cell(ct_out, out, before, kept, d_gates, d_hidden, d_h, d_c, own)`` for one row."""
        name = f"{self.name}_cell"
        if name in self.module:
            return name
        names = ("ct_out", "out", "before", "kept", "d_gates", "d_hidden", "d_h", "d_c", "own")
        f = self.module.function(name, [("ptr", n) for n in names])
        size = self.spec.size
        whole = size // self.lanes * self.lanes

        def some(j: Operand, n: int) -> None:
            here = dict(zip(names, (self.at(f, p, j) for p in f.arguments), strict=True))
            ct = self.load(f, here["d_h"], n)
            if "out" in self.spec.given:
                ct = f.fadd(ct, self.load(f, here["ct_out"], n))
            kind = self.spec.cell
            part = self.lstm if kind == "lstm" else self.gru if kind == "gru" else self.simple
            part(f, ct, here, n)

        if whole:
            with f.loop(0, whole, self.lanes) as loop:
                some(loop.index, self.lanes)
        if whole < size:
            some(whole, size - whole)
        f.ret()
        return name

    def column(self, f: Function, pointer: Value, k: int) -> Value:
        return self.at(f, pointer, k * self.spec.size)

    def slope(self, f: Function, y: Value) -> Value:
        """Of the sigmoid, from its value."""
        return f.fmul(y, f.fsub(constant(1.0, self.type), y))

    def slope_of_tanh(self, f: Function, y: Value) -> Value:
        return f.fsub(constant(1.0, self.type), f.fmul(y, y))

    def lstm(self, f: Function, ct: Value, here: dict[str, Value], n: int) -> None:
        i, g_f, g, o, c = (self.load(f, self.column(f, here["kept"], k), n) for k in range(5))
        u = maths.tanh(f, c)
        d_c = f.fmul(f.fmul(ct, o), self.slope_of_tanh(f, u))
        d_c = f.fadd(self.load(f, here["d_c"], n), d_c)
        results = [
            f.fmul(f.fmul(d_c, g), self.slope(f, i)),
            f.fmul(f.fmul(d_c, self.load(f, here["before"], n)), self.slope(f, g_f)),
            f.fmul(f.fmul(d_c, i), self.slope_of_tanh(f, g)),
            f.fmul(f.fmul(ct, u), self.slope(f, o)),
        ]
        for k, x in enumerate(results):
            f.store_lanes(x, self.column(f, here["d_gates"], k), n)
            f.store_lanes(x, self.column(f, here["own"], k), n)
        f.store_lanes(f.fmul(d_c, g_f), here["d_c"], n)

    def gru(self, f: Function, ct: Value, here: dict[str, Value], n: int) -> None:
        r, z, new, hidden = (self.load(f, self.column(f, here["kept"], k), n) for k in range(4))
        d_new = f.fmul(ct, f.fsub(constant(1.0, self.type), z))
        d_new = f.fmul(d_new, self.slope_of_tanh(f, new))
        d_r = f.fmul(f.fmul(d_new, hidden), self.slope(f, r))
        d_z = f.fmul(ct, f.fsub(self.load(f, here["before"], n), new))
        d_z = f.fmul(d_z, self.slope(f, z))
        for k, (x, y) in enumerate([(d_r, d_r), (d_z, d_z), (d_new, f.fmul(d_new, r))]):
            f.store_lanes(x, self.column(f, here["d_gates"], k), n)
            f.store_lanes(y, self.column(f, here["d_hidden"], k), n)
            f.store_lanes(y, self.column(f, here["own"], k), n)
        f.store_lanes(f.fmul(ct, z), here["d_h"], n)

    def simple(self, f: Function, ct: Value, here: dict[str, Value], n: int) -> None:
        y = self.load(f, here["out"], n)
        if self.spec.cell == "tanh":
            d = f.fmul(ct, self.slope_of_tanh(f, y))
        else:
            one = f.select(f.compare("ogt", y, zero(self.type)), constant(1.0, self.type),
                           zero(self.type))
            d = f.fmul(ct, one)
        f.store_lanes(d, here["d_gates"], n)
        f.store_lanes(d, here["own"], n)
