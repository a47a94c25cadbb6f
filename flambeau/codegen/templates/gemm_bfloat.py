"""Matrix products of bfloat16 with sums in float32.

Two neighbours along k form a pair of 32 bits. B is packed into panels of [pair][column]; rows of A
are read as they are, or packed to whole pairs. The products come from the tile registers (AMX),
32 x 32 results at a time, or from the dot product instruction of AVX-512, as in float32. Without
either, operands are widened first. k is not cut into blocks: results would have to wait in float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from flambeau.codegen.target import Target
from flambeau.codegen.templates import microkernel
from flambeau.codegen.templates.gemm import Bounds, Generator
from flambeau.codegen.templates.gemm_plan import ELEMENTS, GemmSpec, Plan, areas
from flambeau.codegen.templates.microkernel import Strides
from flambeau.codegen.text import Function, Operand, Value, constant, vector

COLUMNS = 32
TILE_ROWS = 16
TILE_K = 32  # elements of k in one row of a tile register
PAIRS = "<16 x float>"
BITS = "<32 x bfloat>"


def bfloat_plan(spec: GemmSpec, target: Target, threads: int) -> Plan:
    """Panels of up to 32 rows for the tile registers, of up to 14 otherwise."""
    height = 2 * TILE_ROWS if target.bfloat16_tiles else 14
    rows = [height] * (spec.m // height) + ([spec.m % height] if spec.m % height else [])
    if not target.bfloat16_tiles:
        rows = microkernel.even_parts(spec.m, height)
    lda, _, _ = spec.strides
    ragged = bool(spec.k % TILE_K or spec.m % height) if target.bfloat16_tiles else False
    pack_a = spec.trans_a or ragged or bool(spec.k % 2 or lda % 2)
    cost = 4.0 if target.bfloat16_tiles else 1.5
    grid = areas(len(rows), math.ceil(spec.n / COLUMNS), threads, cost)
    block = max(1, target.level2_bytes // 2 // (2 * height * max(1, spec.k)))
    wide = max(1, target.level2_bytes // 2 // (2 * COLUMNS * max(1, spec.k)))
    by_rows = len(rows) > 1 and spec.n > COLUMNS and not pack_a
    return Plan(
        tuple(rows), COLUMNS, max(1, spec.k), pack_a, True, grid, block, 1,
        column_block=wide if by_rows else 0,
    )  # fmt: skip


@dataclass(slots=True)
class BfloatGenerator(Generator):
    """The walk of `Generator` over tiles of bfloat16; memory is counted in pairs."""

    def __post_init__(self) -> None:
        self.element, self.lanes, self.type = "float", 16, PAIRS

    @property
    def stored(self) -> str:
        return "bfloat"

    @property
    def result(self) -> str:
        return ELEMENTS[self.spec.out_dtype or self.spec.dtype]

    @property
    def pairs(self) -> int:
        """Pairs along k, with whole rows of tile registers."""
        step = TILE_K if self.target.bfloat16_tiles else 2
        return -(-self.spec.k // step) * step // 2

    @property
    def a_panel(self) -> int:
        height = self.plan.rows[0]
        if self.target.bfloat16_tiles:
            height = -(-height // TILE_ROWS) * TILE_ROWS
        return self._rounded(height * self.pairs + self.lanes)

    @property
    def b_panel(self) -> int:
        return self._rounded(self.pairs * COLUMNS + self.lanes)

    def first_row(self, f: Function, panel: Operand) -> Operand:
        if not self.target.bfloat16_tiles:
            return Generator.first_row(self, f, panel)
        return f.mul(panel, self.plan.rows[0])  # all panels but the last are full

    # packing

    def emit_packers(self) -> None:
        if self.plan.pack_a:
            for rows in dict.fromkeys(self.plan.rows):
                self._emit_pack_a(rows)
        for columns in dict.fromkeys(c for _, c in self.variants()):
            self._emit_pack_b(columns)

    def _packer(self, name: str) -> tuple[Function, Value, Value]:
        parameters = [("ptr noalias readonly", "source"), ("ptr noalias", "panel"), ("i64", "k")]
        f = self.module.function(name, parameters)
        return f, f.arguments[0], f.arguments[1]

    def _emit_pack_a(self, rows: int) -> None:
        """Rows of A as rows of pairs, zeros behind k and below the last row."""
        f, source, panel = self._packer(f"{self.name}_pack_a{rows}")
        lda, height = self.spec.strides[0], rows
        if self.target.bfloat16_tiles:
            height = -(-rows // TILE_ROWS) * TILE_ROWS
        if self.pairs * 2 > self.spec.k or height > rows:
            f.clear(panel, height * self.pairs * 4)
        if self.spec.trans_a:
            for first in range(0, rows, self.lanes):
                count = min(self.lanes, rows - first)
                start = f.gep(source, first, "bfloat")
                to = f.gep(panel, first * self.pairs)
                self._turn(f, start, to, lda, count, self.pairs, turned=True)
        else:
            with f.loop(0, rows) as row:
                start = f.gep(source, f.mul(row.index, lda), "bfloat")
                to = f.gep(panel, f.mul(row.index, self.pairs))
                f.copy(to, start, 2 * self.spec.k)
        f.ret()

    def _emit_pack_b(self, columns: int) -> None:
        """Columns of B as [pair][column], zeros behind k and past the last column."""
        f, source, panel = self._packer(f"{self.name}_pack_b{columns}")
        ldb = self.spec.strides[1]
        if self.pairs * 2 > self.spec.k or columns < COLUMNS:
            f.clear(panel, self.pairs * COLUMNS * 4)
        for first in range(0, columns, self.lanes):
            count = min(self.lanes, columns - first)
            to = f.gep(panel, first)
            if self.spec.trans_b:
                start = f.gep(source, first * ldb, "bfloat")
                self._turn_rows(f, start, to, ldb, count)
            else:
                start = f.gep(source, first, "bfloat")
                self._turn(f, start, to, ldb, count, COLUMNS, turned=False)
        f.ret()

    def _turn(
        self, f: Function, source: Value, target: Value, stride: int, count: int, pitch: int,
        turned: bool,
    ) -> None:  # fmt: skip
        """Pairs of neighbouring rows of `source`, `count` columns: [pair][column], or turned."""
        k, lanes = self.spec.k, self.lanes

        def pair(at: Value, row: int, last: bool) -> Value:
            low = f.load_lanes("<16 x i16>", f.gep(at, row * stride, "i16"), count)
            high = f.binary("xor", low, low)
            if not last:
                high = f.load_lanes("<16 x i16>", f.gep(at, (row + 1) * stride, "i16"), count)
            order = [i // 2 + 16 * (i % 2) for i in range(32)]
            return f.cast("bitcast", f.shuffle(low, high, order), PAIRS)

        def block(first: Operand, pairs: int, odd: bool) -> None:
            at = f.gep(source, f.mul(first, 2 * stride), "i16")
            values = [pair(at, 2 * i, odd and i == pairs - 1) for i in range(pairs)]
            if not turned:
                for i, x in enumerate(values):
                    f.store(x, f.gep(target, f.mul(f.add(first, i), pitch)))
                return
            values += [constant(0, PAIRS)] * (lanes - pairs)
            for i, x in enumerate(microkernel.transposed(f, values)[:count]):
                f.store_lanes(x, f.gep(target, f.add(first, i * pitch)), pairs)

        whole = k // 2 // lanes * lanes
        if whole:
            with f.loop(0, whole, lanes) as loop:
                block(loop.index, lanes, False)
        rest = (k + 1) // 2 - whole
        if rest:
            block(whole, rest, bool(k % 2))

    def _turn_rows(
        self, f: Function, source: Value, target: Value, stride: int, count: int
    ) -> None:
        """Rows along k, `count` of them, to [pair][row]."""
        k = self.spec.k
        step = 2 * self.lanes

        def block(first: Operand, elements: int) -> None:
            rows = []
            for i in range(self.lanes):
                if i >= count:
                    rows.append(constant(0, PAIRS))
                    continue
                at = f.gep(source, f.add(first, i * stride), "i16")
                x = f.load_lanes("<32 x i16>", at, elements)
                rows.append(f.cast("bitcast", x, PAIRS))
            start = f.mul(f.udiv(first, 2), COLUMNS)
            for i, x in enumerate(microkernel.transposed(f, rows)[: (elements + 1) // 2]):
                f.store(x, f.gep(target, f.add(start, i * COLUMNS)))

        whole = k // step * step
        if whole:
            with f.loop(0, whole, step) as loop:
                block(loop.index, step)
        if k > whole:
            block(whole, k - whole)

    # tiles

    def emit_tile_kernel(self, rows: int, columns: int) -> None:
        """``tile(slots, k, a, b, c, row, column, k0)``; k and k0 are those of the whole product."""
        parameters = [("ptr", "slots"), ("i64", "k"), ("ptr noalias readonly", "a")]
        parameters += [("ptr noalias readonly", "b"), (self.c_parameter, "c")]
        parameters += [("i64", "row"), ("i64", "column"), ("i64", "k0")]
        f = self.module.function(f"{self.name}_tile_{rows}x{columns}", parameters)
        slots, _, a, b, c, row, column, _ = f.arguments
        rounded = self._room_for_tail(f, rows, columns)
        place = slots, c, row, column
        if self.target.bfloat16_tiles:
            self._tile_registers(f, a, b, rows, columns, place, rounded)
        else:
            tile = self._dot_products(f, a, b, rows, columns)
            for i, values in enumerate(tile):
                self._finish_row(f, values, place, i, columns, rounded)
        if rounded is not None:
            f.call(self._tail(rows, columns), "void", slots, rounded, row, column)
        f.ret()

    def _room_for_tail(self, f: Function, rows: int, columns: int) -> Value | None:
        """Memory from which the tail reads a tile's results, rounded and widened again."""
        if self.spec.tail is None:
            return None
        return f.alloca("float", rows * math.ceil(columns / self.lanes) * self.lanes)

    def _dot_products(
        self, f: Function, a: Value, b: Value, rows: int, columns: int
    ) -> microkernel.Tile:
        """Sums of pairs by AVX-512's dot product."""
        name = "llvm.x86.avx512bf16.dpbf16ps.512"

        def multiply(f: Function, x: Value, y: Value, total: Value) -> Value:
            x, y = (f.cast("bitcast", v, BITS) for v in (x, y))
            return f.pure_call(name, PAIRS, total, x, y)

        a_row = self.pairs if self.plan.pack_a else self.spec.strides[0] // 2
        strides = Strides(a_row, 1, COLUMNS)
        unroll = 2 if self.pairs % 2 == 0 else 1
        vectors = math.ceil(columns / self.lanes)
        return microkernel.outer_product(
            f, a, b, self.pairs, rows, vectors, PAIRS, strides, unroll, multiply=multiply
        )

    def _tile_registers(
        self, f: Function, a: Value, b: Value, rows: int, columns: int,
        place: tuple[Value, Value, Value, Value], rounded: Value | None,
    ) -> None:  # fmt: skip
        """Sums in up to four tile registers, stored to the stack and finished row by row."""
        down, across = math.ceil(rows / TILE_ROWS), math.ceil(columns / self.lanes)
        pitch = 4 * self.pairs if self.plan.pack_a else 2 * self.spec.strides[0]
        for register in range(down * across):
            _tile_call(f, "tilezero", register)
        with f.loop(0, self.pairs, TILE_K // 2) as loop:
            a_k = f.gep(a, loop.index)
            b_k = f.gep(b, f.mul(loop.index, COLUMNS))
            for j in range(across):
                _tile_call(f, "tileloadd64", 6 + j, f.gep(b_k, j * self.lanes), 4 * COLUMNS)
            for i in range(down):
                _tile_call(f, "tileloadd64", 4 + i, f.gep(a_k, i * TILE_ROWS * pitch, "i8"), pitch)
                for j in range(across):
                    _tile_call(f, "tdpbf16ps", i * across + j, 4 + i, 6 + j)
        sums = f.alloca("float", down * TILE_ROWS * COLUMNS)
        for i in range(down):
            for j in range(across):
                at = f.gep(sums, i * TILE_ROWS * COLUMNS + j * self.lanes)
                _tile_call(f, "tilestored64", i * across + j, at, 4 * COLUMNS)
        with f.loop(0, rows) as row:
            values = [
                f.load(PAIRS, f.gep(sums, f.add(f.mul(row.index, COLUMNS), j * self.lanes)))
                for j in range(across)
            ]
            self._finish_row(f, values, place, row.index, columns, rounded)

    def _finish_row(
        self, f: Function, values: list[Value], place: tuple[Value, Value, Value, Value],
        i: Operand, columns: int, rounded: Value | None,
    ) -> None:  # fmt: skip
        """Scale, add what is there, apply the epilogue, round and store one row of a tile.

        With a tail the row goes to `rounded` instead.
        """
        slots, c, row, column = place
        ldc = self.spec.strides[2]
        line = self._scaled(f, [values])
        if self.spec.beta:
            at = f.gep(c, f.mul(i, ldc), self.result)
            old = self._loaded(f, at, columns)
            beta = constant(self.spec.beta, PAIRS)
            line = [[f.fma(y, beta, x) for x, y in zip(line[0], old, strict=True)]]
        if self.spec.epilogue is not None:
            line = self._finished(f, line, slots, f.add(row, i), column, columns)
        counts = microkernel.lane_counts(columns, self.lanes)
        for j, (x, n) in enumerate(zip(line[0], counts, strict=True)):
            x = f.cast("fptrunc", x, vector(self.lanes, self.result))
            if rounded is not None:
                at = f.add(f.mul(i, len(counts) * self.lanes), j * self.lanes)
                f.store(f.cast("fpext", x, PAIRS), f.gep(rounded, at))
                continue
            f.store_lanes(x, f.gep(c, f.add(f.mul(i, ldc), j * self.lanes), self.result), n)

    def _loaded(self, f: Function, at: Value, columns: int) -> list[Value]:
        kind = vector(self.lanes, self.result)
        return [
            f.cast("fpext", f.load_lanes(kind, f.gep(at, j * self.lanes, self.result), n), PAIRS)
            for j, n in enumerate(microkernel.lane_counts(columns, self.lanes))
        ]

    def compute_area(
        self, f: Function, slots: Value, rows: Bounds, columns: Bounds, own: Value
    ) -> None:
        if self.target.bfloat16_tiles:
            _tile_call(f, "ldtilecfg", self._configuration())
        Generator.compute_area(self, f, slots, rows, columns, own)
        if self.target.bfloat16_tiles:
            _tile_call(f, "tilerelease")

    def _configuration(self) -> Value:
        """Palette 1: eight registers of 16 rows of 64 bytes."""
        widths = [64, 0] * 8 + [0] * 16
        table = [1] + [0] * 15 + widths + [TILE_ROWS] * 8 + [0] * 8
        return self.module.table(f"{self.name}_tiles", "i8", table)


def _tile_call(f: Function, name: str, *arguments: int | Value) -> None:
    """An instruction on tile registers; registers are immediates, strides are 64 bits."""
    texts, types = [], []
    for i, x in enumerate(arguments):
        register = isinstance(x, int) and (i < 1 or name == "tdpbf16ps")
        type = x.type if isinstance(x, Value) else "i8" if register else "i64"
        types.append(type + (" immarg" if register else ""))
        texts.append(f"{type} {x}")
    f.module.declare(f"llvm.x86.{name}", "void", types)
    f.effect(f"call void @llvm.x86.{name}({', '.join(texts)})")


def as_float(spec: GemmSpec) -> GemmSpec:
    """The same product of contiguous float32 operands, for machines without dot products."""
    a = (spec.k, spec.m) if spec.trans_a else (spec.m, spec.k)
    b = (spec.n, spec.k) if spec.trans_b else (spec.k, spec.n)
    steps = [math.prod(spec.batch[i + 1 :]) for i in range(len(spec.batch))]
    sizes = (math.prod(a), math.prod(b), spec.m * spec.n)
    strides = [tuple(s * size for s in steps) for size in sizes]
    return replace(
        spec, dtype="float32", lda=a[1], ldb=b[1], ldc=spec.n, batch_a=strides[0],
        batch_b=strides[1], batch_c=strides[2], out_dtype="",
        epilogue_dtype=spec.epilogue_dtype or spec.out_dtype or spec.dtype,
    )  # fmt: skip
