"""Folds over much memory with few results, cut so that threads share them.

The fold becomes two kernels: partial folds of equal pieces, then the fold of the partial results.
The pieces depend on sizes only, so the result is the same for any number of threads.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from flambeau.core import dtype as dtypes
from flambeau.ir.node import postorder
from flambeau.loops.affine import affine, times
from flambeau.loops.expr import Expr, apply, cast, const, item, iterator
from flambeau.loops.nest import Buf, contiguous
from flambeau.loops.substitute import Substitution
from flambeau.schedule.choose import folds_columns
from flambeau.schedule.cost import cycles, extent, trips
from flambeau.schedule.domain import bound_of, folds, values_of
from flambeau.schedule.flat import Flat, Put, tidied

PIECE_CYCLES = 10_000
MOST_PIECES = 64
FEWEST_ROWS = 8
COLUMNS_AT_ONCE = 64
PART = "part."


def parted(flat: Flat, first_name: int = 0) -> list[Flat]:
    """The kernels that `flat` becomes, in order; often just itself."""
    made: list[Flat] = []
    while True:
        alike = cut_together(flat)
        if not alike:
            return [*made, flat]
        count = max(pieces(f, flat) for f in alike)
        puts: list[Put] = []
        for k, big in enumerate(alike):
            partial, whole = cut(big, count, f"{PART}{first_name + len(made)}.{k}")
            puts.extend(partial.puts)
            flat = put_everywhere(flat, big, whole)
        made.append(Flat(partial.iters, tuple(puts)))
        flat = settled(flat, whole, made, f"{PART}{first_name + len(made)}.0")


def cut_together(flat: Flat) -> list[Expr]:
    """Folds to cut next: one, and all over the same loops that do not wait for each other."""
    big = [f for f in folds(flat.roots()) if pieces(f, flat)]
    alike: list[Expr] = []
    for f in big:
        same = not alike or (f.free, bound_of(f)) == (alike[0].free, bound_of(alike[0]))
        if same and not any(g in alike for g in folds(values_of(f))):
            alike.append(f)
    return alike


def settled(flat: Flat, whole: Expr, made: list[Flat], name: str) -> Flat:
    """`flat`; where a fold to be cut asks for `whole`, it is computed once, into memory."""
    waiting = (f for f in folds(flat.roots()) if f is not whole and pieces(f, flat))
    if isinstance(whole.dtype, tuple) or not any(whole in folds(values_of(f)) for f in waiting):
        return flat
    outer = tuple(sorted(whole.free, key=lambda i: i.attr))
    kept = Buf(name, tuple(i.attr[1] for i in outer), None, whole.dtype)
    made.append(Flat(outer, (Put(kept, place(kept, outer), whole, None, outer),)))
    read = Expr.make("at", kept.dtype, (place(kept, outer),), kept)
    return Flat(
        flat.iters, tuple(replace(p, value=put_in(p.value, whole, read)) for p in flat.puts)
    )


def pieces(fold: Expr, flat: Flat) -> int:
    """How many pieces to cut a fold into; 0 to leave it."""
    iters = frozenset(flat.iters)
    if not fold.free <= iters:
        return 0
    rows = trips(fold.free)
    columns = folds_columns(fold)
    lanes = 16 if not columns or fold.free else 1
    work = rows * trips(bound_of(fold)) * sum(cycles(n) for n in postorder(values_of(fold))) / lanes
    if columns:
        rows = rows // COLUMNS_AT_ONCE
    if rows >= FEWEST_ROWS or work < 3 * PIECE_CYCLES:
        return 0
    if any(isinstance(b.attr[1], Expr) and b.attr[1].free for b in bound_of(fold)):
        return 0
    return min(MOST_PIECES, ceil(work / PIECE_CYCLES), extent(bound_of(fold)[0]))


def cut(fold: Expr, count: int, name: str) -> tuple[Flat, Expr]:
    """(the kernel of the partial folds, the fold of their results)."""
    outer = tuple(sorted(fold.free, key=lambda i: i.attr))
    first, *rest = bound_of(fold)
    c, piece, index = blocks(first, count)
    change = Substitution({first: index})
    values = tuple(tidied(change.of(v)) for v in values_of(fold))
    partial = fold.make("reduce", fold.dtype, (*values, piece, *rest), fold.attr)
    stored = results(partial)
    parts = [part_buffer(f"{name}.{k}", c, outer, v) for k, v in enumerate(stored)]
    puts = tuple(Put(b, place(b, (c, *outer)), v, None, (c, *outer)) for b, v in zip(parts, stored))
    again = [Expr.make("at", b.dtype, (place(b, (c, *outer)),), b) for b in parts]
    if fold.attr[0] == "welford":
        n = times(piece.attr[1], count_of(rest))
        again.append(cast(n if isinstance(n, Expr) else const(n, dtypes.int64), stored[0].dtype))
    return Flat((c, *outer), puts), fold.make(
        "reduce", fold.dtype, (*again, c), (fold.attr[0], len(again))
    )


def blocks(first: Expr, count: int) -> tuple[Expr, Expr, Expr]:
    """(iterator over pieces, iterator inside of one, the original index)."""
    n = first.attr[1]
    known = n if isinstance(n, int) else extent(first)
    size = (
        ceil(ceil(known / count) / COLUMNS_AT_ONCE) * COLUMNS_AT_ONCE
        if known > 4096
        else ceil(known / count)
    )
    total = n if isinstance(n, Expr) else const(n, dtypes.int64)
    if isinstance(n, int):
        c = iterator("c", ceil(n / size))
    else:
        c = iterator("c", (n + (size - 1)) // size)
    whole = isinstance(n, int) and n % size == 0
    left = affine(apply("min", const(size, dtypes.int64), total - c * size)).expression()
    piece = iterator(first.attr[0] + "p", size if whole else left)
    return c, piece, c * size + piece


def count_of(iters: list[Expr]):
    total: int | Expr = 1
    for i in iters:
        total = times(total, i.attr[1])
    return total


def results(fold: Expr) -> list[Expr]:
    return (
        [item(fold, k) for k in range(len(fold.dtype))] if isinstance(fold.dtype, tuple) else [fold]
    )


def part_buffer(name: str, c: Expr, outer: tuple[Expr, ...], value: Expr) -> Buf:
    return Buf(name, (c.attr[1], *[i.attr[1] for i in outer]), None, value.dtype)


def place(b: Buf, position: tuple[Expr, ...]) -> Expr:
    total = const(0, dtypes.int64)
    for i, stride in zip(position, contiguous(b.shape)):
        total = total + i * stride
    return affine(total).expression()


def put_everywhere(flat: Flat, old: Expr, new: Expr) -> Flat:
    """The kernel with one value in the place of another."""
    puts = tuple(replace(p, value=put_in(p.value, old, new)) for p in flat.puts)
    return Flat(flat.iters, puts)


def put_in(e: Expr, old: Expr, new: Expr) -> Expr:
    done: dict[Expr, Expr] = {}
    for node in postorder([e]):
        done[node] = new if node is old else node.with_args(tuple([done[a] for a in node.args]))
    return done[e]
