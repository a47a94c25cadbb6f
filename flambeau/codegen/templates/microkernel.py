"""The inner loops of matrix products: a tile of C that stays in registers over all of k.

`outer_product` multiplies broadcast elements of A with vectors of B: rows of B must be contiguous.
`dot_product` multiplies vectors along k: rows of both must be contiguous; it sums at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flambeau.codegen.target import Target
from flambeau.codegen.text import Function, Operand, Value, element_of, lanes_of, vector, zero

Tile = list[list[Value]]  # rows of vectors


@dataclass(frozen=True, slots=True)
class Shape:
    """Rows and vectors per row of the largest register tile of a target."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes


def tile_shape(target: Target, element: str) -> Shape:
    """Accumulators, a row of B and one broadcast must fit into the registers."""
    lanes = target.lanes(element)
    if target.vector_registers < 32:
        return Shape(6, 2, lanes)
    return Shape(14, 2, lanes) if target.vector_bytes >= 64 else Shape(8, 3, lanes)


def even_parts(total: int, most: int) -> list[int]:
    """`total` split into the fewest parts of at most `most`, as even as possible, larger first."""
    count = -(-total // most)
    if not count:
        return []
    size, more = divmod(total, count)
    return [size + 1] * more + [size] * (count - more)


@dataclass(frozen=True, slots=True)
class Strides:
    """Distances in elements: between rows and between k of A, between k of B."""

    a_row: int
    a_k: int
    b_k: int


def outer_product(
    f: Function,
    a: Value,
    b: Value,
    k: Operand,
    rows: int,
    vectors: int,
    type: str,
    strides: Strides,
    unroll: int = 2,
    last_lanes: int = 0,
    start: Tile | None = None,
    multiply: Callable[[Function, Value, Value, Value], Value] = Function.fma,
) -> Tile:
    """sum over k of A[row, k] * B[k, column..]: `rows` x `vectors` accumulators.

    `a` and `b` point at element (0, 0). `unroll` must divide a k known only at run time. With
    `last_lanes` only so many lanes of the last vector of a row of B are read. `multiply` adds the
    product of a broadcast and a vector to a sum.
    """
    if isinstance(k, int) and k % unroll:
        unroll = 1
    counts = [lanes_of(type)] * (vectors - 1) + [last_lanes or lanes_of(type)]
    first = start or [[zero(type)] * vectors for _ in range(rows)]
    flat = [x for row in first for x in row]
    element, lanes = element_of(type), lanes_of(type)
    with f.loop(0, k, unroll, carry=flat) as loop:
        sums = list(loop.carried)
        a_k = f.gep(a, f.mul(loop.index, strides.a_k), element)
        b_k = f.gep(b, f.mul(loop.index, strides.b_k), element)
        for u in range(unroll):
            row = [
                f.load_lanes(type, f.gep(b_k, u * strides.b_k + j * lanes, element), n)
                for j, n in enumerate(counts)
            ]
            for i in range(rows):
                at = f.gep(a_k, u * strides.a_k + i * strides.a_row, element)
                x = f.splat(f.load(element, at), lanes)
                for j in range(vectors):
                    sums[i * vectors + j] = multiply(f, x, row[j], sums[i * vectors + j])
        loop.next = sums
    return [loop.results[i * vectors : (i + 1) * vectors] for i in range(rows)]


def lane_counts(columns: int, lanes: int) -> list[int]:
    """Valid lanes of each vector of a row of `columns` elements."""
    return [min(lanes, columns - j) for j in range(0, columns, lanes)]


def load_tile(f: Function, c: Value, stride: int, rows: int, columns: int, type: str) -> Tile:
    """A tile of memory; lanes past `columns` are zero."""
    element, lanes = element_of(type), lanes_of(type)
    counts = lane_counts(columns, lanes)
    return [
        [
            f.load_lanes(type, f.gep(c, i * stride + j * lanes, element), n)
            for j, n in enumerate(counts)
        ]
        for i in range(rows)
    ]


def store_tile(f: Function, tile: Tile, c: Value, stride: int, columns: int) -> None:
    element, lanes = element_of(tile[0][0].type), lanes_of(tile[0][0].type)
    for i, row in enumerate(tile):
        for j, n in enumerate(lane_counts(columns, lanes)):
            f.store_lanes(row[j], f.gep(c, i * stride + j * lanes, element), n)


def map_tile(tile: Tile, function: Callable[[Value], Value]) -> Tile:
    return [[function(x) for x in row] for row in tile]


def transposed(f: Function, rows: Sequence[Value]) -> list[Value]:
    """A square block of vectors transposed in registers (a power of two lanes)."""
    lanes = lanes_of(rows[0].type)
    out = list(rows)
    step = lanes // 2
    while step:
        low = [j if not j & step else lanes + j - step for j in range(lanes)]
        high = [j + step if not j & step else lanes + j for j in range(lanes)]
        for i in range(lanes):
            if not i & step:
                a, b = out[i], out[i + step]
                out[i], out[i + step] = f.shuffle(a, b, low), f.shuffle(a, b, high)
        step //= 2
    return out


def horizontal_sum(f: Function, x: Value) -> Value:
    """The sum of the lanes, in a fixed pairwise order."""
    lanes, element = lanes_of(x.type), element_of(x.type)
    while lanes > 1:
        lanes //= 2
        half = vector(lanes, element)
        if lanes == 1:
            return f.fadd(f.extract(x, 0), f.extract(x, 1))
        x = f.fadd(f.shuffle(x, x, range(lanes)), f.shuffle(x, x, range(lanes, 2 * lanes)))
        assert x.type == half
    return x


def dot_product(
    f: Function,
    a: Value,
    b: Value,
    k: int,
    rows: int,
    columns: int,
    type: str,
    a_row: int,
    b_column: int,
) -> list[list[Value]]:
    """sum over k of A[row, k] * B[column, k]: scalars; `rows` * `columns` accumulators."""
    lanes = lanes_of(type)
    whole = k // lanes * lanes
    with f.loop(0, whole, lanes, carry=[zero(type)] * (rows * columns)) as loop:
        sums = _dot_step(f, a, b, loop.index, lanes, rows, a_row, b_column, loop.carried)
        loop.next = sums
    sums = loop.results
    if k > whole:
        sums = _dot_step(f, a, b, whole, k - whole, rows, a_row, b_column, sums)
    total = [horizontal_sum(f, x) for x in sums]
    return [total[i * columns : (i + 1) * columns] for i in range(rows)]


def _dot_step(
    f: Function,
    a: Value,
    b: Value,
    k: Operand,
    count: int,
    rows: int,
    a_row: int,
    b_column: int,
    sums: Sequence[Value],
) -> list[Value]:
    """Add the products of `count` (up to the lanes) elements at k."""
    type = sums[0].type
    element, columns = element_of(type), len(sums) // rows
    xs = [f.load_lanes(type, f.gep(a, f.add(k, i * a_row), element), count) for i in range(rows)]
    ys = [
        f.load_lanes(type, f.gep(b, f.add(k, j * b_column), element), count) for j in range(columns)
    ]
    return [f.fma(xs[i], ys[j], sums[i * columns + j]) for i in range(rows) for j in range(columns)]
