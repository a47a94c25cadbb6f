"""Blocks of a weight, turned so that target channels are innermost, and back.

A block holds ``block[(c * R * S + r * S + s) * width + k]`` for some source channels c and `width`
target channels k. Weights are read and written in runs that are contiguous in memory, by
transposing: elements of one target channel are far apart, often a power of two, and a gather along
them would use only a few sets of the first-level cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flambeau.codegen.templates.stored import Stored
from flambeau.codegen.templates.strided import emit_transpose
from flambeau.codegen.text import (
    Function,
    Module,
    Operand,
    Value,
    element_of,
    lanes_of,
    size_of,
)

BLOCK_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class Filters:
    """A weight whose elements are `strides` apart along target channel, source channel, r and s.

    `memory` says how they lie there where that is not as `type`.
    """

    module: Module
    name: str
    type: str
    strides: tuple[int, int, int, int]
    r: int
    s: int
    width: int
    memory: Stored | None = None

    @property
    def outer(self) -> Stored:
        """How the weight lies in memory."""
        return self.memory or Stored(self.element)

    @property
    def element(self) -> str:
        return element_of(self.type)

    @property
    def taps(self) -> int:
        return self.r * self.s

    @property
    def depth(self) -> int:
        """Source channels of a block."""
        return max(1, min(16, BLOCK_BYTES // (self.taps * self.width * size_of(self.element))))

    @property
    def elements(self) -> int:
        return self.depth * self.taps * self.width

    def load(self, f: Function, weight: Value, block: Value, channels: int, columns: int) -> None:
        """Fill a block from the weight's element of its first channels."""
        self._runs(f, weight, block, channels, columns, False)

    def store(self, f: Function, block: Value, weight: Value, channels: int, columns: int) -> None:
        """Write `columns` target channels of a block to the weight."""
        self._runs(f, weight, block, channels, columns, True)

    def store_some(
        self, f: Function, block: Value, weight: Value, count: Operand, blocks: tuple[int, int],
        columns: int,
    ) -> None:  # fmt: skip
        """`store` of `count` source channels, as many as a part of a block may have: blocks have
        `blocks` channels, the last one the second number, and their parts at most `depth`."""
        rests = {n % self.depth or self.depth for n in blocks}
        for channels in sorted({min(self.depth, blocks[0]), *rests}):
            with f.when(f.compare("eq", count, channels)):
                self.store(f, block, weight, channels, columns)

    def _runs(
        self, f: Function, weight: Value, block: Value, channels: int, columns: int, back: bool
    ) -> None:
        _, c, r, s = self.strides
        if self.strides[0] == 1:
            self._copies(f, weight, block, channels, columns, back)
            return
        whole = s == 1 and r == self.s
        if whole and c == self.taps:
            self._run(f, weight, block, channels * self.taps, 1, columns, back)
        elif whole:
            with f.loop(0, channels) as loop:
                at = f.gep(block, f.mul(loop.index, self.taps * self.width), self.element)
                start = self.outer.gep(f, weight, f.mul(loop.index, c))
                self._run(f, start, at, self.taps, 1, columns, back)
        else:
            with f.loop(0, self.taps) as loop:
                i, j = f.udiv(loop.index, self.s), f.urem(loop.index, self.s)
                start = self.outer.gep(f, weight, f.add(f.mul(i, r), f.mul(j, s)))
                at = f.gep(block, f.mul(loop.index, self.width), self.element)
                self._run(f, start, at, channels, self.taps, columns, back)

    def _copies(
        self, f: Function, weight: Value, block: Value, channels: int, columns: int, back: bool
    ) -> None:
        """Target channels are innermost on both sides."""
        _, c, r, s = self.strides
        with f.loop(0, channels) as channel, f.loop(0, self.taps) as tap:
            i, j = f.udiv(tap.index, self.s), f.urem(tap.index, self.s)
            place = f.add(f.mul(i, r), f.add(f.mul(j, s), f.mul(channel.index, c)))
            row = f.add(f.mul(channel.index, self.taps), tap.index)
            outer = self.outer.gep(f, weight, place)
            self._copy(f, outer, f.gep(block, f.mul(row, self.width), self.element), columns, back)

    def _copy(self, f: Function, outer: Value, inner: Value, columns: int, back: bool) -> None:
        lanes, memory = lanes_of(self.type), self.outer
        for j in range(0, columns, lanes):
            count = min(lanes, columns - j)
            at, to = memory.gep(f, outer, j), f.gep(inner, j, self.element)
            if back:
                memory.store(f, f.load_lanes(self.type, to, count), at, count)
            else:
                f.store_lanes(memory.load(f, self.type, at, count), to, count)

    def _run(
        self, f: Function, weight: Value, block: Value, count: int, step: int, columns: int,
        back: bool,
    ) -> None:  # fmt: skip
        """`count` contiguous elements of each target channel; `step` rows apart in the block."""
        apart, width = self.strides[0], self.width * step
        if not back:
            name = f"{self.name}_in{count}x{columns}x{step}"
            if name not in self.module:
                emit_transpose(
                    self.module, name, count, apart, width, self.type, self.outer, rows=columns
                )
            f.call(name, "void", weight, block, columns)
            return
        name = f"{self.name}_out{columns}x{count}x{step}"
        if name not in self.module:
            emit_transpose(
                self.module, name, columns, width, apart, self.type, None, self.outer, count
            )
        f.call(name, "void", block, weight, count)


def each_block(f: Function, total: int, depth: int) -> Iterator[tuple[Operand, int]]:
    """(first, size) of blocks of `depth` channels of a static total: a loop, then the rest."""
    whole = total // depth * depth
    if whole:
        with f.loop(0, whole, depth) as loop:
            yield loop.index, depth
    if total > whole:
        yield whole, total - whole


def each_size(f: Function, index: Operand, count: int, usual: int, last: int) -> Iterator[int]:
    """The size of block `index` of `count`, whose last is smaller: the body is emitted for each."""
    if count == 1 or usual == last:
        yield last
        return
    with f.either(f.compare("ne", index, count - 1)) as branch:
        yield usual
        branch.otherwise()
        yield last
