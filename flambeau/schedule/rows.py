"""Rows kept in cache: a costly value that two passes over one row need is computed once.

The first pass writes it to a row buffer that lives on the stack, later passes read it back. The
exponentials of a softmax are the model case.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from flambeau.core import dtype as dtypes
from flambeau.ir.node import postorder
from flambeau.loops.expr import Expr
from flambeau.loops.nest import Buf
from flambeau.schedule.cost import CHEAP_TO_REPEAT, repeat_cycles
from flambeau.schedule.flat import Put
from flambeau.schedule.tree import Fold, Pass

MAX_ROW_BYTES = 32 * 1024
ROW = "row."  # buffers whose names start so are on the stack
MOST_LANES = 64
LANES = "row.lanes."  # those hold a whole vector for every position


def with_rows(p: Pass, outer: Expr | None = None) -> Pass:
    """`p` with row buffers in every level where they pay; `outer` is an open vector loop."""
    along = outer if p.vector is None else p.vector
    body = tuple(with_rows(b, along) for b in p.body)
    return replace(p, body=shared_rows(body, along))


def shared_rows(passes: tuple[Pass, ...], outer: Expr | None) -> tuple[Pass, ...]:
    """Sibling passes, with values of earlier ones kept for later ones."""
    done = list(passes)
    for at, first in enumerate(done):
        row = row_iterator(first)
        if row is None or not isinstance(row.attr[1], int):
            continue
        for later in range(at + 1, len(done)):
            if row_iterator(done[later]) is not row:
                continue
            for x in keepable(done[at], done[later], row, outer):
                done[at], done[later:] = kept(done[at], done[later:], x, row, outer)
    return tuple(done)


def row_iterator(p: Pass) -> Expr | None:
    """The one loop of a pass that is a single row."""
    return p.iters[0] if len(p.iters) == 1 and not p.body and not p.scans else None


def keepable(first: Pass, later: Pass, row: Expr, outer: Expr | None) -> list[Expr]:
    """Values along the row that both passes compute at some cost, largest first."""
    mine = {n for n in postorder(first.roots()) if row in n.free}
    found: list[Expr] = []
    pending = [v for v in later.roots() if row in v.free]
    seen: set[Expr] = set()
    while pending:
        node = pending.pop()
        if node in seen or row not in node.free or node.kind == "reduce":
            continue
        seen.add(node)
        if node in mine and worth_keeping(node, row, outer):
            found.append(node)
        else:
            pending.extend(node.args)
    return found


def worth_keeping(node: Expr, row: Expr, outer: Expr | None) -> bool:
    if isinstance(node.dtype, tuple) or node.dtype.category not in (dtypes.FLOAT, dtypes.INTEGER):
        return False
    lanes = MOST_LANES if outer is not None and outer in node.free else 1
    fits = row.attr[1] * node.dtype.itemsize * lanes <= MAX_ROW_BYTES
    return (
        fits and repeat_cycles(node, row) >= CHEAP_TO_REPEAT and node.kind not in ("at", "at_where")
    )


def kept(
    first: Pass, rest: list[Pass], x: Expr, row: Expr, outer: Expr | None
) -> tuple[Pass, list[Pass]]:
    """`x` written to a row by `first` and read from it by those of `rest` over the same row."""
    stem = LANES if outer is not None and outer in x.free else ROW
    taken = rows_of((first, *rest))
    names = (f"{stem}{row.attr[0]}.{row.attr[1]}.{k}.{x.dtype.name}" for k in count())
    buf = Buf(next(name for name in names if name not in taken), (row.attr[1],), None, x.dtype)
    read = Expr.make("at", x.dtype, (row,), buf)
    first = replace(first, puts=(*first.puts, Put(buf, row, x, None, (row,))))
    return first, [replaced(p, x, read, row) if row_iterator(p) is row else p for p in rest]


def rows_of(passes: tuple[Pass, ...]) -> set[str]:
    """Names of row buffers that the passes write or read: what they hold is still needed."""
    written = {q.buf.name for p in passes for q in p.puts}
    return written | {n.attr.name for p in passes for n in postorder(p.roots()) if n.kind == "at"}


def replaced(p: Pass, x: Expr, read: Expr, row: Expr) -> Pass:
    puts = tuple(replace(q, value=without(q.value, x, read, row)) for q in p.puts)
    folds = tuple(Fold(f.node, tuple(without(v, x, read, row) for v in f.values)) for f in p.folds)
    return replace(p, puts=puts, folds=folds)


def without(e: Expr, x: Expr, read: Expr, row: Expr) -> Expr:
    """`e` reading `read` for `x`; what does not vary along the row stays the same node."""
    done: dict[Expr, Expr] = {x: read}
    for node in postorder([e]):
        if node not in done:
            varies = row in node.free and node.kind != "reduce"
            done[node] = node.with_args(tuple([done[a] for a in node.args])) if varies else node
    return done[e]
