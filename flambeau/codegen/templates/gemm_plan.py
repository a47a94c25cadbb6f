"""How a matrix product of known shape is cut into panels, blocks of k and chunks of work."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from flambeau.codegen.target import Target
from flambeau.codegen.templates import microkernel
from flambeau.codegen.templates.epilogue import Epilogue
from flambeau.codegen.templates.tail import Tail
from flambeau.codegen.text import size_of

A_COST = 0.3  # of fetching a panel of A from the third-level cache, in tiles
A_PACK_COST = 0.7  # of copying it besides
PACKED_DEPTH = 256  # fewer steps of k do not pay for a copy of A; so many make a block
FEW_PANELS = 12  # of A: one panel of B at a time serves them best
CACHE_WAYS = 12  # lines with equal low address bits that a first-level cache holds
ELEMENTS = {"float32": "float", "float64": "double", "bfloat16": "bfloat"}
GFLOPS_GUESS = 100.0  # of one thread, to estimate the time of a call


@dataclass(frozen=True, slots=True)
class GemmSpec:
    """One product. Leading dimensions are in elements: the distance between stored rows.

    A is stored [m, k], or [k, m] with `trans_a`; B [k, n], or [n, k] with `trans_b`. `batch` are
    the sizes of leading dimensions, `batch_a` and so on the operands' strides along them (0
    broadcasts).
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
    out_dtype: str = ""  # of C; "" is `dtype`. Only bfloat16 may differ, with float32
    epilogue_dtype: str = ""  # of the epilogue's operands; "" is that of C
    tail: Tail | None = None  # after the epilogue, on what is stored

    @property
    def strides(self) -> tuple[int, int, int]:
        """Leading dimensions; those left at 0 are those of a contiguous matrix."""
        return (
            self.lda or max(1, self.m if self.trans_a else self.k),
            self.ldb or max(1, self.k if self.trans_b else self.n),
            self.ldc or max(1, self.n),
        )

    @property
    def pointers(self) -> int:
        """A, B, C, then the epilogue's and the tail's."""
        return 3 + sum(x.pointers for x in (self.epilogue, self.tail) if x is not None)

    @property
    def batches(self) -> int:
        return math.prod(self.batch)


def normalised(spec: GemmSpec) -> GemmSpec:
    """The same product with stored vectors called rows: a column one element wide is one."""
    lda, ldb, _ = spec.strides
    if spec.m == 1 and spec.trans_a and lda == 1:
        spec = replace(spec, trans_a=False, lda=spec.k)
    if spec.n == 1 and not spec.trans_b and ldb == 1:
        spec = replace(spec, trans_b=True, ldb=spec.k)
    return spec


def is_better_swapped(spec: GemmSpec) -> bool:
    """Whether the one column of C, contiguous, is better made as the row of C^T = B^T A^T."""
    return (
        spec.n == 1 and spec.m > 1 and spec.strides[2] == 1 and spec.trans_a
        and not spec.epilogue and not spec.tail
    )


def swapped(spec: GemmSpec) -> GemmSpec:
    """C^T = op(B)^T op(A)^T for a C of one column: the operands change places."""
    lda, ldb, _ = spec.strides
    return replace(
        spec,
        m=1,
        n=spec.m,
        trans_a=not spec.trans_b,
        trans_b=not spec.trans_a,
        lda=ldb,
        ldb=lda,
        ldc=spec.m,
        batch_a=spec.batch_b,
        batch_b=spec.batch_a,
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """How a product is cut up."""

    rows: tuple[int, ...]  # heights of the panels of A: at most two values, larger first
    columns: int  # width of a panel of B
    depth: int  # k of one block
    pack_a: bool
    pack_b: bool
    areas: tuple[int, int]  # chunks along m and along n
    row_block: int  # panels of A that stay in the second-level cache together
    unroll: int
    column_block: int = 0  # panels of B that stay there while those of A go by; 0: one of B

    @property
    def row_panels(self) -> int:
        return len(self.rows)


def plan(spec: GemmSpec, target: Target, threads: int) -> Plan:
    """Panels, depth and areas from the shape and the caches."""
    element = ELEMENTS[spec.dtype]
    size = size_of(element)
    height, columns = _tile(spec, target, element)
    rows = tuple(microkernel.even_parts(spec.m, height))
    pack_a, pack_b = _packing(spec, target, len(rows))
    turned = spec.trans_a and not pack_a
    depth = _depth(spec, target, len(rows), columns * size * (2 if turned else 1))
    if pack_a and len(rows) > FEW_PANELS:
        depth = min(depth, PACKED_DEPTH)
    pack_cost = (1.0 if spec.trans_b else 0.5) if pack_b else 0.0
    a_cost = A_COST + (A_PACK_COST if pack_a else 0.0)
    grid = areas(len(rows), math.ceil(spec.n / columns), threads, pack_cost, a_cost)
    block = _row_block(math.ceil(len(rows) / grid[0]), depth * height * size, target)
    unroll = next(u for u in (4, 2, 1) if depth % u == 0 and spec.k % u == 0)
    most = max(1, target.level2_bytes // 2 // (depth * columns * size))
    wide = most if pack_b and len(rows) > FEW_PANELS * grid[0] else 0
    return Plan(rows, columns, depth, pack_a, pack_b, grid, block, unroll, wide)


def _tile(spec: GemmSpec, target: Target, element: str) -> tuple[int, int]:
    """Rows and columns of a register tile: wide where there are few rows, lower where rows of A
    fall on the same lines of the first-level cache.
    """
    shape = microkernel.tile_shape(target, element)
    if spec.m <= 3:
        room = (target.vector_registers - 2) // (spec.m + 1)
        vectors = min(8, room, math.ceil(spec.n / shape.lanes))
        return shape.rows, max(1, vectors) * shape.lanes
    if _on_same_lines(spec, element) and not spec.trans_a:
        return min(shape.rows, CACHE_WAYS), shape.columns
    return shape.rows, shape.columns


def _on_same_lines(spec: GemmSpec, element: str) -> bool:
    """Whether stored rows of A are whole pages apart."""
    return spec.strides[0] * size_of(element) % 4096 == 0


def _packing(spec: GemmSpec, target: Target, row_panels: int) -> tuple[bool, bool]:
    """Which operands are copied: those that cannot be read in place, or are read often enough."""
    element = ELEMENTS[spec.dtype]
    ragged = spec.n % target.lanes(element) and not target.masked_memory
    pack_b = spec.trans_b or row_panels > 3 or bool(ragged)
    pack_a = row_panels > FEW_PANELS or _on_same_lines(spec, element)
    return pack_a and spec.trans_a and spec.k > PACKED_DEPTH and spec.n > 64, pack_b


def _depth(spec: GemmSpec, target: Target, row_panels: int, row_bytes: int) -> int:
    """k of one block: a panel of B and one of A stay close to the core."""
    if row_panels <= 1:
        return max(1, spec.k)
    most = max(64, target.level2_bytes // 16 // row_bytes // 16 * 16)
    blocks = max(1, math.ceil(spec.k / most))
    return max(1, spec.k) if blocks == 1 else math.ceil(spec.k / blocks / 16) * 16


def _row_block(panels: int, panel_bytes: int, target: Target) -> int:
    """How many of a chunk's panels of A stay close to the core while panels of B go by."""
    if panels * panel_bytes <= target.level2_bytes // 2:
        return max(1, panels)
    blocks = math.ceil(panels * panel_bytes / (target.level2_bytes // 5))
    return max(1, math.ceil(panels / blocks))


def areas(
    row_panels: int, column_panels: int, threads: int, pack_cost: float, a_cost: float = A_COST
) -> tuple[int, int]:
    """The grid of chunks with the least expected time, in tiles; each chunk packs its own B."""
    best, choice = math.inf, (1, 1)
    for down in range(1, min(row_panels, 4 * threads) + 1):
        for across in range(1, min(column_panels, 4 * threads) + 1):
            high, wide = math.ceil(row_panels / down), math.ceil(column_panels / across)
            rounds = math.ceil(down * across / threads)
            cost = rounds * (wide * (high + pack_cost) + a_cost * high)
            if cost < best:
                best, choice = cost, (down, across)
    return choice
