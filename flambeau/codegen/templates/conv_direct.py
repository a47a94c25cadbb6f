"""Convolution and its input gradient by direct summation, for any window, stride and groups.

A chunk of work is a band of rows of one image and group. Its source rows are staged channels-last
with zero borders, so that the inner loop needs no tests; a register tile then holds some pixels
times a block of target channels and sums over taps and source channels. Filter and channel loops
stay loops: unrolled, LLVM merges their loads and spills.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from flambeau.codegen.target import Target
from flambeau.codegen.templates import microkernel
from flambeau.codegen.templates.conv_filters import Filters, each_block, each_size
from flambeau.codegen.templates.conv_spec import ConvSpec, picture_strides
from flambeau.codegen.templates.conv_stage import Stage
from flambeau.codegen.templates.conv_walk import Phase, Walk, forward_walk, gradient_walk
from flambeau.codegen.templates.entry import Kernel, slot, thread_memory
from flambeau.codegen.templates.epilogue import Epilogue, Place
from flambeau.codegen.templates.gemm_plan import ELEMENTS, GFLOPS_GUESS
from flambeau.codegen.templates.strided import emit_transpose, load_strided
from flambeau.codegen.text import Function, Module, Operand, Value, size_of, vector, zero
from flambeau.runtime import pool

SOURCE, WEIGHT, TARGET = range(3)  # slots; then the epilogue's pointers and the memory
MANY_TAPS = 121  # a block of so large a window would not fit on the stack
CHUNK = [("ptr", "slots"), ("i64", "i"), ("i64", "thread")]


@dataclass(frozen=True, slots=True)
class Problem:
    """A walk in both dimensions with its operands: what forward and input gradient share."""

    n: int
    groups: int
    source_channels: int  # of a group
    target_channels: int  # of a group
    rows: Walk
    columns: Walk
    source_layout: str
    target_layout: str
    window: tuple[int, int]
    weight_strides: tuple[int, int, int, int]  # target channel, source channel, r, s
    weight_group: int  # elements between the weights of groups
    dtype: str
    epilogue: Epilogue | None = None


def forward_problem(spec: ConvSpec, epilogue: Epilogue | None = None) -> Problem:
    """y from x."""
    k, c, r, s = spec.w_strides
    walks = [
        forward_walk(*sizes)
        for sizes in zip(
            (spec.h, spec.w),
            (spec.out_h, spec.out_w),
            (spec.r, spec.s),
            spec.stride,
            spec.padding,
            spec.dilation,
            strict=True,
        )
    ]
    return Problem(
        spec.n, spec.groups, spec.group_c, spec.group_k, *walks, spec.x_layout, spec.y_layout,
        (spec.r, spec.s), (k, c, r, s), spec.group_k * k, spec.dtype, epilogue,
    )  # fmt: skip


def gradient_problem(spec: ConvSpec) -> Problem:
    """dx from dy."""
    k, c, r, s = spec.w_strides
    walks = [
        gradient_walk(*sizes)
        for sizes in zip(
            (spec.h, spec.w),
            (spec.out_h, spec.out_w),
            (spec.r, spec.s),
            spec.stride,
            spec.padding,
            spec.dilation,
            strict=True,
        )
    ]
    return Problem(
        spec.n, spec.groups, spec.group_k, spec.group_c, *walks, spec.y_layout, spec.x_layout,
        (spec.r, spec.s), (c, k, r, s), spec.group_k * k, spec.dtype,
    )  # fmt: skip


@dataclass(slots=True)
class DirectConv:
    """Emits one problem into a module."""

    module: Module
    name: str
    problem: Problem
    target: Target
    element: str = field(init=False)
    type: str = field(init=False)
    lanes: int = field(init=False)
    tile: microkernel.Shape = field(init=False)
    band: int = field(init=False)  # positions of a chunk along the rows
    splits: int = field(init=False)  # chunks along the target channels

    def __post_init__(self) -> None:
        self.element = ELEMENTS[self.problem.dtype]
        self.lanes = self.target.lanes(self.element)
        self.type = vector(self.lanes, self.element)
        self.tile = microkernel.tile_shape(self.target, self.element)
        self.band = self._band()
        chunks = self.problem.n * self.bands * self.problem.groups
        wanted = -(-2 * pool.get_num_threads() // chunks)
        self.splits = max(1, min(self.blocks, wanted))

    # geometry

    @property
    def size(self) -> int:
        return size_of(self.element)

    @property
    def block(self) -> int:
        """Target channels of a register tile."""
        return self.tile.columns

    @property
    def blocks(self) -> int:
        return math.ceil(self.problem.target_channels / self.block)

    @property
    def last_block(self) -> int:
        return self.problem.target_channels - (self.blocks - 1) * self.block

    @property
    def bands(self) -> int:
        return math.ceil(self.problem.rows.positions / self.band)

    @property
    def stage_width(self) -> int:
        walk = self.problem.columns
        return walk.extent(walk.positions)

    @property
    def stage_bytes(self) -> int:
        rows = self.problem.rows.extent(self.band)
        return (rows * self.stage_width * self.problem.source_channels + self.lanes) * self.size

    @property
    def out_bytes(self) -> int:
        """One block of target channels of a band, channels last, where y is channels-first."""
        if self.problem.target_layout == "NHWC":
            return 0
        rows = self.band * self.problem.rows.out_step
        return rows * self.problem.columns.target * self.block * self.size

    @property
    def taps(self) -> list[tuple[Phase, Phase]]:
        """Pairs of row and column phases, in the order of the packed weights."""
        walks = self.problem.rows, self.problem.columns
        return [(r, c) for r in walks[0].phases for c in walks[1].phases]

    @property
    def panel(self) -> int:
        """Elements of the packed weights of one block of target channels."""
        taps = sum(len(r.taps) * len(c.taps) for r, c in self.taps)
        return taps * self.problem.source_channels * self.block

    @property
    def weight_bytes(self) -> int:
        return self.panel * self.blocks * self.problem.groups * self.size

    @property
    def pointers(self) -> int:
        return 3 + (self.problem.epilogue.pointers if self.problem.epilogue else 0)

    def _band(self) -> int:
        """Rows of a chunk: enough chunks, staged rows in the second-level cache, few repeats."""
        walk, threads = self.problem.rows, pool.get_num_threads()
        row = self.stage_width * self.problem.source_channels * self.size
        best, choice = math.inf, 1
        for bands in range(1, walk.positions + 1):
            height = math.ceil(walk.positions / bands)
            chunks = self.problem.n * self.problem.groups * math.ceil(walk.positions / height)
            cost = math.ceil(chunks / threads) * threads / chunks
            cost *= 1 + 0.05 * walk.extent(height) / (height * walk.in_step)
            cost *= 1 + max(0.0, walk.extent(height) * row / (self.target.level2_bytes / 3) - 1)
            if cost < best - 1e-9:
                best, choice = cost, height
        return choice

    # weights

    def emit_pack(self) -> str:
        """A chunk packs one block: [tap][source channel][target channel], zeros past the last."""
        name = f"{self.name}_weights"
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        problem = self.problem
        group, block = f.udiv(i, self.blocks), f.urem(i, self.blocks)
        start = f.add(
            f.mul(group, problem.weight_group),
            f.mul(f.mul(block, self.block), problem.weight_strides[0]),
        )
        source = f.gep(slot(f, slots, WEIGHT), start, self.element)
        panel = f.gep(slot(f, slots, self.pointers), f.mul(i, self.panel), self.element)
        for columns in self._each_block_width(f, block):
            if problem.weight_strides[0] == 1 or self.filters.taps > MANY_TAPS:
                self._pack_rows(f, source, panel, problem.weight_strides, columns)
            else:
                self._pack_blocks(f, source, panel, columns)
        f.ret()
        return name

    @property
    def filters(self) -> Filters:
        problem = self.problem
        return Filters(
            self.module, f"{self.name}_filters", self.type, problem.weight_strides,
            problem.window[0], problem.window[1], self.block,
        )  # fmt: skip

    def _pack_blocks(self, f: Function, source: Value, panel: Value, columns: int) -> None:
        """Pack by way of blocks with the target channels innermost."""
        filters, width = self.filters, self.block
        strides = (1, filters.taps * width, filters.s * width, width)
        block = f.alloca(self.element, filters.elements)
        if columns < width:
            f.clear(block, filters.elements * self.size)
        for channel, count in each_block(f, self.problem.source_channels, filters.depth):
            at = f.gep(source, f.mul(channel, self.problem.weight_strides[1]), self.element)
            filters.load(f, at, block, count, columns)
            target = f.gep(panel, f.mul(channel, width), self.element)
            self._pack_rows(f, block, target, strides, width, count)

    def _pack_rows(
        self, f: Function, source: Value, panel: Value, strides: tuple[int, int, int, int],
        columns: int, channels: int = 0,
    ) -> None:  # fmt: skip
        """Copy the vectors of target channels, in the order of the taps."""
        _, _, r, s = strides
        offsets = [a * r + b * s for rows, cols in self.taps for a in rows.taps for b in cols.taps]
        name = f"{self.name}_taps" + ("_block" if channels else "")
        table = self.module.table(name, "i64", offsets or [0])
        inner = f.loop(0, len(offsets))
        with f.loop(0, channels or self.problem.source_channels) as channel, inner as tap:
            at = f.load("i64", f.gep(table, tap.index, "i64"), 8)
            index = f.add(at, f.mul(channel.index, strides[1]))
            row = f.add(f.mul(tap.index, self.problem.source_channels), channel.index)
            to = f.gep(panel, f.mul(row, self.block), self.element)
            self._pack_row(f, f.gep(source, index, self.element), to, columns, strides[0])

    def _pack_row(
        self, f: Function, source: Value, target: Value, columns: int, stride: int
    ) -> None:
        for j in range(0, self.block, self.lanes):
            count = max(0, min(self.lanes, columns - j))
            at = f.gep(source, j * stride, self.element)
            x = load_strided(f, self.type, at, stride, count) if count else zero(self.type)
            f.store(x, f.gep(target, j, self.element))

    def _each_block_width(self, f: Function, block: Operand) -> Iterator[int]:
        return each_size(f, block, self.blocks, self.block, self.last_block)

    def stage(self) -> Stage:
        """How the source rows of a band are staged."""
        rows, columns = self.problem.rows, self.problem.columns
        channels = self.problem.source_channels
        return Stage(
            self.module, f"{self.name}_stage", self.type, self.problem.source_layout, rows.source,
            columns.source, channels * self.problem.groups, columns.low, self.stage_width,
            channels, channels,
        )  # fmt: skip

    # register tiles

    def tile_kernel(self, high: int, wide: int, columns: int) -> str:
        """``tile(slots, a, b, c, rows, cols, inner, pixel, channel)``: high x wide positions.

        `rows` and `cols` count taps, `inner` the contiguous elements of one; `pixel` and `channel`
        say where the tile is, for the epilogue.
        """
        name = f"{self.name}_tile_{high}x{wide}x{columns}"
        if name in self.module:
            return name
        parameters = [("ptr", "slots"), ("ptr noalias readonly", "a")]
        parameters += [("ptr noalias readonly", "b"), ("ptr noalias", "c"), ("i64", "rows")]
        parameters += [("i64", n) for n in ("cols", "inner", "pixel", "channel")]
        f = self.module.function(name, parameters)
        slots, a, b, c, rows, cols, inner, pixel, channel = f.arguments
        places = [(y, x) for y in range(high) for x in range(wide)]
        sums = self._sum(f, a, b, rows, cols, inner, places, math.ceil(columns / self.lanes))
        counts = microkernel.lane_counts(columns, self.lanes)
        pitch = self._pitch
        pointers = tuple(slot(f, slots, 3 + i) for i in range(self.pointers - 3))
        for (y, x), row in zip(places, sums, strict=True):
            step = y * self.problem.rows.out_step * self.problem.columns.target
            step += x * self.problem.columns.out_step
            for j, (value, n) in enumerate(zip(row, counts, strict=True)):
                if self.problem.epilogue is not None:
                    at = f.add(channel, j * self.lanes)
                    place = Place(f.add(pixel, step), at, n, pointers, self.element)
                    value = self.problem.epilogue.apply(f, value, place)
                f.store_lanes(value, f.gep(c, step * pitch + j * self.lanes, self.element), n)
        f.ret()
        return name

    @property
    def _pitch(self) -> int:
        """Elements between pixels where tiles are stored."""
        if self.problem.target_layout == "NCHW":
            return self.block
        return self.problem.target_channels * self.problem.groups

    def _sum(
        self,
        f: Function,
        a: Value,
        b: Value,
        rows: Value,
        cols: Value,
        inner: Value,
        places: list[tuple[int, int]],
        vectors: int,
    ) -> microkernel.Tile:
        """Sum over row taps, column taps and contiguous elements; b is read front to back."""
        problem, width = self.problem, self.stage_width
        channels = problem.source_channels
        offsets = [
            (y * problem.rows.in_step * width + x * problem.columns.in_step) * channels
            for y, x in places
        ]
        row_step = problem.rows.step * width * channels
        col_step = problem.columns.step * channels
        start = [zero(self.type)] * (len(places) * vectors)
        with f.loop(0, rows, carry=start) as r:
            with f.loop(0, cols, carry=r.carried) as s:
                tap = f.add(f.mul(r.index, cols), s.index)
                at = f.add(f.mul(r.index, row_step), f.mul(s.index, col_step))
                a_tap = f.gep(a, at, self.element)
                b_tap = f.gep(b, f.mul(f.mul(tap, inner), self.block), self.element)
                with f.loop(0, inner, carry=s.carried) as k:
                    a_k = f.gep(a_tap, k.index, self.element)
                    b_k = f.gep(b_tap, f.mul(k.index, self.block), self.element)
                    k.next = self._step(f, a_k, b_k, offsets, vectors, k.carried)
                s.next = k.results
            r.next = s.results
        flat = r.results
        return [flat[i * vectors : (i + 1) * vectors] for i in range(len(places))]

    def _step(
        self,
        f: Function,
        a: Value,
        b: Value,
        offsets: list[int],
        vectors: int,
        sums: list[Value],
    ) -> list[Value]:
        row = [f.load(self.type, f.gep(b, j * self.lanes, self.element)) for j in range(vectors)]
        out = []
        for i, offset in enumerate(offsets):
            x = f.splat(f.load(self.element, f.gep(a, offset, self.element)), self.lanes)
            out += [f.fma(x, y, sums[i * vectors + j]) for j, y in enumerate(row)]
        return out

    # a band

    @property
    def merges(self) -> bool:
        """Whether column taps and channels are one contiguous run of the staged row."""
        return self.problem.columns.step == 1

    def emit_band(self) -> str:
        """The chunk: stage a band, then all blocks of target channels and phases."""
        name = f"{self.name}_band"
        f = self.module.function(name, CHUNK)
        slots, i, thread = f.arguments
        problem = self.problem
        split, i = f.urem(i, self.splits), f.udiv(i, self.splits)
        group, i = f.urem(i, problem.groups), f.udiv(i, problem.groups)
        band, image = f.urem(i, self.bands), f.udiv(i, self.bands)
        memory = slot(f, slots, self.pointers)
        own = self.stage_bytes + self.out_bytes
        staged = thread_memory(f, memory, self.weight_bytes, own, thread)
        first = f.mul(band, self.band)
        count = f.minimum(f.sub(problem.rows.positions, first), self.band)
        rows = f.add(f.mul(f.sub(count, 1), problem.rows.in_step), problem.rows.reach)
        source = self._source_image(f, slots, image, group)
        begin = f.add(f.mul(first, problem.rows.in_step), problem.rows.low)
        self.stage().emit(f, source, staged, begin, rows)
        low = f.udiv(f.mul(split, self.blocks), self.splits)
        high = f.udiv(f.mul(f.add(split, 1), self.blocks), self.splits)
        with f.loop(low, high) as blocks:
            for columns in self._each_block_width(f, blocks.index):
                self._block(f, slots, staged, (image, group, blocks.index), first, count, columns)
        f.ret()
        return name

    def _source_image(self, f: Function, slots: Value, image: Operand, group: Operand) -> Value:
        problem = self.problem
        h, w = problem.rows.source, problem.columns.source
        channels = problem.source_channels * problem.groups
        channel, _, _ = picture_strides(problem.source_layout, channels, h, w)
        start = f.add(
            f.mul(image, channels * h * w), f.mul(group, problem.source_channels * channel)
        )
        return f.gep(slot(f, slots, SOURCE), start, self.element)

    def _block(
        self,
        f: Function,
        slots: Value,
        staged: Value,
        place: tuple[Operand, Operand, Operand],
        first: Operand,
        count: Operand,
        columns: int,
    ) -> None:
        """One block of target channels of a band."""
        problem = self.problem
        image, group, block = place
        h, w = problem.rows.target, problem.columns.target
        panel = f.mul(f.add(f.mul(group, self.blocks), block), self.panel)
        weights = f.gep(slot(f, slots, self.pointers), panel, self.element)
        channel = f.add(f.mul(group, problem.target_channels), f.mul(block, self.block))
        row = f.mul(first, problem.rows.out_step)
        pixel = f.mul(f.add(f.mul(image, h), row), w)
        target = slot(f, slots, TARGET)
        if problem.target_layout == "NHWC":
            c = f.gep(target, f.add(f.mul(pixel, self._pitch), channel), self.element)
        else:
            c = f.gep(staged, self.stage_bytes, "i8")
        taken = 0
        for rows, cols in self.taps:
            arguments = (slots, staged, f.gep(weights, taken, self.element), c, pixel, channel)
            self._phase(f, rows, cols, arguments, first, count, columns)
            taken += len(rows.taps) * len(cols.taps) * problem.source_channels * self.block
        if problem.target_layout == "NCHW":
            channels = problem.target_channels * problem.groups
            start = f.add(f.mul(f.add(f.mul(image, channels), channel), h * w), f.mul(row, w))
            height = f.minimum(f.sub(h, row), f.mul(count, problem.rows.out_step))
            name = f"{self.name}_out{columns}"
            if name not in self.module:
                emit_transpose(self.module, name, columns, self.block, h * w, self.type)
            f.call(name, "void", c, f.gep(target, start, self.element), f.mul(height, w))

    def _phase(
        self,
        f: Function,
        rows: Phase,
        cols: Phase,
        arguments: tuple[Value, Value, Value, Value, Operand, Operand],
        first: Operand,
        count: Operand,
        columns: int,
    ) -> None:
        """All tiles of one phase of a band."""
        slots, staged, weights, c, pixel, channel = arguments
        channels, width = self.problem.source_channels, self.problem.columns.target
        a = f.gep(staged, (rows.offset * self.stage_width + cols.offset) * channels, self.element)
        at = rows.first * width + cols.first
        c, pixel = f.gep(c, at * self._pitch, self.element), f.add(pixel, at)
        taps = (len(rows.taps), 1, len(cols.taps) * channels)
        if not self.merges:
            taps = (len(rows.taps), len(cols.taps), channels)
        limit = f.minimum(f.sub(rows.count, first), count)
        high = max(1, self.tile.rows // cols.count) if cols.count else 1
        whole = f.sub(limit, f.urem(limit, high)) if high > 1 else limit
        if high > 1:  # a negative limit must give no rows
            whole = f.maximum(whole, 0)
        tail = (slots, a, weights, c, taps, pixel, channel)
        with f.loop(0, whole, high) as loop:
            self._row_of_tiles(f, loop.index, high, cols.count, tail, columns)
        if high > 1:
            with f.loop(whole, limit) as loop:
                self._row_of_tiles(f, loop.index, 1, cols.count, tail, columns)

    def _row_of_tiles(
        self, f: Function, row: Value, high: int, positions: int, tail: tuple, columns: int
    ) -> None:
        """Tiles over all positions of `high` rows."""
        slots, a, weights, c, taps, pixel, channel = tail
        problem, width = self.problem, self.problem.columns.target
        a_row = f.mul(row, problem.rows.in_step * self.stage_width)
        done = 0
        parts = microkernel.even_parts(positions, self.tile.rows)
        for wide in dict.fromkeys(parts):
            kernel = self.tile_kernel(high, wide, columns)
            with f.loop(0, parts.count(wide)) as loop:
                column = f.add(f.mul(loop.index, wide), done)
                a_at = f.add(a_row, f.mul(column, problem.columns.in_step))
                at = f.add(
                    f.mul(row, problem.rows.out_step * width),
                    f.mul(column, problem.columns.out_step),
                )
                f.call(
                    kernel,
                    "void",
                    slots,
                    f.gep(a, f.mul(a_at, problem.source_channels), self.element),
                    weights,
                    f.gep(c, f.mul(at, self._pitch), self.element),
                    *taps,
                    f.add(pixel, at),
                    channel,
                )
            done += parts.count(wide) * wide

    def emit(self) -> Kernel:
        """Add the kernel; its pointers: source, weight, target, then the epilogue's."""
        problem = self.problem
        weights, band = self.emit_pack(), self.emit_band()
        f = self.module.function(self.name, [("ptr", "slots")])
        (slots,) = f.arguments
        work = int(self._flops / GFLOPS_GUESS)
        f.parallel_for(weights, slots, problem.groups * self.blocks, self.weight_bytes // 4)
        chunks = problem.n * self.bands * problem.groups * self.splits
        f.parallel_for(band, slots, chunks, work)
        f.ret()
        own = self.stage_bytes + self.out_bytes
        return Kernel(self.name, self.pointers, self.pointers + 1, self.weight_bytes, own, work)

    @property
    def _flops(self) -> float:
        problem = self.problem
        pixels = sum(r.count * c.count * len(r.taps) * len(c.taps) for r, c in self.taps)
        channels = problem.source_channels * problem.target_channels * problem.groups
        return 2.0 * pixels * channels * problem.n
