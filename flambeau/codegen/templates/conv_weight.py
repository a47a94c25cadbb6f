"""The weight gradient of a convolution by direct summation, for any window, stride and groups.

    dw[k, c, r, s] = sum over images and pixels of x[.., c at the pixel moved by (r, s)] dy[.., k]

A chunk owns a block of source channels and of target channels for a share of the pictures, in units
of row bands. Each band of x is staged channels-last with zero borders. A register tile holds some
elements (r, s, c) of the window times some target channels and sums over the band's pixels. A last
phase adds the shares in order and stores the weight's layout. How the pictures are shared depends
on the shape alone, so the result does not depend on the number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from flambeau.codegen.target import Target
from flambeau.codegen.templates import microkernel
from flambeau.codegen.templates.conv_direct import CHUNK
from flambeau.codegen.templates.conv_filters import Filters, each_block, each_size
from flambeau.codegen.templates.conv_spec import ConvSpec
from flambeau.codegen.templates.conv_stage import Stage
from flambeau.codegen.templates.entry import Kernel, slot, thread_memory
from flambeau.codegen.templates.gemm_plan import ELEMENTS, GFLOPS_GUESS
from flambeau.codegen.templates.strided import emit_transpose
from flambeau.codegen.text import Function, Module, Operand, Value, size_of, vector, zero

X, DY, DW, MEMORY = range(4)
WANTED_CHUNKS = 16
FEW_ROWS = 160  # windows of at most so many elements, in short runs, get kernels with fixed offsets
CHANNEL_BLOCK = 64
SUMS_BYTES = 384 * 1024


@dataclass(slots=True)
class WeightGradient:
    """Emits the weight gradient of one convolution."""

    module: Module
    name: str
    spec: ConvSpec
    target: Target
    element: str = field(init=False)
    type: str = field(init=False)
    lanes: int = field(init=False)
    tile: microkernel.Shape = field(init=False)
    channels: int = field(init=False)  # source channels of a chunk
    span: int = field(init=False)  # target channels of a chunk
    band: int = field(init=False)  # rows of dy staged together
    shares: int = field(init=False)  # parts the pictures are divided into

    def __post_init__(self) -> None:
        spec = self.spec
        self.element = ELEMENTS[spec.dtype]
        self.lanes = self.target.lanes(self.element)
        self.type = vector(self.lanes, self.element)
        self.tile = microkernel.tile_shape(self.target, self.element)
        blocks = math.ceil(spec.group_c / CHANNEL_BLOCK)
        self.channels = math.ceil(spec.group_c / blocks)
        fits = SUMS_BYTES // (spec.r * spec.s * self.channels * self.size)
        padded = self._padded(spec.group_k)
        self.span = min(padded, max(1, fits // self.tile.columns) * self.tile.columns)
        row = self.stage_width * self.channels + spec.out_w * min(self.span, spec.group_k)
        fits = self.target.level2_bytes // 4 // (row * spec.stride[0] * self.size)
        self.band = math.ceil(spec.out_h / math.ceil(spec.out_h / max(1, fits)))
        grid = spec.groups * self.channel_blocks * self.spans
        self.shares = max(1, min(spec.n * self.bands, WANTED_CHUNKS // grid))

    # geometry

    @property
    def size(self) -> int:
        return size_of(self.element)

    def _padded(self, count: int) -> int:
        return -(-count // self.lanes) * self.lanes

    @property
    def channel_blocks(self) -> int:
        return math.ceil(self.spec.group_c / self.channels)

    @property
    def last_channels(self) -> int:
        return self.spec.group_c - (self.channel_blocks - 1) * self.channels

    @property
    def spans(self) -> int:
        return math.ceil(self.spec.group_k / self.span)

    @property
    def bands(self) -> int:
        return math.ceil(self.spec.out_h / self.band)

    @property
    def stage_width(self) -> int:
        return (
            (self.spec.out_w - 1) * self.spec.stride[1]
            + (self.spec.s - 1) * self.spec.dilation[1]
            + 1
        )

    @property
    def rows(self) -> int:
        """Elements (r, s, c) of a chunk's window."""
        return self.spec.r * self.spec.s * self.channels

    @property
    def sums(self) -> int:
        """Elements of a chunk's sums: [r, s, c][target channel]."""
        return self.rows * self.span

    @property
    def chunks(self) -> int:
        return self.shares * self.spec.groups * self.channel_blocks * self.spans

    @property
    def stage_bytes(self) -> int:
        rows = (self.band - 1) * self.spec.stride[0]
        rows += (self.spec.r - 1) * self.spec.dilation[0] + 1
        return (rows * self.stage_width * self.channels + self.lanes) * self.size

    @property
    def dy_bytes(self) -> int:
        """The band of dy, channels last, where dy is channels-first or its rows end in part
        vectors that cannot be read past the end.
        """
        if not self.stages_dy:
            return 0
        return (self.band * self.spec.out_w * self.span + self.lanes) * self.size

    @property
    def stages_dy(self) -> bool:
        ragged = self.spec.group_k % self.lanes
        return self.spec.y_layout == "NCHW" or bool(ragged and not self.target.masked_memory)

    @property
    def dy_pitch(self) -> int:
        return self.span if self.stages_dy else self.spec.k

    def offsets(self) -> list[int]:
        """Staged distance of every element (r, s, c) from the pixel's first."""
        spec, width = self.spec, self.stage_width
        return [
            (r * spec.dilation[0] * width + s * spec.dilation[1]) * self.channels + c
            for r in range(spec.r)
            for s in range(spec.s)
            for c in range(self.channels)
        ]

    def segments(self) -> list[tuple[int, int]]:
        """(staged offset, length) of runs of contiguous elements."""
        spec, width = self.spec, self.stage_width
        down = spec.dilation[0] * width * self.channels
        if spec.dilation[1] == 1:
            return [(r * down, spec.s * self.channels) for r in range(spec.r)]
        across = spec.dilation[1] * self.channels
        return [
            (r * down + s * across, self.channels) for r in range(spec.r) for s in range(spec.s)
        ]

    # kernels

    def tile_kernel(self, name: str, offsets: list[int], columns: int) -> str:
        """``tile(x, dy, sums, rows)``: add the products of a band's pixels to a tile of sums."""
        name = f"{self.name}_{name}x{columns}"
        if name in self.module:
            return name
        parameters = [("ptr noalias readonly", "x"), ("ptr noalias readonly", "dy")]
        parameters += [("ptr noalias", "sums"), ("i64", "rows")]
        f = self.module.function(name, parameters)
        x, dy, sums, rows = f.arguments
        spec, vectors = self.spec, math.ceil(columns / self.lanes)
        width = vectors * self.lanes
        tile = microkernel.load_tile(f, sums, self.span, len(offsets), width, self.type)
        counts = self._dy_counts(columns)
        x_row = spec.stride[0] * self.stage_width * self.channels
        unroll = next(u for u in (4, 2, 1) if spec.out_w % u == 0)
        with f.loop(0, rows, carry=[v for row in tile for v in row]) as i:
            x_i = f.gep(x, f.mul(i.index, x_row), self.element)
            dy_i = f.gep(dy, f.mul(i.index, spec.out_w * self.dy_pitch), self.element)
            with f.loop(0, spec.out_w, unroll, carry=i.carried) as j:
                values = list(j.carried)
                x_j = f.gep(x_i, f.mul(j.index, spec.stride[1] * self.channels), self.element)
                dy_j = f.gep(dy_i, f.mul(j.index, self.dy_pitch), self.element)
                for u in range(unroll):
                    x_u = f.gep(x_j, u * spec.stride[1] * self.channels, self.element)
                    dy_u = f.gep(dy_j, u * self.dy_pitch, self.element)
                    values = self._step(f, x_u, dy_u, offsets, counts, values)
                j.next = values
            i.next = j.results
        flat = i.results
        tile = [flat[a * vectors : (a + 1) * vectors] for a in range(len(offsets))]
        microkernel.store_tile(f, tile, sums, self.span, width)
        f.ret()
        return name

    def _dy_counts(self, columns: int) -> list[int]:
        if self.stages_dy:
            return [self.lanes] * math.ceil(columns / self.lanes)
        return microkernel.lane_counts(columns, self.lanes)

    def _step(
        self,
        f: Function,
        x: Value,
        dy: Value,
        offsets: list[int],
        counts: list[int],
        sums: list[Value],
    ) -> list[Value]:
        row = [
            f.load_lanes(self.type, f.gep(dy, j * self.lanes, self.element), n)
            for j, n in enumerate(counts)
        ]
        out = []
        for i, offset in enumerate(offsets):
            value = f.splat(f.load(self.element, f.gep(x, offset, self.element)), self.lanes)
            out += [f.fma(value, y, sums[i * len(row) + j]) for j, y in enumerate(row)]
        return out

    def _window(
        self, f: Function, staged: Value, dy: Value, sums: Value, rows: Operand, columns: int
    ) -> None:
        """All tiles of the window for one block of target channels."""
        longest = max(length for _, length in self.segments())
        if self.rows <= FEW_ROWS and longest < 3 * self.tile.rows:
            offsets, done = self.offsets(), 0
            for n, height in enumerate(microkernel.even_parts(self.rows, self.tile.rows)):
                part = offsets[done : done + height]
                kernel = self.tile_kernel(f"part{n}", part, columns)
                at = f.gep(sums, done * self.span, self.element)
                f.call(kernel, "void", staged, dy, at, rows)
                done += height
            return
        first = 0
        for offset, length in self.segments():
            done = 0
            parts = microkernel.even_parts(length, self.tile.rows)
            for height in dict.fromkeys(parts):
                kernel = self.tile_kernel(f"tile{height}", list(range(height)), columns)
                with f.loop(0, parts.count(height)) as loop:
                    j = f.add(f.mul(loop.index, height), done)
                    x = f.gep(staged, f.add(j, offset), self.element)
                    at = f.gep(sums, f.mul(f.add(j, first), self.span), self.element)
                    f.call(kernel, "void", x, dy, at, rows)
                done += parts.count(height) * height
            first += length

    # phases

    def emit_chunk(self) -> str:
        name = f"{self.name}_chunk"
        f = self.module.function(name, CHUNK)
        slots, i, thread = f.arguments
        spec = self.spec
        memory = slot(f, slots, MEMORY)
        sums = f.gep(memory, f.mul(i, self.sums), self.element)
        f.clear(sums, self.sums * self.size)
        own = thread_memory(f, memory, self.sums_bytes, self.stage_bytes + self.dy_bytes, thread)
        span, i = f.urem(i, self.spans), f.udiv(i, self.spans)
        block, i = f.urem(i, self.channel_blocks), f.udiv(i, self.channel_blocks)
        group, part = f.urem(i, spec.groups), f.udiv(i, spec.groups)
        units = spec.n * self.bands
        low = f.udiv(f.mul(part, units), self.shares)
        high = f.udiv(f.mul(f.add(part, 1), units), self.shares)
        with f.loop(low, high) as unit:
            image, band = f.udiv(unit.index, self.bands), f.urem(unit.index, self.bands)
            first = f.mul(band, self.band)
            rows = f.minimum(f.sub(spec.out_h, first), self.band)
            for channels in each_size(
                f, block, self.channel_blocks, self.channels, self.last_channels
            ):
                self._stage_x(f, slots, own, (image, group, block), first, rows, channels)
            self._band(f, slots, own, (image, group, span), first, rows, sums)
        f.ret()
        return name

    @property
    def sums_bytes(self) -> int:
        return -(-self.chunks * self.sums * self.size // 64) * 64

    def _stage_x(
        self,
        f: Function,
        slots: Value,
        staged: Value,
        place: tuple[Operand, Operand, Operand],
        first: Operand,
        rows: Operand,
        channels: int,
    ) -> None:
        """Stage the rows of x that a band of dy meets; a last block may leave channels unset."""
        spec = self.spec
        image, group, block = place
        stage = Stage(
            self.module, f"{self.name}_stage{channels}", self.type, spec.x_layout, spec.h, spec.w,
            spec.c, -spec.padding[1], self.stage_width, channels, self.channels,
        )  # fmt: skip
        channel = f.add(f.mul(group, spec.group_c), f.mul(block, self.channels))
        plane = spec.h * spec.w
        start = f.add(
            f.mul(image, spec.c * plane), f.mul(channel, plane if spec.x_layout == "NCHW" else 1)
        )
        source = f.gep(slot(f, slots, X), start, self.element)
        reach = (spec.r - 1) * spec.dilation[0] + 1
        count = f.add(f.mul(f.sub(rows, 1), spec.stride[0]), reach)
        begin = f.sub(f.mul(first, spec.stride[0]), spec.padding[0])
        stage.emit(f, source, staged, begin, count)

    def _band(
        self,
        f: Function,
        slots: Value,
        own: Value,
        place: tuple[Operand, Operand, Operand],
        first: Operand,
        rows: Operand,
        sums: Value,
    ) -> None:
        """Add a staged band to the sums of all blocks of target channels of the span."""
        spec, block = self.spec, self.tile.columns
        image, group, span = place
        channel = f.add(f.mul(group, spec.group_k), f.mul(span, self.span))
        dy = slot(f, slots, DY)
        pixel = f.mul(f.add(f.mul(image, spec.out_h), first), spec.out_w)
        if self.stages_dy:
            staged = f.gep(own, self.stage_bytes, "i8")
            for wide in each_size(f, span, self.spans, self.span, self._last_span):
                self._stage_dy(f, dy, staged, image, channel, first, rows, wide)
            dy = staged
        else:
            dy = f.gep(dy, f.add(f.mul(pixel, spec.k), channel), self.element)
        for wide in each_size(f, span, self.spans, self.span, self._last_span):
            for column, columns in each_block(f, wide, block):
                at = f.gep(sums, column, self.element)
                self._window(f, own, f.gep(dy, column, self.element), at, rows, columns)

    @property
    def _last_span(self) -> int:
        return self.spec.group_k - (self.spans - 1) * self.span

    def _stage_dy(
        self,
        f: Function,
        dy: Value,
        staged: Value,
        image: Operand,
        channel: Operand,
        first: Operand,
        rows: Operand,
        wide: int,
    ) -> None:
        """Copy a band of dy to [pixel][target channel], zeros past `wide` channels."""
        spec = self.spec
        plane = spec.out_h * spec.out_w
        name = f"{self.name}_stage_dy{wide}"
        channels_first = spec.y_layout == "NCHW"
        if channels_first and name not in self.module:
            emit_transpose(self.module, name, spec.out_w, plane, self.span, self.type, rows=wide)
        if self._padded(wide) > wide:
            f.clear(staged, f.mul(rows, spec.out_w * self.span * self.size))
        with f.loop(0, rows) as loop:
            row = f.add(first, loop.index)
            target = f.gep(staged, f.mul(loop.index, spec.out_w * self.span), self.element)
            if channels_first:
                start = f.add(
                    f.mul(f.add(f.mul(image, spec.k), channel), plane), f.mul(row, spec.out_w)
                )
                f.call(name, "void", f.gep(dy, start, self.element), target, wide)
            else:
                pixel = f.mul(f.add(f.mul(image, spec.out_h), row), spec.out_w)
                with f.loop(0, spec.out_w) as j:
                    start = f.add(f.mul(f.add(pixel, j.index), spec.k), channel)
                    at = f.gep(target, f.mul(j.index, self.span), self.element)
                    f.copy(at, f.gep(dy, start, self.element), wide * self.size)

    @property
    def filters(self) -> Filters:
        return Filters(
            self.module, f"{self.name}_filters", self.type, self.spec.w_strides, self.spec.r,
            self.spec.s, self.tile.columns,
        )  # fmt: skip

    @property
    def store_parts(self) -> int:
        """Chunks of source channels of the last phase, for each block."""
        return math.ceil(self.channels / self.filters.depth)

    def emit_store(self) -> str:
        """The last phase; a chunk finishes some source channels of one block."""
        name = f"{self.name}_store"
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        spec = self.spec
        k_stride, c_stride, _, _ = spec.w_strides
        part, chunk = f.urem(i, self.store_parts), f.udiv(i, self.store_parts)
        span, i = f.urem(chunk, self.spans), f.udiv(chunk, self.spans)
        block, group = f.urem(i, self.channel_blocks), f.udiv(i, self.channel_blocks)
        low = f.mul(part, self.filters.depth)
        at = f.add(f.mul(chunk, self.sums), f.mul(low, self.span))
        sums = f.gep(slot(f, slots, MEMORY), at, self.element)
        k = f.add(f.mul(group, spec.group_k), f.mul(span, self.span))
        start = f.mul(f.add(f.mul(block, self.channels), low), c_stride)
        target = f.gep(slot(f, slots, DW), f.add(start, f.mul(k, k_stride)), self.element)
        for channels in each_size(f, block, self.channel_blocks, self.channels, self.last_channels):
            count = f.minimum(f.sub(channels, low), self.filters.depth)
            for wide in each_size(f, span, self.spans, self.span, self._last_span):
                self._store_block(f, sums, target, count, wide)
        f.ret()
        return name

    def _store_block(
        self, f: Function, sums: Value, target: Value, count: Operand, wide: int
    ) -> None:
        """Up to `depth` source channels of a block; `count` may be 0 or less."""
        filters, width = self.filters, self.tile.columns
        block = f.alloca(self.element, filters.elements)
        for k in range(0, wide, width):
            columns = min(width, wide - k)
            with f.loop(0, filters.taps) as tap, f.loop(0, count) as c:
                row = f.add(f.mul(tap.index, self.channels), c.index)
                at = f.gep(sums, f.add(f.mul(row, self.span), k), self.element)
                row = f.add(f.mul(c.index, filters.taps), tap.index)
                to = f.gep(block, f.mul(row, width), self.element)
                for lane in range(0, columns, self.lanes):
                    total = self._total(f, f.gep(at, lane, self.element))
                    f.store(total, f.gep(to, lane, self.element))
            to = f.gep(target, k * self.spec.w_strides[0], self.element)
            sizes = self.channels, self.last_channels
            filters.store_some(f, block, to, count, sizes, columns)

    def _total(self, f: Function, sums: Value) -> Value:
        """The shares of a vector of sums, added in order."""
        distance = self.sums * self.chunks // self.shares
        with f.loop(0, self.shares, carry=[zero(self.type)]) as share:
            x = f.load(self.type, f.gep(sums, f.mul(share.index, distance), self.element))
            share.next = [f.fadd(share.carried[0], x)]
        return share.results[0]

    def emit(self) -> Kernel:
        """Add the kernel; its pointers: x, dy, dw."""
        spec = self.spec
        chunk, store = self.emit_chunk(), self.emit_store()
        f = self.module.function(self.name, [("ptr", "slots")])
        (slots,) = f.arguments
        work = int(spec.flops / GFLOPS_GUESS)
        f.parallel_for(chunk, slots, self.chunks, work)
        parts = self.store_parts * self.chunks // self.shares
        f.parallel_for(store, slots, parts, self.sums_bytes // 4)
        f.ret()
        own = self.stage_bytes + self.dy_bytes
        return Kernel(self.name, 3, 4, self.sums_bytes, own, work)
