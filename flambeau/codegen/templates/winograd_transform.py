"""The linear maps of Winograd's minimal filtering F(m x m, 3 x 3) on vectors of channels.

A tile of m x m outputs is A^T [(G w G^T) * (B^T d B)] A with d the (m+2) x (m+2) inputs it needs
and * the product of elements (Lavin and Gray, arXiv 1509.09308). The matrices come from Toom and
Cook's interpolation at points 0, +-p, .. and infinity; for m = 4 the points 3/4 and 3/2 give a mean
error of about 4.6 times that of direct summation in float32, where 1 and 2 give 7.5 times.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from flambeau.codegen.text import Function, Value, zero

POINTS = {2: (0.0, 1.0, -1.0), 4: (0.0, 0.75, -0.75, 1.5, -1.5)}
WINDOW = 3
Matrix = tuple[tuple[float, ...], ...]
Grid = list[list[Value]]


@functools.cache
def matrices(m: int) -> tuple[Matrix, Matrix, Matrix]:
    """A^T (m x a), G (a x 3), B^T (a x a) for a = m + 2."""
    points = POINTS[m]
    a = m + WINDOW - 1
    output = [[p**i for p in points] + [float(i == m - 1)] for i in range(m)]
    filters, inputs = [], []
    for j, p in enumerate(points):
        others = [q for i, q in enumerate(points) if i != j]
        scale = 1.0
        for q in others:
            scale *= p - q
        filters.append([p**i / scale for i in range(WINDOW)])
        inputs.append(_with_roots(others) + [0.0])
    filters.append([0.0] * (WINDOW - 1) + [1.0])
    inputs.append(_with_roots(points))
    assert all(len(row) == a for row in inputs)
    return _frozen(output), _frozen(filters), _frozen(inputs)


def _with_roots(roots: Sequence[float]) -> list[float]:
    """Coefficients, lowest first, of the product of (x - root)."""
    out = [1.0]
    for root in roots:
        low = [-root * c for c in out] + [0.0]
        high = [0.0, *out]
        out = [a + b for a, b in zip(low, high, strict=True)]
    return out


def _frozen(rows: list[list[float]]) -> Matrix:
    return tuple(tuple(row) for row in rows)


def transpose(matrix: Matrix) -> Matrix:
    return tuple(zip(*matrix, strict=True))


def combination(f: Function, terms: Sequence[tuple[float, Value]]) -> Value | None:
    """The sum of coefficient * value, as a chain of multiply-adds; None if it is empty."""
    terms = sorted((t for t in terms if t[0]), key=lambda t: (abs(t[0]) != 1, t[0] != 1))
    if not terms:
        return None
    factor, x = terms[0]
    if factor == -1:
        total = f.fneg(x)
    else:
        total = x if factor == 1 else f.fmul(x, factor)
    for factor, x in terms[1:]:
        if factor == 1:
            total = f.fadd(total, x)
        else:
            total = f.fsub(total, x) if factor == -1 else f.fma(x, factor, total)
    return total


def apply(f: Function, matrix: Matrix, x: Sequence[Value]) -> list[Value]:
    """matrix @ x for a list of vectors, sharing what pairs of points +-p have in common."""
    pairs = _column_pairs(matrix)
    if pairs:
        return _apply_by_columns(f, matrix, x, pairs)
    out: list[Value | None] = [None] * len(matrix)
    for r, row in enumerate(matrix):
        if out[r] is not None:
            continue
        after = matrix[r + 1] if r + 1 < len(matrix) else None
        if after is not None and _is_pair(row, after):
            even = combination(f, [(a, v) for a, b, v in zip(row, after, x, strict=True) if a == b])
            odd = combination(f, [(a, v) for a, b, v in zip(row, after, x, strict=True) if a != b])
            assert even is not None and odd is not None
            out[r], out[r + 1] = f.fadd(even, odd), f.fsub(even, odd)
        else:
            out[r] = combination(f, list(zip(row, x, strict=True)))
    return [zero(x[0].type) if v is None else v for v in out]


def _is_pair(a: Sequence[float], b: Sequence[float]) -> bool:
    """Equal up to signs, with both equal and opposite entries."""
    if any(abs(p) != abs(q) for p, q in zip(a, b, strict=True)):
        return False
    same = any(p == q != 0 for p, q in zip(a, b, strict=True))
    return same and any(p != q for p, q in zip(a, b, strict=True))


def _column_pairs(matrix: Matrix) -> list[int]:
    """First columns of neighbouring columns that are equal up to signs."""
    columns = transpose(matrix)
    if len(matrix) >= len(columns):
        return []
    return [j for j in range(1, len(columns) - 1, 2) if _is_pair(columns[j], columns[j + 1])]


def _apply_by_columns(
    f: Function, matrix: Matrix, x: Sequence[Value], pairs: list[int]
) -> list[Value]:
    sums = {j: (f.fadd(x[j], x[j + 1]), f.fsub(x[j], x[j + 1])) for j in pairs}
    single = [j for j in range(len(x)) if j not in pairs and j - 1 not in pairs]
    out = []
    for row in matrix:
        terms = [(row[j], x[j]) for j in single]
        terms += [(row[j], sums[j][row[j] != row[j + 1]]) for j in pairs]
        value = combination(f, terms)
        out.append(zero(x[0].type) if value is None else value)
    return out


def apply_both(f: Function, down: Matrix, across: Matrix, x: Grid) -> Grid:
    """down @ x @ across^T for a grid of vectors."""
    columns = [apply(f, down, [row[j] for row in x]) for j in range(len(x[0]))]
    rows = [[column[i] for column in columns] for i in range(len(down))]
    return [apply(f, across, row) for row in rows]


def each_group(
    f: Function, count: int, lanes: int, body: Callable[[Value | int, int], None]
) -> None:
    """body(start, valid lanes) for each vector of `count` channels: a loop, then the rest."""
    whole = count // lanes * lanes
    if whole:
        with f.loop(0, whole, lanes) as loop:
            body(loop.index, lanes)
    if count > whole:
        body(whole, count - whole)
