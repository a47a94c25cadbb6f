"""The weight gradient of many channels on small pictures, by Winograd.

As in `winograd_weight`, but V and Z of the whole batch are made first and once, into memory that
all threads share: with few tiles and many blocks of channels each would be made again for every
block otherwise. A chunk owns a block of source and of target channels. Its sums over all tiles
never leave registers; then it transforms them back and stores the weight's layout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from flambeau.codegen.templates import microkernel
from flambeau.codegen.templates.conv_filters import each_size
from flambeau.codegen.templates.conv_spec import ConvSpec
from flambeau.codegen.templates.entry import Kernel, slot, thread_memory
from flambeau.codegen.templates.gemm_plan import GFLOPS_GUESS
from flambeau.codegen.templates.microkernel import Strides
from flambeau.codegen.templates.winograd_tiles import Tiles
from flambeau.codegen.templates.winograd_weight import (
    CHANNELS,
    CHUNK,
    DW,
    DY,
    MEMORY,
    WinogradWeight,
    X,
)
from flambeau.codegen.text import Function, Operand, Value

FEWEST_BLOCKS = 16
MOST_TILES = 64


def suits_sharing(spec: ConvSpec) -> bool:
    """Are there few tiles and many blocks of channels?"""
    m = spec.winograd
    tiles = spec.n * math.ceil(spec.out_h / m) * math.ceil(spec.out_w / m)
    blocks = math.ceil(spec.c / CHANNELS) * math.ceil(spec.k / CHANNELS)
    return tiles <= MOST_TILES and blocks >= FEWEST_BLOCKS


@dataclass(slots=True)
class SharedWinogradWeight(WinogradWeight):
    """Emits the weight gradient of one convolution; `channels` x `span` is a chunk's block."""

    def __post_init__(self) -> None:
        WinogradWeight.__post_init__(self)
        self.x_tiles.channels, self.dy_tiles.channels = self.spec.c, self.spec.k

    def _span(self) -> int:
        return self.shape.columns

    @property
    def tiles(self) -> int:
        return self.x_tiles.units * self.x_tiles.wide

    @property
    def shares(self) -> int:
        return 1

    @property
    def position(self) -> int:
        """Elements between positions of a chunk's sums, which must not share sets of the cache."""
        return self.channels * self.span + 2 * self.lanes

    def _distance(self, tiles: Tiles) -> int:
        """Elements between positions of V or Z."""
        return self.tiles * tiles.row

    @property
    def shared_bytes(self) -> int:
        both = self._distance(self.x_tiles) + self._distance(self.dy_tiles)
        return self.positions * both * self.size

    @property
    def own_bytes(self) -> int:
        stages = max(self.x_tiles.stage_bytes, self.dy_tiles.stage_bytes)
        return max(stages, self.positions * self.position * self.size)

    def _z(self, f: Function, memory: Value) -> Value:
        return f.gep(memory, self.positions * self._distance(self.x_tiles), self.element)

    # phases

    def _emit_transforms(self) -> str:
        """A chunk makes V or Z of one unit."""
        name = f"{self.name}_transforms"
        f = self.module.function(name, CHUNK)
        slots, i, thread = f.arguments
        memory = slot(f, slots, MEMORY)
        staged = thread_memory(f, memory, self.shared_bytes, self.own_bytes, thread)
        unit = f.udiv(i, 2)
        with f.either(f.compare("eq", f.urem(i, 2), 0)) as branch:
            self._emit_unit(f, slot(f, slots, X), self.x_tiles, unit, staged, memory)
            branch.otherwise()
            z = self._z(f, memory)
            self._emit_unit(f, slot(f, slots, DY), self.dy_tiles, unit, staged, z)
        f.ret()
        return name

    def _emit_unit(
        self, f: Function, source: Value, tiles: Tiles, unit: Operand, staged: Value, v: Value
    ) -> None:
        tiles.emit_stage(f, source, unit, staged, tiles.channels, tiles.channels)
        at = f.gep(v, f.mul(unit, tiles.wide * tiles.row), self.element)
        tiles.emit_transform(f, staged, at, self._distance(tiles))

    def _emit_block(self) -> str:
        name = f"{self.name}_block"
        f = self.module.function(name, CHUNK)
        slots, i, thread = f.arguments
        block, span = f.udiv(i, self.spans), f.urem(i, self.spans)
        memory = slot(f, slots, MEMORY)
        sums = thread_memory(f, memory, self.shared_bytes, self.own_bytes, thread)
        v = f.gep(memory, f.mul(block, self.channels), self.element)
        z = f.gep(self._z(f, memory), f.mul(span, self.span), self.element)
        for channels in each_size(f, block, self.channel_blocks, self.channels, self.last_channels):
            self._emit_sums(f, v, z, sums, channels)
            self._emit_back(f, slots, sums, block, span, channels)
        f.ret()
        return name

    def _emit_sums(self, f: Function, v: Value, z: Value, sums: Value, channels: int) -> None:
        """sums[p] = V[p]^T Z[p] for all positions of a block."""
        parts = microkernel.even_parts(channels, self.shape.rows)
        with f.loop(0, self.positions) as p:
            v_p = f.gep(v, f.mul(p.index, self._distance(self.x_tiles)), self.element)
            z_p = f.gep(z, f.mul(p.index, self._distance(self.dy_tiles)), self.element)
            s_p = f.gep(sums, f.mul(p.index, self.position), self.element)
            done = 0
            for rows in dict.fromkeys(parts):
                kernel = self.sum_kernel(rows)
                with f.loop(0, parts.count(rows)) as loop:
                    c = f.add(f.mul(loop.index, rows), done)
                    at = f.gep(s_p, f.mul(c, self.span), self.element)
                    f.call(kernel, "void", f.gep(v_p, c, self.element), z_p, at)
                done += parts.count(rows) * rows

    def sum_kernel(self, rows: int) -> str:
        """``product(v, z, sums)``: sums[rows][..] = v^T z over all tiles."""
        name = f"{self.name}_product_{rows}"
        if name in self.module:
            return name
        parameters = [("ptr noalias readonly", "v"), ("ptr noalias readonly", "z")]
        f = self.module.function(name, [*parameters, ("ptr noalias", "sums")])
        v, z, sums = f.arguments
        strides = Strides(1, self.x_tiles.row, self.dy_tiles.row)
        tile = microkernel.outer_product(
            f, v, z, self.tiles, rows, self.shape.vectors, self.type, strides, 2
        )
        microkernel.store_tile(f, tile, sums, self.span, self.shape.columns)
        f.ret()
        return name

    def _emit_back(
        self, f: Function, slots: Value, sums: Value, block: Operand, span: Operand, channels: int
    ) -> None:
        """Transform a block's sums back, some source channels at a time, and store them."""
        k, c, _, _ = self.spec.w_strides
        start = f.add(f.mul(block, self.channels * c), f.mul(span, self.span * k))
        target = self.memory.gep(f, slot(f, slots, DW), start)
        depth = self.filters.depth
        for wide in each_size(f, span, self.spans, self.span, self.last_span):
            with f.loop(0, channels, depth) as loop:
                count = f.minimum(f.sub(channels, loop.index), depth)
                at = f.gep(sums, f.mul(loop.index, self.span), self.element)
                to = self.memory.gep(f, target, f.mul(loop.index, c))
                self._store_block(f, at, to, count, wide)

    def emit(self) -> Kernel:
        """Add the kernel; its pointers: x, dy, dw."""
        transforms, block = self._emit_transforms(), self._emit_block()
        f = self.module.function(self.name, [("ptr", "slots")])
        (slots,) = f.arguments
        work = int(2.0 * self.positions * self.tiles * self.spec.c * self.spec.k / GFLOPS_GUESS)
        f.parallel_for(transforms, slots, 2 * self.x_tiles.units, self.shared_bytes // 8)
        f.parallel_for(block, slots, self.grid, work)
        f.ret()
        return Kernel(self.name, 3, 4, self.shared_bytes, self.own_bytes, work)
