"""Products with few rows or few columns whose operands are both contiguous along k.

Each result is a dot product of two stored rows: nothing is packed, and every operand is read once.
This is the shape of a linear layer on a small batch, and of a matrix times a vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from flambeau.codegen.target import Target
from flambeau.codegen.templates import microkernel
from flambeau.codegen.templates.entry import slot
from flambeau.codegen.templates.gemm import A, B, Bounds, C, Generator
from flambeau.codegen.templates.gemm_plan import ELEMENTS, GemmSpec, Plan
from flambeau.codegen.text import Function, Operand, Value, constant, zero

FEW_ROWS = 8


def suits(spec: GemmSpec, target: Target) -> bool:
    """Whether dot products are the better way."""
    few = spec.m <= FEW_ROWS or spec.n < target.lanes(ELEMENTS[spec.dtype])
    return spec.trans_b and not spec.trans_a and few


def dot_plan(spec: GemmSpec, target: Target, threads: int) -> Plan:
    """Tiles of a few rows and columns; chunks along the longer side."""
    rows = tuple(microkernel.even_parts(spec.m, 4 if target.vector_registers >= 32 else 2))
    room = (target.vector_registers - 1 - rows[0]) // (rows[0] + 1)
    columns = microkernel.even_parts(spec.n, max(1, min(room, 8, target.lanes())))[0]
    down = min(len(rows), 2 * threads)
    across = 1 if down > 1 else min(math.ceil(spec.n / columns), 2 * threads)
    return Plan(rows, columns, max(1, spec.k), False, False, (down, across), len(rows), 1)


@dataclass(slots=True)
class DotGenerator(Generator):
    """The same product by dot products: only the tiles and their walk differ."""

    def emit_packers(self) -> None:
        """Nothing is packed."""

    def emit_tile_kernel(self, rows: int, columns: int) -> None:
        """``tile(slots, a, b, c, row, column)``."""
        parameters = [("ptr", "slots"), ("ptr noalias readonly", "a")]
        parameters += [("ptr noalias readonly", "b"), (self.c_parameter, "c")]
        parameters += [("i64", "row"), ("i64", "column")]
        f = self.module.function(f"{self.name}_tile_{rows}x{columns}", parameters)
        slots, a, b, c, row, column = f.arguments
        lda, ldb, ldc = self.spec.strides
        dots = microkernel.dot_product(f, a, b, self.spec.k, rows, columns, self.type, lda, ldb)
        tile = [self._gathered(f, values) for values in dots]
        tile = self._scaled(f, tile)
        if self.spec.beta:
            tile = self._with_beta(f, tile, c, ldc, columns)
        self._write(f, tile, slots, c, (row, column), columns)
        f.ret()

    def _gathered(self, f: Function, values: list[Value]) -> list[Value]:
        """Scalars as vectors, as many as they need."""
        out = []
        for start in range(0, len(values), self.lanes):
            x = zero(self.type) if self.lanes > 1 else constant(0, self.type)
            for lane, value in enumerate(values[start : start + self.lanes]):
                x = f.insert(x, value, lane) if self.lanes > 1 else value
            out.append(x)
        return out

    def compute_area(
        self, f: Function, slots: Value, rows: Bounds, columns: Bounds, own: Value
    ) -> None:
        a, b, c = (slot(f, slots, i) for i in (A, B, C))
        with f.loop(*columns) as across:
            column = f.mul(across.index, self.plan.columns)
            with f.loop(*rows) as down:
                row = self.first_row(f, down.index)
                a_row, b_row = self.a_source(f, a, row, 0), self.b_source(f, b, 0, column)
                at = f.gep(c, f.add(f.mul(row, self.spec.strides[C]), column), self.element)
                self._call_tile(f, down.index, across.index, (slots, a_row, b_row, at, row, column))

    def _call_tile(self, f: Function, i: Value, j: Value, arguments: tuple[Operand, ...]) -> None:
        for width in self._each_width(f, j):
            for height in self._each_height(f, i):
                f.call(f"{self.name}_tile_{height}x{width}", "void", *arguments)
