"""Elementwise work on a product's results, done on each tile while it is in the first-level cache.

The work is a loop nest over (rows, columns) of C. The tile kernel stores what the product gives and
then runs the nest over the rows of the tile: values that a chain of operations makes never wait in
registers next to the product's own accumulators.
"""

from __future__ import annotations

from dataclasses import dataclass

from flambeau.codegen.nest.emit import Emitter
from flambeau.codegen.target import Target
from flambeau.codegen.text import Function, Operand, Value
from flambeau.loops.nest import Nest
from flambeau.schedule.flat import flatten

PRODUCT = "c"  # the buffer that holds the product's results


@dataclass(frozen=True, slots=True)
class Tail:
    """`nest` reads and writes the buffer "c" and those named by `buffers`, which are the caller's
    further pointers, in order. It stores at its own place only."""

    nest: Nest
    buffers: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{', '.join(map(repr, self.nest.outs))}: {self.nest} ({', '.join(self.buffers)})"

    @property
    def pointers(self) -> int:
        return len(self.buffers)

    def apply(
        self,
        f: Function,
        target: Target,
        buffers: dict[str, Value],
        start: tuple[Operand, Operand],
        size: tuple[int, int],
        lanes: int,
    ) -> None:
        """Run the nest over `size` rows and columns from `start` on."""
        emitter = Emitter(f, target, buffers, {}, None)
        puts = flatten([self.nest]).puts
        row, column = self.nest.iters
        (first, left), (rows, columns) = start, size
        with f.loop(0, rows) as down, emitter.opened(row, f.add(first, down.index)):
            for j in range(0, columns, lanes):
                count = min(lanes, columns - j)
                mask = f.lane_mask(count, lanes) if count < lanes else None
                with (
                    emitter.opened(column, f.add(left, j)),
                    emitter.lanes_of_loop(column, lanes, mask),
                ):
                    emitter.write(puts)
