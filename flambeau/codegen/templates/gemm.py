"""C = alpha op(A) op(B) + beta C for shapes known when the code is made.

An area of register tiles is one chunk of the thread pool. The chunk packs the panels of B that
it needs, for one block of k (`depth`) at a time, and sweeps the panels of A over each while it is
close to the core: no data move between cores. Rows of A are read in place unless they fall on the
same cache lines; then a chunk packs a block of them, too. Panels are of even size, so there are no
slow edges. The sum over k has one fixed order per shape: the result does not depend on the number
of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from flambeau.codegen.target import Target
from flambeau.codegen.templates import microkernel, packing
from flambeau.codegen.templates.entry import Kernel, set_slot, slot, thread_memory
from flambeau.codegen.templates.epilogue import Place
from flambeau.codegen.templates.gemm_plan import ELEMENTS, GFLOPS_GUESS, GemmSpec, Plan
from flambeau.codegen.templates.microkernel import Strides
from flambeau.codegen.templates.tail import C as RESULT
from flambeau.codegen.templates.tail import store_in_order
from flambeau.codegen.text import Function, Module, Operand, Value, constant, size_of, vector
from flambeau.runtime import pool

Bounds = tuple[Operand, Operand]
A, B, C = range(3)  # slots; then the epilogue's pointers, the tail's and the memory
SERIAL_FLOPS = 4_000_000  # below, the products of a batch are not cut up


@dataclass(frozen=True, slots=True)
class Area:
    """What does not change within one chunk and one block of k."""

    slots: Value
    columns: Bounds
    own: Value  # memory of the thread
    k0: Operand


@dataclass(slots=True)
class Generator:
    """Emits one product into a module; names of its functions begin with `name`."""

    module: Module
    name: str
    spec: GemmSpec
    target: Target
    plan: Plan
    element: str = field(init=False)
    type: str = field(init=False)
    lanes: int = field(init=False)

    def __post_init__(self) -> None:
        self.element = ELEMENTS[self.spec.dtype]
        self.lanes = self.target.lanes(self.element)
        self.type = vector(self.lanes, self.element)

    @property
    def pointers(self) -> int:
        return self.spec.pointers

    @property
    def memory_slot(self) -> int:
        return self.pointers

    # geometry

    @property
    def column_panels(self) -> int:
        return math.ceil(self.spec.n / self.plan.columns)

    @property
    def last_columns(self) -> int:
        return self.spec.n - (self.column_panels - 1) * self.plan.columns

    @property
    def k_blocks(self) -> int:
        return max(1, math.ceil(self.spec.k / self.plan.depth)) if self.spec.k else 1

    @property
    def a_panel(self) -> int:
        """Elements between packed panels of A, one vector of room included."""
        return self._rounded(self.plan.depth * self.plan.rows[0] + self.lanes)

    @property
    def b_panel(self) -> int:
        return self._rounded(self.plan.depth * self.plan.columns + self.lanes)

    @property
    def area_rows(self) -> int:
        """Panels of A of the largest chunk."""
        return math.ceil(self.plan.row_panels / self.plan.areas[0])

    @property
    def a_bytes(self) -> int:
        """Packed panels of A of one chunk: one block of rows and of k."""
        most = 1 if self.plan.column_block else min(self.plan.row_block, self.area_rows)
        panels = most if self.plan.pack_a else 0
        return self.a_panel * panels * size_of(self.element)

    @property
    def b_bytes(self) -> int:
        """Panels of B of one chunk: one at a time, unless they are used again."""
        if not self.plan.pack_b:
            return 0
        panels = math.ceil(self.column_panels / self.plan.areas[1]) if self.keeps_b else 1
        panels = min(panels, self.plan.column_block or panels)
        return self.b_panel * panels * size_of(self.element)

    @property
    def keeps_b(self) -> bool:
        return bool(self.plan.column_block) or self.area_rows > self.plan.row_block

    def _rounded(self, count: int) -> int:
        line = 64 // size_of(self.element)
        return -(-count // line) * line

    def first_row(self, f: Function, panel: Operand) -> Operand:
        """The first row of a panel; the larger panels come first."""
        larger, small = self.plan.rows.count(self.plan.rows[0]), self.plan.rows[-1]
        if larger == len(self.plan.rows):
            return f.mul(panel, self.plan.rows[0])
        return f.add(f.mul(panel, small), f.minimum(panel, larger))

    # addresses

    @property
    def stored(self) -> str:
        """The type of elements of A and B in memory."""
        return self.element

    @property
    def result(self) -> str:
        """The type of elements of C in memory."""
        return self.element

    @property
    def operand(self) -> str:
        """The type of elements of the epilogue's operands in memory."""
        return ELEMENTS[self.spec.epilogue_dtype] if self.spec.epilogue_dtype else self.result

    @property
    def c_parameter(self) -> str:
        """How a tile kernel takes C: a tail reaches the same memory in another way."""
        return "ptr noalias" if self.spec.tail is None else "ptr"

    def a_source(self, f: Function, a: Value, row: Operand, k: Operand) -> Value:
        lda = self.spec.strides[A]
        index = f.add(f.mul(k, lda), row) if self.spec.trans_a else f.add(f.mul(row, lda), k)
        return f.gep(a, index, self.stored)

    def b_source(self, f: Function, b: Value, k: Operand, column: Operand) -> Value:
        ldb = self.spec.strides[B]
        index = f.add(f.mul(column, ldb), k) if self.spec.trans_b else f.add(f.mul(k, ldb), column)
        return f.gep(b, index, self.stored)

    # parts

    def variants(self) -> list[tuple[int, int]]:
        """(rows, columns) of every kind of tile."""
        heights = dict.fromkeys(self.plan.rows)
        widths = [self.plan.columns] if self.column_panels > 1 else []
        widths = dict.fromkeys([*widths, self.last_columns])
        return [(r, c) for r in heights for c in widths]

    def emit_tile_kernel(self, rows: int, columns: int) -> None:
        """``tile(slots, k, a, b, c, row, column, k0)``: one tile, one block of k from k0."""
        parameters = [("ptr", "slots"), ("i64", "k"), ("ptr noalias readonly", "a")]
        parameters += [("ptr noalias readonly", "b"), (self.c_parameter, "c")]
        parameters += [("i64", "row"), ("i64", "column"), ("i64", "k0")]
        f = self.module.function(f"{self.name}_tile_{rows}x{columns}", parameters)
        slots, k, a, b, c, row, column, k0 = f.arguments
        lda, ldb, ldc = self.spec.strides
        strides = Strides(
            a_row=1 if self.plan.pack_a or self.spec.trans_a else lda,
            a_k=rows if self.plan.pack_a else lda if self.spec.trans_a else 1,
            b_k=self.plan.columns if self.plan.pack_b else ldb,
        )
        vectors = math.ceil(columns / self.lanes)
        known = self.spec.k if self.k_blocks == 1 else k
        tail = columns % self.lanes
        masked = 0 if self.plan.pack_b else tail
        tile = microkernel.outer_product(
            f, a, b, known, rows, vectors, self.type, strides, self.plan.unroll, masked
        )
        tile = self._scaled(f, tile)
        if self.k_blocks > 1:
            tile = self._accumulated(f, tile, c, ldc, columns, k0)
        elif self.spec.beta:
            tile = self._with_beta(f, tile, c, ldc, columns)
        if self.k_blocks == 1:
            self._write(f, tile, slots, c, (row, column), columns)
        elif self.spec.epilogue is None and self.spec.tail is None:
            microkernel.store_tile(f, tile, c, ldc, columns)
        else:
            last = f.compare("eq", f.add(k0, k), self.spec.k)
            with f.either(last) as branch:
                self._write(f, tile, slots, c, (row, column), columns)
                branch.otherwise()
                microkernel.store_tile(f, tile, c, ldc, columns)
        f.ret()

    def _write(
        self,
        f: Function,
        tile: microkernel.Tile,
        slots: Value,
        c: Value,
        place: tuple[Value, Value],
        columns: int,
    ) -> None:
        """Store the results of a tile for good; `place` is its row and column."""
        if self.spec.epilogue is not None:
            tile = self._finished(f, tile, slots, *place, columns)
        if self.spec.tail is None:
            microkernel.store_tile(f, tile, c, self.spec.strides[C], columns)
            return
        memory = f.alloca(self.element, len(tile) * len(tile[0]) * self.lanes)
        store_in_order(f, tile, memory)
        f.call(self._tail(len(tile), columns), "void", slots, memory, *place)

    def _tail(self, rows: int, columns: int) -> str:
        """``tail(slots, tile, row, column)``: what follows on the results of one tile."""
        tail, name = self.spec.tail, f"{self.name}_tail_{rows}x{columns}"
        assert tail is not None
        if name in self.module:
            return name
        parameters = [("ptr", "slots"), ("ptr noalias readonly", "tile")]
        f = self.module.function(name, [*parameters, ("i64", "row"), ("i64", "column")])
        slots, tile, row, column = f.arguments
        first = self.pointers - tail.pointers
        buffers = {n: slot(f, slots, first + i) for i, n in enumerate(tail.buffers)}
        buffers[RESULT] = slot(f, slots, C)
        size = rows, columns
        tail.apply(f, self.target, buffers, tile, (row, column), size, self.type)
        f.ret()
        return name

    def _scaled(self, f: Function, tile: microkernel.Tile) -> microkernel.Tile:
        if self.spec.alpha == 1:
            return tile
        factor = constant(self.spec.alpha, self.type)
        return microkernel.map_tile(tile, lambda x: f.fmul(x, factor))

    def _with_beta(
        self, f: Function, tile: microkernel.Tile, c: Value, ldc: int, columns: int
    ) -> microkernel.Tile:
        old = microkernel.load_tile(f, c, ldc, len(tile), columns, self.type)
        beta = self.spec.beta
        return [
            [f.fadd(x, y) if beta == 1 else f.fma(y, beta, x) for x, y in zip(r, s, strict=True)]
            for r, s in zip(tile, old, strict=True)
        ]

    def _accumulated(
        self, f: Function, tile: microkernel.Tile, c: Value, ldc: int, columns: int, k0: Value
    ) -> microkernel.Tile:
        """Add what c holds: beta times it in the first block, all of it later."""
        first = f.compare("eq", k0, 0)
        out = []
        counts = microkernel.lane_counts(columns, self.lanes)
        for i, row in enumerate(tile):
            sums = []
            for j, (x, n) in enumerate(zip(row, counts, strict=True)):
                at = f.gep(c, i * ldc + j * self.lanes, self.element)
                sums.append(self._sum_with_memory(f, x, at, n, first))
            out.append(sums)
        return out

    def _sum_with_memory(self, f: Function, x: Value, at: Value, n: int, first: Value) -> Value:
        """x + c, where c counts as beta * c in the first block and is not read if beta is 0."""
        if self.spec.beta:
            one, beta = (constant(v, self.element) for v in (1, self.spec.beta))
            factor = f.splat(f.select(first, beta, one), self.lanes)
            return f.fma(f.load_lanes(self.type, at, n), factor, x)
        later = f.splat(f.binary("xor", first, constant(1, "i1")), self.lanes)
        on = f.binary("and", later, f.lane_mask(n, self.lanes)) if n < self.lanes else later
        return f.fadd(x, f.load_masked(self.type, at, on))

    def _finished(
        self,
        f: Function,
        tile: microkernel.Tile,
        slots: Value,
        row: Value,
        column: Value,
        columns: int,
    ) -> microkernel.Tile:
        """The tile after the epilogue."""
        epilogue = self.spec.epilogue
        assert epilogue is not None
        pointers = tuple(slot(f, slots, 3 + i) for i in range(epilogue.pointers))
        counts = microkernel.lane_counts(columns, self.lanes)
        out = []
        for i, values in enumerate(tile):
            places = [
                Place(f.add(row, i), f.add(column, j * self.lanes), n, pointers, self.operand)
                for j, n in enumerate(counts)
            ]
            out.append([epilogue.apply(f, x, p) for x, p in zip(values, places, strict=True)])
        return out

    def emit_packers(self) -> None:
        lda, ldb, _ = self.spec.strides
        tail = self.spec.k % self.lanes
        if self.plan.pack_a:
            for rows in dict.fromkeys(self.plan.rows):
                name = f"{self.name}_pack_a{rows}"
                if self.spec.trans_a:
                    packing.panel_from_columns(self.module, name, rows, rows, lda, self.type)
                else:
                    packing.panel_from_rows(self.module, name, rows, rows, lda, self.type, tail)
        if self.plan.pack_b:
            wide = self.plan.columns
            for columns in dict.fromkeys(c for _, c in self.variants()):
                name = f"{self.name}_pack_b{columns}"
                if self.spec.trans_b:
                    packing.panel_from_rows(self.module, name, columns, wide, ldb, self.type, tail)
                else:
                    packing.panel_from_columns(self.module, name, columns, wide, ldb, self.type)

    def pack_rows(self, f: Function, slots: Value, rows: Bounds, k0: Operand, own: Value) -> None:
        """Pack one block of k of the panels rows[0]..rows[1] of A."""
        with f.loop(*rows) as loop:
            source = self.a_source(f, slot(f, slots, A), self.first_row(f, loop.index), k0)
            place = f.mul(f.sub(loop.index, rows[0]), self.a_panel)
            target = f.gep(own, place, self.element)
            for height in self._each_height(f, loop.index):
                name = f"{self.name}_pack_a{height}"
                f.call(name, "void", source, target, self.k_count(f, k0))

    def k_count(self, f: Function, k0: Operand) -> Operand:
        """How many steps of k the block that starts at k0 has."""
        if self.k_blocks == 1:
            return self.spec.k
        return f.minimum(f.sub(self.spec.k, k0), self.plan.depth)

    def _each_height(self, f: Function, panel: Operand) -> Iterator[int]:
        """Branch on the panel's height; the body is emitted once for each."""
        heights = list(dict.fromkeys(self.plan.rows))
        if len(heights) == 1:
            yield heights[0]
            return
        larger = f.compare("slt", panel, self.plan.rows.count(heights[0]))
        with f.either(larger) as branch:
            yield heights[0]
            branch.otherwise()
            yield heights[1]

    def _each_width(self, f: Function, panel: Operand) -> Iterator[int]:
        """Branch on the panel's width; the body is emitted once for each."""
        if self.last_columns == self.plan.columns or self.column_panels == 1:
            yield self.last_columns
            return
        with f.either(f.compare("ne", panel, self.column_panels - 1)) as branch:
            yield self.plan.columns
            branch.otherwise()
            yield self.last_columns

    def compute_area(
        self, f: Function, slots: Value, rows: Bounds, columns: Bounds, own: Value
    ) -> None:
        """All tiles of panels rows[0]..rows[1] and columns[0]..columns[1]; `own` is memory."""
        with f.loop(0, self.k_blocks) as blocks:
            area = Area(slots, columns, own, f.mul(blocks.index, self.plan.depth))
            if self.plan.column_block:
                self._compute_by_rows(f, area, rows)
            elif not self.keeps_b:
                self._compute_by_columns(f, area, rows, None)
            else:
                with f.loop(*rows, self.plan.row_block) as high:
                    end = f.minimum(f.add(high.index, self.plan.row_block), rows[1])
                    first = f.compare("eq", high.index, rows[0])
                    self._compute_by_columns(f, area, (high.index, end), first)

    def _compute_by_columns(
        self, f: Function, area: Area, rows: Bounds, first: Value | None
    ) -> None:
        """One block of k and of rows; B is packed only if `first` (None: always)."""
        if self.plan.pack_a:
            self.pack_rows(f, area.slots, rows, area.k0, area.own)
        with f.loop(*area.columns) as across:
            if self.plan.pack_b:
                with f.when(first) if first is not None else nullcontext():
                    self._pack_panel(f, area, across.index)
            b = self._b_start(f, area, across.index)
            with f.loop(*rows) as down:
                a = self._a_start(f, area, rows, down.index)
                self._compute_tile(f, area.slots, (down.index, across.index), a, b, area.k0)

    def _compute_by_rows(self, f: Function, area: Area, rows: Bounds) -> None:
        """One block of k; for a block of packed panels of B, C is written from left to right."""
        with f.loop(*area.columns, self.plan.column_block) as wide:
            end = f.minimum(f.add(wide.index, self.plan.column_block), area.columns[1])
            part = replace(area, columns=(wide.index, end))
            if self.plan.pack_b:
                with f.loop(*part.columns) as across:
                    self._pack_panel(f, part, across.index)
            with f.loop(*rows) as down:
                only = (down.index, f.add(down.index, 1))
                if self.plan.pack_a:
                    self.pack_rows(f, area.slots, only, area.k0, area.own)
                a = self._a_start(f, part, only, down.index)
                with f.loop(*part.columns) as across:
                    b = self._b_start(f, part, across.index)
                    self._compute_tile(f, area.slots, (down.index, across.index), a, b, area.k0)

    def _pack_panel(self, f: Function, area: Area, index: Value) -> None:
        source = self._b_source(f, area, index)
        panel = self._b_start(f, area, index)
        for width in self._each_width(f, index):
            name = f"{self.name}_pack_b{width}"
            f.call(name, "void", source, panel, self.k_count(f, area.k0))

    def _b_source(self, f: Function, area: Area, index: Value) -> Value:
        """Where a panel of B is in memory."""
        column = f.mul(index, self.plan.columns)
        return self.b_source(f, slot(f, area.slots, B), area.k0, column)

    def _b_start(self, f: Function, area: Area, index: Value) -> Value:
        """Where the tile kernels read a panel of B."""
        if not self.plan.pack_b:
            return self._b_source(f, area, index)
        kept = f.sub(index, area.columns[0]) if self.keeps_b else 0
        start = f.add(f.mul(kept, self.b_panel), self.a_bytes // size_of(self.element))
        return f.gep(area.own, start, self.element)

    def _a_start(self, f: Function, area: Area, rows: Bounds, index: Value) -> Value:
        """Where the tile kernels read a panel of A; rows[0] is the first one packed."""
        if self.plan.pack_a:
            place = f.mul(f.sub(index, rows[0]), self.a_panel)
            return f.gep(area.own, place, self.element)
        return self.a_source(f, slot(f, area.slots, A), self.first_row(f, index), area.k0)

    def _compute_tile(
        self, f: Function, slots: Value, tile: tuple[Value, Value], a: Value, b: Value, k0: Operand
    ) -> None:
        i, j = tile
        row, column = self.first_row(f, i), f.mul(j, self.plan.columns)
        c = f.add(f.mul(row, self.spec.strides[C]), column)
        at = f.gep(slot(f, slots, C), c, self.result)
        k = self.k_count(f, k0)
        for width in self._each_width(f, j):
            for height in self._each_height(f, i):
                name = f"{self.name}_tile_{height}x{width}"
                f.call(name, "void", slots, k, a, b, at, row, column, k0)

    # whole products

    @property
    def own_bytes(self) -> int:
        """Working memory of a thread."""
        return self.a_bytes + self.b_bytes

    def emit_serial(self) -> str:
        """``serial(slots)``: the product on one thread, whose memory is in the memory's cell."""
        name = f"{self.name}_serial"
        f = self.module.function(name, [("ptr", "slots")])
        (slots,) = f.arguments
        own = self._own_memory(f, slots, 0)
        self.compute_area(f, slots, (0, self.plan.row_panels), (0, self.column_panels), own)
        f.ret()
        return name

    def _own_memory(self, f: Function, slots: Value, thread: Operand) -> Value:
        if not self.own_bytes:
            return Value("null", "ptr")
        memory = slot(f, slots, self.memory_slot)
        return thread_memory(f, memory, 0, self.own_bytes, thread)

    def emit_parallel(self) -> str:
        """``parallel(slots)``: areas of tiles as chunks of the pool."""
        area = self._emit_area_chunk()
        name = f"{self.name}_parallel"
        f = self.module.function(name, [("ptr", "slots")])
        (slots,) = f.arguments
        down, across = self.plan.areas
        f.parallel_for(area, slots, down * across, int(self.flops / GFLOPS_GUESS))
        f.ret()
        return name

    @property
    def flops(self) -> float:
        return 2.0 * self.spec.m * self.spec.n * self.spec.k

    def _emit_area_chunk(self) -> str:
        name = f"{self.name}_area"
        f = self.module.function(name, [("ptr", "slots"), ("i64", "i"), ("i64", "thread")])
        slots, i, thread = f.arguments
        down, across = self.plan.areas
        rows = share(f, f.udiv(i, across), self.plan.row_panels, down)
        columns = share(f, f.urem(i, across), self.column_panels, across)
        self.compute_area(f, slots, rows, columns, self._own_memory(f, slots, thread))
        f.ret()
        return name

    def emit_batch(self, serial: str) -> str:
        """``batch(slots)``: one chunk per product, each on one thread."""
        chunk = f"{self.name}_product"
        f = self.module.function(chunk, [("ptr", "slots"), ("i64", "i"), ("i64", "thread")])
        slots, i, thread = f.arguments
        own = self._product_slots(f, slots, i)
        if self.own_bytes:
            set_slot(f, own, self.memory_slot, self._own_memory(f, slots, thread))
        f.call(serial, "void", own)
        f.ret()
        name = f"{self.name}_batch"
        f = self.module.function(name, [("ptr", "slots")])
        work = int(self.flops * self.spec.batches / GFLOPS_GUESS)
        f.parallel_for(chunk, f.arguments[0], self.spec.batches, work)
        f.ret()
        return name

    def _product_slots(self, f: Function, slots: Value, index: Operand) -> Value:
        """Cells of product number `index` of the batch, the memory's left unset."""
        own = f.alloca("i64", self.memory_slot + 1)
        for i in range(3, self.pointers):
            set_slot(f, own, i, slot(f, slots, i))
        strides = (self.spec.batch_a, self.spec.batch_b, self.spec.batch_c)
        offsets: list[Operand] = [0, 0, 0]
        for axis in reversed(range(len(self.spec.batch))):
            place = f.urem(index, self.spec.batch[axis])
            index = f.udiv(index, self.spec.batch[axis])
            offsets = [
                f.add(o, f.mul(place, s[axis])) for o, s in zip(offsets, strides, strict=True)
            ]
        types = (self.stored, self.stored, self.result)
        for i, (offset, type) in enumerate(zip(offsets, types, strict=True)):
            set_slot(f, own, i, f.gep(slot(f, slots, i), offset, type))
        return own

    def emit_one_by_one(self, parallel: str) -> str:
        """``batch(slots)``: the products one after the other, each on all threads."""
        name = f"{self.name}_batch"
        f = self.module.function(name, [("ptr", "slots")])
        (slots,) = f.arguments
        with f.loop(0, self.spec.batches) as loop:
            own = self._product_slots(f, slots, loop.index)
            if self.own_bytes:
                set_slot(f, own, self.memory_slot, slot(f, slots, self.memory_slot))
            f.call(parallel, "void", own)
        f.ret()
        return name

    def emit(self) -> Kernel:
        """Add the product to the module."""
        spec = self.spec
        in_chunks = spec.batches >= pool.get_num_threads() or self.flops < SERIAL_FLOPS
        if spec.batch and in_chunks:
            self.plan = replace(self.plan, areas=(1, 1))
        self.emit_packers()
        for rows, columns in self.variants():
            self.emit_tile_kernel(rows, columns)
        if not spec.batch:
            name = self.emit_parallel()
        elif in_chunks:
            name = self.emit_batch(self.emit_serial())
        else:
            name = self.emit_one_by_one(self.emit_parallel())
        time = int(self.flops * spec.batches / GFLOPS_GUESS)
        return Kernel(name, self.pointers, self.memory_slot + 1, 0, self.own_bytes, time)


def share(f: Function, part: Operand, total: int, parts: int) -> Bounds:
    """Bounds of one of `parts` even shares of `total`."""
    low = f.udiv(f.mul(part, total), parts)
    return low, f.udiv(f.mul(f.add(part, 1), total), parts)
