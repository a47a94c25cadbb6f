"""The weight gradient of a 3 x 3 convolution of stride 1 by Winograd's filtering.

    dw = G^T [sum over tiles of (B^T d B) * (A dy A^T)] G

with d the inputs and dy the m x m output gradients of a tile. A chunk owns a block of source and
one of target channels for a share of the units. It transforms some units of both to V and Z in its
own memory, and adds V[p]^T Z[p] to its sums for each position p. A last phase adds the shares in
order, transforms back and stores the weight's layout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from flambeau.codegen.target import Target
from flambeau.codegen.templates import microkernel
from flambeau.codegen.templates import winograd_transform as transform
from flambeau.codegen.templates.conv_filters import Filters, each_size
from flambeau.codegen.templates.conv_spec import ConvSpec
from flambeau.codegen.templates.entry import Kernel, slot, thread_memory
from flambeau.codegen.templates.gemm_plan import ELEMENTS, GFLOPS_GUESS
from flambeau.codegen.templates.microkernel import Strides
from flambeau.codegen.templates.stored import COMPUTED, Stored
from flambeau.codegen.templates.winograd_tiles import Tiles
from flambeau.codegen.text import Function, Module, Operand, Value, size_of, vector
from flambeau.runtime import pool

CHUNK = [("ptr", "slots"), ("i64", "i"), ("i64", "thread")]
X, DY, DW, MEMORY = range(4)
CHANNELS = 64  # of a block, at most
MOST_SHARES = 8


@dataclass(slots=True)
class WinogradWeight:
    """Emits the weight gradient of one convolution."""

    module: Module
    name: str
    spec: ConvSpec
    target: Target
    units: int = 0  # rows of tiles transformed together; 0 chooses
    span: int = 0  # target channels of a block; 0 chooses
    channels: int = field(init=False)  # source channels of a block
    x_tiles: Tiles = field(init=False)
    dy_tiles: Tiles = field(init=False)
    memory: Stored = field(init=False)
    element: str = field(init=False)
    type: str = field(init=False)
    lanes: int = field(init=False)
    shape: microkernel.Shape = field(init=False)

    def __post_init__(self) -> None:
        spec = self.spec
        self.memory = Stored(ELEMENTS[spec.dtype], self.target)
        self.element = COMPUTED[self.memory.element]
        self.lanes = self.target.lanes(self.element)
        self.type = vector(self.lanes, self.element)
        self.shape = microkernel.tile_shape(self.target, self.element)
        self.channels = math.ceil(spec.c / math.ceil(spec.c / CHANNELS))
        self.span = self.span or self._span()
        m = spec.winograd
        output, _, inputs = transform.matrices(m)
        high, wide = math.ceil(spec.out_h / m), math.ceil(spec.out_w / m)
        top, left = -spec.padding[0], -spec.padding[1]
        self.x_tiles = Tiles(
            self.module, f"{self.name}_x", spec.n, self.channels, spec.x_layout, spec.h, spec.w,
            top, left, m + 2, m, high, wide, inputs, self.type, self.memory,
        )  # fmt: skip
        self.dy_tiles = Tiles(
            self.module, f"{self.name}_dy", spec.n, self.span, spec.y_layout, spec.out_h,
            spec.out_w, 0, 0, m, m, high, wide, transform.transpose(output), self.type, self.memory,
        )  # fmt: skip
        self.units = self.units or self._units()

    def _span(self) -> int:
        """Target channels of a block: its sums take a third of the second-level cache."""
        positions = (self.spec.winograd + 2) ** 2
        fits = self.target.level2_bytes // 3 // (positions * self.channels * self.size)
        most = max(self.shape.columns, fits // self.shape.columns * self.shape.columns)
        blocks = math.ceil(self.spec.k / most)
        each = math.ceil(self.spec.k / blocks)
        return math.ceil(each / self.lanes) * self.lanes

    def _units(self) -> int:
        """Units whose V and Z take another third."""
        rows = self.x_tiles.row + self.dy_tiles.row
        unit = self.positions * self.x_tiles.wide * rows * self.size
        fits = max(1, self.target.level2_bytes // 3 // unit)
        return min(fits, math.ceil(self.x_tiles.units / self.shares))

    # geometry

    @property
    def size(self) -> int:
        return size_of(self.element)

    @property
    def positions(self) -> int:
        return self.x_tiles.positions

    @property
    def channel_blocks(self) -> int:
        return math.ceil(self.spec.c / self.channels)

    @property
    def last_channels(self) -> int:
        return self.spec.c - (self.channel_blocks - 1) * self.channels

    @property
    def spans(self) -> int:
        return math.ceil(self.spec.k / self.span)

    @property
    def last_span(self) -> int:
        return self.spec.k - (self.spans - 1) * self.span

    @property
    def grid(self) -> int:
        return self.channel_blocks * self.spans

    @property
    def shares(self) -> int:
        """Parts of the units: enough chunks for this machine, whatever threads are set."""
        wanted = math.ceil(2 * min(pool.machine_cpus(), MOST_SHARES) / self.grid)
        return max(1, min(self.x_tiles.units, wanted))

    @property
    def position(self) -> int:
        """Elements between positions of a chunk's sums."""
        return self.channels * self.span

    @property
    def sums(self) -> int:
        """Elements of a chunk's sums: [position][source channel][target channel]."""
        return self.positions * self.channels * self.span

    @property
    def sums_bytes(self) -> int:
        return -(-self.shares * self.grid * self.sums * self.size // 64) * 64

    @property
    def group_tiles(self) -> int:
        return self.units * self.x_tiles.wide

    def _matrix_bytes(self, tiles: Tiles) -> int:
        return self.positions * self.group_tiles * tiles.row * self.size

    @property
    def thread_bytes(self) -> int:
        x, dy = self.x_tiles, self.dy_tiles
        stage = max(x.stage_bytes, dy.stage_bytes)
        return stage + self._matrix_bytes(x) + self._matrix_bytes(dy)

    # kernels

    def product_kernel(self, rows: int, vectors: int) -> str:
        """``product(v, z, sums, tiles)``: sums[rows][..] += v^T z over so many tiles."""
        name = f"{self.name}_product_{rows}x{vectors}"
        if name in self.module:
            return name
        parameters = [("ptr noalias readonly", "v"), ("ptr noalias readonly", "z")]
        f = self.module.function(name, [*parameters, ("ptr noalias", "sums"), ("i64", "tiles")])
        v, z, sums, tiles = f.arguments
        columns = vectors * self.lanes
        start = microkernel.load_tile(f, sums, self.span, rows, columns, self.type)
        strides = Strides(1, self.x_tiles.row, self.dy_tiles.row)
        tile = microkernel.outer_product(
            f, v, z, tiles, rows, vectors, self.type, strides, 1, 0, start
        )
        microkernel.store_tile(f, tile, sums, self.span, columns)
        f.ret()
        return name

    def _emit_products(self, f: Function, v: Value, z: Value, sums: Value, tiles: Operand) -> None:
        """sums[p] += V[p]^T Z[p] for all positions."""
        columns = [
            min(self.shape.columns, self.span - k) for k in range(0, self.span, self.shape.columns)
        ]
        with f.loop(0, self.positions) as p:
            v_p = f.gep(v, f.mul(p.index, self.group_tiles * self.x_tiles.row), self.element)
            z_p = f.gep(z, f.mul(p.index, self.group_tiles * self.dy_tiles.row), self.element)
            s_p = f.gep(sums, f.mul(p.index, self.channels * self.span), self.element)
            for n, width in enumerate(columns):
                k = n * self.shape.columns
                z_k, s_k = f.gep(z_p, k, self.element), f.gep(s_p, k, self.element)
                self._emit_column(f, v_p, z_k, s_k, width // self.lanes, tiles)

    def _emit_column(
        self, f: Function, v: Value, z: Value, sums: Value, vectors: int, tiles: Operand
    ) -> None:
        """All source channels for one block of target channels."""
        done = 0
        parts = microkernel.even_parts(self.channels, self.shape.rows)
        for rows in dict.fromkeys(parts):
            kernel = self.product_kernel(rows, vectors)
            with f.loop(0, parts.count(rows)) as loop:
                c = f.add(f.mul(loop.index, rows), done)
                at = f.gep(sums, f.mul(c, self.span), self.element)
                f.call(kernel, "void", f.gep(v, c, self.element), z, at, tiles)
            done += parts.count(rows) * rows

    # phases

    def _emit_chunk(self) -> str:
        name = f"{self.name}_chunk"
        f = self.module.function(name, CHUNK)
        slots, i, thread = f.arguments
        memory = slot(f, slots, MEMORY)
        sums = f.gep(memory, f.mul(i, self.sums), self.element)
        f.clear(sums, self.sums * self.size)
        own = thread_memory(f, memory, self.sums_bytes, self.thread_bytes, thread)
        stage = max(self.x_tiles.stage_bytes, self.dy_tiles.stage_bytes)
        v = f.gep(own, stage, "i8")
        z = f.gep(v, self._matrix_bytes(self.x_tiles), "i8")
        share, place = f.udiv(i, self.grid), f.urem(i, self.grid)
        block, span = f.udiv(place, self.spans), f.urem(place, self.spans)
        units = self.x_tiles.units
        low = f.udiv(f.mul(share, units), self.shares)
        high = f.udiv(f.mul(f.add(share, 1), units), self.shares)
        with f.loop(low, high, self.units) as group:
            count = f.minimum(f.sub(high, group.index), self.units)
            with f.loop(0, count) as unit:
                index = f.add(group.index, unit.index)
                self._emit_side(f, slots, X, block, index, unit.index, own, v)
                self._emit_side(f, slots, DY, span, index, unit.index, own, z)
            self._emit_products(f, v, z, sums, f.mul(count, self.x_tiles.wide))
        f.ret()
        return name

    def _emit_side(
        self, f: Function, slots: Value, which: int, block: Operand, unit: Operand, place: Operand,
        staged: Value, v: Value,
    ) -> None:  # fmt: skip
        """Transform one unit of x or dy."""
        spec = self.spec
        if which == X:
            tiles, total, layout = self.x_tiles, spec.c, spec.x_layout
            count, usual, last, plane = (
                self.channel_blocks, self.channels, self.last_channels, spec.h * spec.w,
            )  # fmt: skip
        else:
            tiles, total, layout = self.dy_tiles, spec.k, spec.y_layout
            count, usual, last, plane = (
                self.spans, self.span, self.last_span, spec.out_h * spec.out_w,
            )  # fmt: skip
        step = plane if layout == "NCHW" else 1
        source = self.memory.gep(f, slot(f, slots, which), f.mul(block, usual * step))
        for channels in each_size(f, block, count, usual, last):
            tiles.emit_stage(f, source, unit, staged, channels, total)
        at = f.gep(v, f.mul(place, tiles.wide * tiles.row), self.element)
        tiles.emit_transform(f, staged, at, self.group_tiles * tiles.row)

    @property
    def filters(self) -> Filters:
        return Filters(
            self.module, f"{self.name}_filters", self.type, self.spec.w_strides,
            transform.WINDOW, transform.WINDOW, self.shape.columns, self.memory,
        )  # fmt: skip

    @property
    def store_parts(self) -> int:
        """Chunks of source channels of the last phase, for each block."""
        return math.ceil(self.channels / self.filters.depth)

    def _emit_store(self) -> str:
        """The last phase; a chunk finishes some source channels of one block."""
        name = f"{self.name}_store"
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        part, i = f.urem(i, self.store_parts), f.udiv(i, self.store_parts)
        block, span = f.udiv(i, self.spans), f.urem(i, self.spans)
        k, c, _, _ = self.spec.w_strides
        low = f.mul(part, self.filters.depth)
        at = f.add(f.mul(i, self.sums), f.mul(low, self.span))
        sums = f.gep(slot(f, slots, MEMORY), at, self.element)
        start = f.mul(f.add(f.mul(block, self.channels), low), c)
        start = f.add(start, f.mul(span, self.span * k))
        target = self.memory.gep(f, slot(f, slots, DW), start)
        blocks = (block, self.channel_blocks, self.channels, self.last_channels)
        for channels in each_size(f, *blocks):
            count = f.minimum(f.sub(channels, low), self.filters.depth)
            for wide in each_size(f, span, self.spans, self.span, self.last_span):
                self._store_block(f, sums, target, count, wide)
        f.ret()
        return name

    def _store_block(
        self, f: Function, sums: Value, target: Value, count: Operand, wide: int
    ) -> None:
        """Up to `depth` source channels of a block; `count` may be 0 or less."""
        filters, width = self.filters, self.shape.columns
        block = f.alloca(self.element, filters.elements)
        for j in range(0, wide, width):
            columns = min(width, wide - j)
            with f.loop(0, count) as loop:
                at = f.gep(sums, f.add(f.mul(loop.index, self.span), j), self.element)
                to = f.gep(block, f.mul(loop.index, filters.taps * width), self.element)
                for lane in range(0, columns, self.lanes):
                    sums_at, block_at = (f.gep(p, lane, self.element) for p in (at, to))
                    f.call(self.finish_kernel(), "void", sums_at, block_at)
            to = self.memory.gep(f, target, j * self.spec.w_strides[0])
            sizes = self.channels, self.last_channels
            filters.store_some(f, block, to, count, sizes, columns)

    def finish_kernel(self) -> str:
        """``finish(sums, block)``: one source channel, one vector of target channels.

        Adds the shares and transforms back.
        """
        name = f"{self.name}_finish"
        if name in self.module:
            return name
        parameters = [("ptr noalias readonly", "sums"), ("ptr noalias", "block")]
        f = self.module.function(name, parameters)
        sums, target = f.arguments
        _, matrix, _ = transform.matrices(self.spec.winograd)
        side, distance = self.x_tiles.side, self.position
        x = []
        for p in range(side):
            row = []
            for q in range(side):
                at = f.gep(sums, (p * side + q) * distance, self.element)
                total = f.load(self.type, at)
                for share in range(1, self.shares):
                    other = f.gep(at, share * self.grid * self.sums, self.element)
                    total = f.fadd(total, f.load(self.type, other))
                row.append(total)
            x.append(row)
        back = transform.transpose(matrix)
        result = transform.apply_both(f, back, back, x)
        for tap, value in enumerate(v for row in result for v in row):
            f.store(value, f.gep(target, tap * self.shape.columns, self.element))
        f.ret()
        return name

    def emit(self) -> Kernel:
        """Add the kernel; its pointers: x, dy, dw."""
        chunk, store = self._emit_chunk(), self._emit_store()
        f = self.module.function(self.name, [("ptr", "slots")])
        (slots,) = f.arguments
        flops = 2.0 * self.positions * self.x_tiles.units * self.x_tiles.wide
        work = int(flops * self.spec.c * self.spec.k / GFLOPS_GUESS)
        f.parallel_for(chunk, slots, self.shares * self.grid, work)
        f.parallel_for(store, slots, self.grid * self.store_parts, self.sums_bytes // 4)
        f.ret()
        return Kernel(self.name, 3, 4, self.sums_bytes, self.thread_bytes, work)
