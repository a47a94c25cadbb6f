"""How a matrix product of known shape is cut into panels, blocks of k and chunks of work."""

from __future__ import annotations

import math
from dataclasses import dataclass

from flambeau.codegen.target import Target
from flambeau.codegen.templates import microkernel
from flambeau.codegen.templates.epilogue import Epilogue
from flambeau.codegen.text import size_of

ELEMENTS = {"float32": "float", "float64": "double"}
GFLOPS_GUESS = 100.0  # of one thread, to estimate the time of a call


@dataclass(frozen=True, slots=True)
class GemmSpec:
    """One product. Leading dimensions are in elements: the distance between stored rows.

    A is stored [m, k], or [k, m] with `trans_a`; B [k, n], or [n, k] with `trans_b`. `batch` are the
    sizes of leading dimensions, `batch_a` and so on the operands' strides along them (0 broadcasts).
    """

    m: int
    n: int
    k: int
    dtype: str = "float32"
    trans_a: bool = False
    trans_b: bool = False
    lda: int = 0
    ldb: int = 0
    ldc: int = 0
    batch: tuple[int, ...] = ()
    batch_a: tuple[int, ...] = ()
    batch_b: tuple[int, ...] = ()
    batch_c: tuple[int, ...] = ()
    alpha: float = 1.0
    beta: float = 0.0
    epilogue: Epilogue | None = None

    @property
    def strides(self) -> tuple[int, int, int]:
        """Leading dimensions; those left at 0 are those of a contiguous matrix."""
        return (
            self.lda or max(1, self.m if self.trans_a else self.k),
            self.ldb or max(1, self.k if self.trans_b else self.n),
            self.ldc or max(1, self.n),
        )

    @property
    def batches(self) -> int:
        return math.prod(self.batch)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a product is cut up."""

    rows: tuple[int, ...]  # heights of the panels of A: at most two values, larger first
    columns: int  # width of a panel of B
    depth: int  # k of one block
    pack_a: bool
    pack_b: bool
    areas: tuple[int, int]  # chunks along m and along n
    unroll: int

    @property
    def row_panels(self) -> int:
        return len(self.rows)


def plan(spec: GemmSpec, target: Target, threads: int) -> Plan:
    """Panels, depth and areas from the shape and the caches."""
    element = ELEMENTS[spec.dtype]
    size = size_of(element)
    height, columns = _tile(spec, target, element)
    rows = tuple(microkernel.even_parts(spec.m, height))
    pack_a, pack_b = _packing(spec, target, len(rows), size)
    depth = _depth(spec, target, len(rows), columns * size)
    column_panels = math.ceil(spec.n / columns)
    areas = _areas(len(rows), column_panels, threads, depth * height * size, target)
    unroll = next(u for u in (4, 2, 1) if depth % u == 0 and spec.k % u == 0)
    return Plan(rows, columns, depth, pack_a, pack_b, areas, unroll)


def _tile(spec: GemmSpec, target: Target, element: str) -> tuple[int, int]:
    """Rows and columns of a register tile: wide where there are few rows."""
    shape = microkernel.tile_shape(target, element)
    if spec.m > 3:
        return shape.rows, shape.columns
    vectors = min(8, (target.vector_registers - 2) // (spec.m + 1), math.ceil(spec.n / shape.lanes))
    return shape.rows, max(1, vectors) * shape.lanes


def _packing(spec: GemmSpec, target: Target, row_panels: int, size: int) -> tuple[bool, bool]:
    """Which operands are copied: those that cannot be read in place, or are read often enough."""
    lda, _, _ = spec.strides
    ragged = spec.n % target.lanes(ELEMENTS[spec.dtype]) and not target.masked_memory
    pack_b = spec.trans_b or row_panels > 3 or bool(ragged)
    conflicts = not spec.trans_a and lda * size % 4096 == 0 and spec.m > 4
    return (spec.m > 64 and spec.n > 64) or conflicts, pack_b


def _depth(spec: GemmSpec, target: Target, row_panels: int, row_bytes: int) -> int:
    """k of one block: a panel of B and one of A stay close to the core."""
    if row_panels <= 1:
        return max(1, spec.k)
    most = max(64, target.level2_bytes // 16 // row_bytes // 16 * 16)
    blocks = max(1, math.ceil(spec.k / most))
    return max(1, spec.k) if blocks == 1 else math.ceil(spec.k / blocks / 16) * 16


def _areas(
    row_panels: int, column_panels: int, threads: int, panel_bytes: int, target: Target
) -> tuple[int, int]:
    """The grid of chunks with the least expected time: even shares, A in the second-level cache."""
    fits = max(1, target.level2_bytes // 2 // max(1, panel_bytes))
    best, choice = math.inf, (1, 1)
    for down in range(1, min(row_panels, 64) + 1):
        for across in range(1, min(column_panels, 64) + 1):
            chunks = down * across
            if chunks > 8 * threads and chunks > 1 + row_panels // fits:
                break
            high, wide = math.ceil(row_panels / down), math.ceil(column_panels / across)
            span = math.ceil(chunks / threads) * high * wide
            cost = span * threads / (row_panels * column_panels) + 0.004 * chunks
            cost += 0.1 * max(0.0, high / fits - 1) + 0.08 * (across - 1) / column_panels
            if cost < best:
                best, choice = cost, (down, across)
    return choice
