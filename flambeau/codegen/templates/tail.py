"""Elementwise work on a product's results before they are stored.

The work is a loop nest over (rows, columns) of C. A tile of results leaves its registers for a
small buffer on the stack, which stays in the first-level cache whatever the distance between rows
of C is, and the nest runs over the buffer: long chains of operations would not fit into registers
next to the product's own accumulators.
"""

from __future__ import annotations

from dataclasses import dataclass

from flambeau.codegen.nest.emit import Emitter
from flambeau.codegen.target import Target
from flambeau.codegen.templates.microkernel import Tile
from flambeau.codegen.text import Function, Operand, Value, element_of, lanes_of
from flambeau.loops.expr import Expr
from flambeau.loops.nest import Nest
from flambeau.schedule.flat import flatten

PRODUCT = "product"  # the buffer that the nest reads the product's results from
C = "c"


@dataclass(frozen=True, slots=True)
class Tail:
    """`nest` reads "product" at its own place, and stores at its own place to "c" and others.

    buffers  names of the caller's further pointers, in order
    """

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
        tile: Value,
        start: tuple[Operand, Operand],
        size: tuple[int, int],
        type: str,
    ) -> None:
        """Run the nest over `size` rows and columns from `start` on; `tile` holds the product."""
        emitter = TileEmitter(f, target, buffers, {}, None)
        puts = flatten([self.nest]).puts
        row, column = self.nest.iters
        (first, left), (rows, columns), lanes = start, size, lanes_of(type)
        width = -(-columns // lanes) * lanes
        with f.loop(0, rows) as down, emitter.opened(row, f.add(first, down.index)):
            line = f.gep(tile, f.mul(down.index, width), element_of(type))
            for j in range(0, columns, lanes):
                count = min(lanes, columns - j)
                mask = f.lane_mask(count, lanes) if count < lanes else None
                emitter.product = f.load(type, f.gep(line, j, element_of(type)))
                with (
                    emitter.opened(column, f.add(left, j)),
                    emitter.lanes_of_loop(column, lanes, mask),
                ):
                    emitter.write(puts)


class TileEmitter(Emitter):
    """Reads the product's results where the tile is."""

    product: Value

    def load(self, node: Expr) -> Value:
        return self.product if node.attr.name == PRODUCT else super().load(node)


def store_in_order(f: Function, tile: Tile, memory: Value) -> None:
    """The rows of a tile one after the other, whole vectors."""
    element, lanes = element_of(tile[0][0].type), lanes_of(tile[0][0].type)
    for i, row in enumerate(tile):
        for j, x in enumerate(row):
            f.store(x, f.gep(memory, (i * len(row) + j) * lanes, element))
