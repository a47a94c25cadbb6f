"""3 x 3 convolution of stride 1, and its input gradient, by Winograd's F(4x4) or F(2x2).

The work is 36 (or 16) independent products, one for each position of the transformed tiles:
M[p] = V[p] U[p] with V of tiles x source channels and U of source x target channels. Two ways:

`by_tiles`: a chunk owns some rows of tiles. It stages their pixels, transforms them to V,
multiplies with U block by block of target channels and transforms back, all in the second-level
cache. U is made beforehand. This is for large pictures.

`by_channels`: V of all tiles is made first; a chunk owns a block of target channels, transforms its
part of the weight block by block of source channels and sums. This is for many channels on small
pictures, where U is larger than V.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from flambeau.codegen.target import Target
from flambeau.codegen.templates import microkernel
from flambeau.codegen.templates import winograd_transform as transform
from flambeau.codegen.templates.conv_filters import Filters, each_block, each_size
from flambeau.codegen.templates.conv_spec import ConvSpec
from flambeau.codegen.templates.entry import Kernel, slot, thread_memory
from flambeau.codegen.templates.epilogue import Epilogue, Place
from flambeau.codegen.templates.gemm_plan import ELEMENTS, GFLOPS_GUESS
from flambeau.codegen.templates.microkernel import Strides
from flambeau.codegen.templates.stored import COMPUTED, Stored
from flambeau.codegen.templates.strided import emit_transpose
from flambeau.codegen.templates.winograd_tiles import Tiles
from flambeau.codegen.text import Function, Module, Operand, Value, size_of, vector, zero
from flambeau.runtime import pool

CHUNK = [("ptr", "slots"), ("i64", "i"), ("i64", "thread")]
SOURCE, WEIGHT, TARGET = range(3)  # slots; then the epilogue's pointers and the memory


@dataclass(frozen=True, slots=True)
class Problem:
    """A stride-1 3 x 3 correlation: the convolution, or its input gradient with `flip`."""

    n: int
    source_channels: int
    target_channels: int
    h: int  # source picture
    w: int
    padding: tuple[int, int]
    source_layout: str
    target_layout: str
    weight_strides: tuple[int, int, int, int]  # target channel, source channel, r, s
    flip: bool
    dtype: str
    m: int
    epilogue: Epilogue | None = None

    @property
    def out_h(self) -> int:
        return self.h + 2 * self.padding[0] - 2

    @property
    def out_w(self) -> int:
        return self.w + 2 * self.padding[1] - 2


def forward_problem(spec: ConvSpec, epilogue: Epilogue | None = None) -> Problem:
    return Problem(
        spec.n, spec.c, spec.k, spec.h, spec.w, spec.padding, spec.x_layout, spec.y_layout,
        spec.w_strides, False, spec.dtype, spec.winograd, epilogue,
    )  # fmt: skip


def gradient_problem(spec: ConvSpec) -> Problem:
    k, c, r, s = spec.w_strides
    padding = (2 - spec.padding[0], 2 - spec.padding[1])
    return Problem(
        spec.n, spec.k, spec.c, spec.out_h, spec.out_w, padding, spec.y_layout, spec.x_layout,
        (c, k, r, s), True, spec.dtype, spec.winograd,
    )  # fmt: skip


@dataclass(slots=True)
class Winograd:
    """Emits one problem into a module."""

    module: Module
    name: str
    problem: Problem
    target: Target
    units: int = 0  # rows of tiles of a chunk; 0 chooses
    depth: int = 0  # source channels of a block, by channels; 0 chooses
    tiles: Tiles = field(init=False)
    memory: Stored = field(init=False)
    element: str = field(init=False)
    type: str = field(init=False)
    lanes: int = field(init=False)
    shape: microkernel.Shape = field(init=False)

    def __post_init__(self) -> None:
        problem = self.problem
        self.memory = Stored(ELEMENTS[problem.dtype], self.target)
        self.element = COMPUTED[self.memory.element]
        self.lanes = self.target.lanes(self.element)
        self.type = vector(self.lanes, self.element)
        self.shape = microkernel.tile_shape(self.target, self.element)
        self.tiles = Tiles(
            self.module, f"{self.name}_input", problem.n, problem.source_channels,
            problem.source_layout, problem.h, problem.w, -problem.padding[0],
            -problem.padding[1], problem.m + 2, problem.m, self._wide(problem.out_h),
            self._wide(problem.out_w), transform.matrices(problem.m)[2], self.type, self.memory,
        )  # fmt: skip
        self.units = self.units or self._units()
        self.depth = self.depth or min(problem.source_channels, 128)

    def _units(self) -> int:
        """Rows of tiles of a chunk: V and one block of U and M in the second-level cache."""
        tiles = self.tiles
        unit = tiles.positions * tiles.wide * (tiles.row + self.block) * self.size
        most = max(1, int(self.target.level2_bytes * 0.45) // unit)
        wanted = max(1, 4 * self.shape.rows // tiles.wide)
        each = max(1, tiles.units // (2 * pool.get_num_threads()))
        return max(1, min(most, wanted, each))

    # geometry

    def _wide(self, size: int) -> int:
        return math.ceil(size / self.problem.m)

    @property
    def size(self) -> int:
        return size_of(self.element)

    @property
    def block(self) -> int:
        return self.shape.columns

    @property
    def blocks(self) -> int:
        return math.ceil(self.problem.target_channels / self.block)

    @property
    def last_block(self) -> int:
        return self.problem.target_channels - (self.blocks - 1) * self.block

    @property
    def chunk_tiles(self) -> int:
        return self.units * self.tiles.wide

    @property
    def chunks(self) -> int:
        return math.ceil(self.tiles.units / self.units)

    @property
    def pointers(self) -> int:
        return 3 + (self.problem.epilogue.pointers if self.problem.epilogue else 0)

    @property
    def u_block(self) -> int:
        """Elements of U of one block of target channels."""
        return self.tiles.positions * self.problem.source_channels * self.block

    @property
    def out_bytes(self) -> int:
        """A unit of results of one block, channels last, where y is channels-first."""
        if self.problem.target_layout == "NHWC":
            return 0
        return self.problem.m * self.problem.out_w * self.block * self.size

    @property
    def out(self) -> Stored:
        """How results are stored, before those of channels-first pictures are transposed."""
        return self.memory if self.problem.target_layout == "NHWC" else Stored(self.element)

    @property
    def pitch(self) -> int:
        """Elements between pixels where results are stored."""
        return self.problem.target_channels if self.problem.target_layout == "NHWC" else self.block

    # transforms

    @property
    def filters(self) -> Filters:
        return Filters(
            self.module, f"{self.name}_filters", self.type, self.problem.weight_strides,
            transform.WINDOW, transform.WINDOW, self.block, self.memory,
        )  # fmt: skip

    def weight_kernel(self, channels: int, columns: int, distance: int) -> str:
        """``weight(w, u)``: U[p][channel][target channel] from the weights of a block.

        Positions of U are `distance` elements apart.
        """
        name = f"{self.name}_weight_{channels}x{columns}"
        if name in self.module:
            return name
        parameters = [("ptr noalias readonly", "w"), ("ptr noalias", "u")]
        f = self.module.function(name, parameters)
        w, u = f.arguments
        filters, strides, given = self.filters, self.problem.weight_strides, columns
        if strides[0] != 1 or self.memory.element != self.element:
            block = f.alloca(self.element, filters.elements)
            if columns < self.block:
                f.clear(block, filters.elements * self.size)
            filters.load(f, w, block, channels, columns)
            width = self.block
            w, strides, given = block, (1, filters.taps * width, filters.s * width, width), width
        with f.loop(0, channels) as channel:
            start = f.gep(w, f.mul(channel.index, strides[1]), self.element)
            for j in range(0, self.block, self.lanes):
                count = max(0, min(self.lanes, given - j))
                at = f.gep(u, f.add(f.mul(channel.index, self.block), j), self.element)
                x = f.gep(start, j, self.element)
                self._weight_group(f, x, strides, count, at, distance)
        f.ret()
        return name

    def _weight_group(
        self, f: Function, w: Value, strides: tuple[int, int, int, int], count: int, u: Value,
        distance: int,
    ) -> None:  # fmt: skip
        """One channel and one vector of target channels; lanes past `count` are zero."""
        _, _, r, s = strides
        _, matrix, _ = transform.matrices(self.problem.m)
        side = range(transform.WINDOW)
        order = side[::-1] if self.problem.flip else side
        y = [[zero(self.type)] * self.tiles.side] * self.tiles.side
        if count:
            x = [
                [
                    f.load_lanes(self.type, f.gep(w, a * r + b * s, self.element), count)
                    for b in order
                ]
                for a in order
            ]
            y = transform.apply_both(f, matrix, matrix, x)
        for p, value in enumerate(v for row in y for v in row):
            f.store(value, f.gep(u, p * distance, self.element))

    def output_kernel(self, rows: int, columns: int, channels: int, distance: int) -> str:
        """``output(slots, m, y, pixel, channel)``: rows x columns results of a tile.

        Positions of M are `distance` elements apart; `channels` of the block count.
        """
        name = f"{self.name}_output_{rows}x{columns}x{channels}"
        if name in self.module:
            return name
        parameters = [("ptr", "slots"), ("ptr noalias readonly", "m"), ("ptr noalias", "y")]
        f = self.module.function(name, [*parameters, ("i64", "pixel"), ("i64", "channel")])
        slots, m, y, pixel, channel = f.arguments
        pointers = tuple(slot(f, slots, 3 + i) for i in range(self.pointers - 3))
        matrix, _, _ = transform.matrices(self.problem.m)
        a, width = self.tiles.side, self.problem.out_w
        for j in range(0, channels, self.lanes):
            count = min(self.lanes, channels - j)
            x = [
                [
                    f.load(self.type, f.gep(m, (p * a + q) * distance + j, self.element))
                    for q in range(a)
                ]
                for p in range(a)
            ]
            result = transform.apply_both(f, matrix[:rows], matrix[:columns], x)
            for p, values in enumerate(result):
                for q, value in enumerate(values):
                    if self.problem.epilogue is not None:
                        place = Place(
                            f.add(pixel, p * width + q),
                            f.add(channel, j),
                            count,
                            pointers,
                            self.memory.element,
                        )
                        value = self.problem.epilogue.apply(f, value, place)
                    at = self.out.gep(f, y, (p * width + q) * self.pitch + j)
                    self.out.store(f, value, at, count)
        f.ret()
        return name

    def product_kernel(self, rows: int, depth: int, again: bool, distances: Strides) -> str:
        """``product(v, u, m)``: rows of M[p], added to what is there if `again`."""
        name = f"{self.name}_product_{rows}x{depth}" + ("_again" if again else "")
        if name in self.module:
            return name
        parameters = [("ptr noalias readonly", "v"), ("ptr noalias readonly", "u")]
        f = self.module.function(name, [*parameters, ("ptr noalias", "m")])
        v, u, m = f.arguments
        start = None
        if again:
            start = microkernel.load_tile(f, m, self.block, rows, self.block, self.type)
        tile = microkernel.outer_product(
            f, v, u, depth, rows, self.shape.vectors, self.type, distances, 2, 0, start
        )
        microkernel.store_tile(f, tile, m, self.block, self.block)
        f.ret()
        return name

    def emit_products(
        self, f: Function, v: Value, u: Value, m: Value, tiles: int, depth: int, again: bool,
        distances: tuple[int, int, int],
    ) -> None:  # fmt: skip
        """M[p] = V[p] U[p] (+ M[p]) for all positions, which are `distances` apart in v, u, m."""
        strides = Strides(self.tiles.row, 1, self.block)
        with f.loop(0, self.tiles.positions) as p:
            v_p, u_p, m_p = (
                f.gep(x, f.mul(p.index, d), self.element)
                for x, d in zip((v, u, m), distances, strict=True)
            )
            done = 0
            parts = microkernel.even_parts(tiles, self.shape.rows)
            for rows in dict.fromkeys(parts):
                kernel = self.product_kernel(rows, depth, again, strides)
                with f.loop(0, parts.count(rows)) as loop:
                    at = f.add(f.mul(loop.index, rows), done)
                    f.call(
                        kernel,
                        "void",
                        f.gep(v_p, f.mul(at, self.tiles.row), self.element),
                        u_p,
                        f.gep(m_p, f.mul(at, self.block), self.element),
                    )
                done += parts.count(rows) * rows

    def _each_block_width(self, f: Function, block: Operand) -> Iterator[int]:
        return each_size(f, block, self.blocks, self.block, self.last_block)

    def emit_output(
        self, f: Function, slots: Value, m: Value, unit: Operand, block: Operand, distance: int,
        out: Value,
    ) -> None:  # fmt: skip
        """Transform back one unit of one block of target channels, and store it."""
        problem, tiles = self.problem, self.tiles
        image, row = f.udiv(unit, tiles.high), f.urem(unit, tiles.high)
        channel = f.mul(block, self.block)
        line = f.add(f.mul(image, problem.out_h), f.mul(row, problem.m))
        pixel = f.mul(line, problem.out_w)
        if problem.target_layout == "NHWC":
            start = f.add(f.mul(pixel, problem.target_channels), channel)
            out = self.memory.gep(f, slot(f, slots, TARGET), start)
        last_row = problem.out_h - (tiles.high - 1) * problem.m
        for channels in self._each_block_width(f, block):
            for rows in each_size(f, row, tiles.high, problem.m, last_row):
                self._output_row(f, slots, m, out, pixel, channel, rows, channels, distance)
                if problem.target_layout == "NCHW":
                    self._transpose_out(f, slots, out, image, row, channel, rows, channels)

    def _output_row(
        self, f: Function, slots: Value, m: Value, out: Value, pixel: Operand, channel: Operand,
        rows: int, channels: int, distance: int,
    ) -> None:  # fmt: skip
        """The tiles of one unit."""
        problem, wide = self.problem, self.tiles.wide
        last = problem.out_w - (wide - 1) * problem.m
        whole = wide if last == problem.m else wide - 1

        def tile(j: Operand, columns: int) -> None:
            kernel = self.output_kernel(rows, columns, channels, distance)
            f.call(
                kernel,
                "void",
                slots,
                f.gep(m, f.mul(j, self.block), self.element),
                self.out.gep(f, out, f.mul(j, problem.m * self.pitch)),
                f.add(pixel, f.mul(j, problem.m)),
                channel,
            )

        if whole:
            with f.loop(0, whole) as loop:
                tile(loop.index, problem.m)
        if whole < wide:
            tile(whole, last)

    def _transpose_out(
        self, f: Function, slots: Value, out: Value, image: Operand, row: Operand,
        channel: Operand, rows: int, channels: int,
    ) -> None:  # fmt: skip
        """Copy a unit from [row][column][channel] to its planes."""
        problem = self.problem
        plane = problem.out_h * problem.out_w
        pixels = rows * problem.out_w
        known = 0 if pixels % self.lanes else pixels
        name = f"{self.name}_planes{channels}x{known}"
        if name not in self.module:
            emit_transpose(
                self.module, name, channels, self.block, plane, self.type, None, self.memory, known
            )
        start = f.add(
            f.mul(f.add(f.mul(image, problem.target_channels), channel), plane),
            f.mul(row, problem.m * problem.out_w),
        )
        target = self.memory.gep(f, slot(f, slots, TARGET), start)
        f.call(name, "void", out, target, pixels)

    def _stage(self, f: Function, slots: Value, unit: Operand, staged: Value) -> None:
        """Stage the source rows of a unit."""
        channels = self.problem.source_channels
        self.tiles.emit_stage(f, slot(f, slots, SOURCE), unit, staged, channels, channels)

    # by tiles

    @property
    def v_bytes(self) -> int:
        return self.tiles.positions * self.chunk_tiles * self.tiles.row * self.size

    @property
    def m_bytes(self) -> int:
        return self.tiles.positions * self.chunk_tiles * self.block * self.size

    def emit_by_tiles(self) -> Kernel:
        """Add the kernel that goes by tiles; its pointers: source, weight, target, epilogue's."""
        weights = self._emit_weight_chunk()
        chunk = self._emit_tile_chunk()
        f = self.module.function(self.name, [("ptr", "slots")])
        (slots,) = f.arguments
        u_bytes = self.u_block * self.blocks * self.size
        f.parallel_for(weights, slots, self.blocks * self.weight_parts, u_bytes // 8)
        f.parallel_for(chunk, slots, self.chunks, self._work)
        f.ret()
        own = self.tiles.stage_bytes + self.v_bytes + self.m_bytes + self.out_bytes
        return Kernel(self.name, self.pointers, self.pointers + 1, u_bytes, own, self._work)

    @property
    def weight_parts(self) -> int:
        """Chunks into which the source channels of a block's weights are cut."""
        return math.ceil(self.problem.source_channels / self.filters.depth)

    @property
    def _work(self) -> int:
        problem, tiles = self.problem, self.tiles
        rows = tiles.positions * tiles.units * tiles.wide
        flops = 2.0 * rows * problem.source_channels * problem.target_channels
        return int(flops / GFLOPS_GUESS)

    def _emit_weight_chunk(self) -> str:
        """A chunk makes U of some source channels of one block."""
        name = f"{self.name}_weights"
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        block, part = f.udiv(i, self.weight_parts), f.urem(i, self.weight_parts)
        channels, depth = self.problem.source_channels, self.filters.depth
        low = f.mul(part, depth)
        k, c, _, _ = self.problem.weight_strides
        start = f.add(f.mul(f.mul(block, self.block), k), f.mul(low, c))
        w = self.memory.gep(f, slot(f, slots, WEIGHT), start)
        at = f.add(f.mul(block, self.u_block), f.mul(low, self.block))
        u = f.gep(slot(f, slots, self.pointers), at, self.element)
        last = channels - (self.weight_parts - 1) * depth
        for columns in self._each_block_width(f, block):
            for count in each_size(f, part, self.weight_parts, depth, last):
                kernel = self.weight_kernel(count, columns, channels * self.block)
                f.call(kernel, "void", w, u)
        f.ret()
        return name

    def _emit_tile_chunk(self) -> str:
        name = f"{self.name}_tiles"
        f = self.module.function(name, CHUNK)
        slots, i, thread = f.arguments
        tiles = self.tiles
        memory = slot(f, slots, self.pointers)
        u_bytes = self.u_block * self.blocks * self.size
        own = tiles.stage_bytes + self.v_bytes + self.m_bytes + self.out_bytes
        staged = thread_memory(f, memory, u_bytes, own, thread)
        v = f.gep(staged, tiles.stage_bytes, "i8")
        m = f.gep(v, self.v_bytes, "i8")
        out = f.gep(m, self.m_bytes, "i8")
        first = f.mul(i, self.units)
        count = f.minimum(f.sub(tiles.units, first), self.units)
        v_distance, m_distance = self.chunk_tiles * tiles.row, self.chunk_tiles * self.block
        with f.loop(0, count) as unit:
            self._stage(f, slots, f.add(first, unit.index), staged)
            at = f.gep(v, f.mul(unit.index, tiles.wide * tiles.row), self.element)
            tiles.emit_transform(f, staged, at, v_distance)
        channels = self.problem.source_channels
        distances = (v_distance, channels * self.block, m_distance)
        with f.loop(0, self.blocks) as block:
            u = f.gep(memory, f.mul(block.index, self.u_block), self.element)
            self.emit_products(f, v, u, m, self.chunk_tiles, channels, False, distances)
            with f.loop(0, count) as unit:
                at = f.gep(m, f.mul(unit.index, tiles.wide * self.block), self.element)
                place = f.add(first, unit.index)
                self.emit_output(f, slots, at, place, block.index, m_distance, out)
        f.ret()
        return name

    # by channels

    @property
    def all_tiles(self) -> int:
        return self.tiles.units * self.tiles.wide

    def emit_by_channels(self) -> Kernel:
        """Add the kernel that goes by target channels; pointers as by tiles."""
        tiles = self.tiles
        inputs = self._emit_input_chunk()
        chunk = self._emit_channel_chunk()
        f = self.module.function(self.name, [("ptr", "slots")])
        (slots,) = f.arguments
        v_bytes = tiles.positions * self.all_tiles * tiles.row * self.size
        f.parallel_for(inputs, slots, tiles.units, v_bytes // 8)
        f.parallel_for(chunk, slots, self.blocks, self._work)
        f.ret()
        own = max(self._channel_bytes, tiles.stage_bytes)
        return Kernel(self.name, self.pointers, self.pointers + 1, v_bytes, own, self._work)

    @property
    def u_distance(self) -> int:
        """Elements between positions of a block of U, which must not share sets of the cache."""
        return self.depth * self.block + 2 * self.lanes

    @property
    def _channel_bytes(self) -> int:
        u = self.tiles.positions * self.u_distance * self.size
        m = self.tiles.positions * self.all_tiles * self.block * self.size
        return u + m + self.out_bytes

    def _emit_input_chunk(self) -> str:
        """A chunk makes V of one unit."""
        name = f"{self.name}_inputs"
        f = self.module.function(name, CHUNK)
        slots, i, thread = f.arguments
        tiles = self.tiles
        memory = slot(f, slots, self.pointers)
        v_bytes = tiles.positions * self.all_tiles * tiles.row * self.size
        own = max(self._channel_bytes, tiles.stage_bytes)
        staged = thread_memory(f, memory, v_bytes, own, thread)
        self._stage(f, slots, i, staged)
        v = f.gep(memory, f.mul(i, tiles.wide * tiles.row), self.element)
        tiles.emit_transform(f, staged, v, self.all_tiles * tiles.row)
        f.ret()
        return name

    def _emit_channel_chunk(self) -> str:
        """A chunk makes one block of target channels of everything."""
        name = f"{self.name}_channels"
        f = self.module.function(name, CHUNK)
        slots, block, thread = f.arguments
        tiles, channels = self.tiles, self.problem.source_channels
        memory = slot(f, slots, self.pointers)
        v_bytes = tiles.positions * self.all_tiles * tiles.row * self.size
        own = max(self._channel_bytes, tiles.stage_bytes)
        u = thread_memory(f, memory, v_bytes, own, thread)
        m = f.gep(u, tiles.positions * self.u_distance * self.size, "i8")
        m_distance = self.all_tiles * self.block
        out = f.gep(m, tiles.positions * m_distance * self.size, "i8")
        rest = channels % self.depth
        self._source_block(f, slots, memory, u, m, block, 0, min(self.depth, channels), False)
        with f.loop(self.depth, channels - rest, self.depth) as loop:
            self._source_block(f, slots, memory, u, m, block, loop.index, self.depth, True)
        if rest and channels > self.depth:
            self._source_block(f, slots, memory, u, m, block, channels - rest, rest, True)
        with f.loop(0, tiles.units) as unit:
            at = f.gep(m, f.mul(unit.index, tiles.wide * self.block), self.element)
            self.emit_output(f, slots, at, unit.index, block, m_distance, out)
        f.ret()
        return name

    def _source_block(
        self, f: Function, slots: Value, v: Value, u: Value, m: Value, block: Value,
        channel: Operand, depth: int, again: bool,
    ) -> None:  # fmt: skip
        """Make U of a block of source channels and add its products."""
        k, c, _, _ = self.problem.weight_strides
        start = f.add(f.mul(f.mul(block, self.block), k), f.mul(channel, c))
        w = self.memory.gep(f, slot(f, slots, WEIGHT), start)
        u_distance = self.u_distance
        for columns in self._each_block_width(f, block):
            for first, count in each_block(f, depth, self.filters.depth):
                kernel = self.weight_kernel(count, columns, u_distance)
                w_at = self.memory.gep(f, w, f.mul(first, c))
                f.call(kernel, "void", w_at, f.gep(u, f.mul(first, self.block), self.element))
        distances = (self.all_tiles * self.tiles.row, u_distance, self.all_tiles * self.block)
        v = f.gep(v, channel, self.element)
        self.emit_products(f, v, u, m, self.all_tiles, depth, again, distances)
