"""A kernel as a tree of passes: what the code generator prints, loop by loop.

A pass opens its loops, runs its body innermost, then updates its folds; when the loops are done the
folds have values. Folds that do not depend on an inner loop come in passes before it, so a softmax
is: for each row { pass: max. pass: sum of exp. pass: divide and store. }
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from flambeau.ir.node import postorder
from flambeau.loops.expr import Expr
from flambeau.schedule.choose import fold_vector
from flambeau.schedule.domain import bound_of, folds, values_of
from flambeau.schedule.flat import Put


@dataclass(frozen=True, slots=True)
class Fold:
    """`node` (a reduce) gets its value by folding `values` over the pass's loops."""

    node: Expr
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Pass:
    """Loops `iters`, outermost first; innermost run `body`, then `puts`, then update `folds`.

    The loop `vector` moves by whole vectors: `lanes` elements while they fit, then `tail`.
    With `tile`, that loop goes in blocks of `rows`, and the loads in `staged`, contiguous along
    `tile` and strided along `vector`, are transposed a block at a time.
    """

    iters: tuple[Expr, ...]
    body: tuple[Pass, ...] = ()
    puts: tuple[Put, ...] = ()
    folds: tuple[Fold, ...] = ()
    scans: tuple[Expr, ...] = ()
    vector: Expr | None = None
    lanes: int = 1
    tail: int = 1
    tile: Expr | None = None
    rows: int = 1  # steps of `tile` in one block, a multiple of `lanes`
    staged: tuple[Expr, ...] = ()

    def roots(self) -> list[Expr]:
        """Every expression evaluated inside."""
        own = [e for p in self.puts for e in (p.offset, p.value)]
        own += [v for f in self.folds for v in f.values]
        return [e for b in self.body for e in b.roots()] + own

    def all_puts(self) -> list[Put]:
        """Every store inside."""
        return [*self.puts, *[q for b in self.body for q in b.all_puts()]]

    def __str__(self) -> str:
        return "\n".join(lines(self, 0))


def lines(p: Pass, depth: int) -> list[str]:
    """The tree for people and golden tests."""
    pad = "  " * depth
    widths = {p.vector: f" by {p.lanes}", p.tile: f" by {p.rows}"}
    loops = ", ".join(f"{i.attr[0]}<{i.attr[1]}{widths.get(i, '')}" for i in p.iters)
    out = [f"{pad}for {loops}:"]
    for b in p.body:
        out += lines(b, depth + 1)
    out += [f"{pad}  {x}" for x in p.puts]
    for f in p.folds:
        out.append(f"{pad}  fold {f.node}")
    return out


def scans_of(roots: Iterable[Expr]) -> list[Expr]:
    return [n for n in postorder(roots) if n.kind == "scan"]


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the loops: those open, whether one is a vector, the folds that have values."""

    opened: frozenset
    vectored: bool
    placed: frozenset

    def inside(self, iters: Iterable[Expr], vectored: bool = False) -> Point:
        return Point(self.opened.union(iters), self.vectored or vectored, self.placed)


class Builder:
    """Builds the passes of one flat kernel whose loops are in their final order."""

    def __init__(self, vector: Expr | None):
        self.vector = vector

    def whole(self, iters: tuple[Expr, ...], puts: tuple[Put, ...]) -> tuple:
        """(passes, puts) of the kernel."""
        return self.block(Point(frozenset(), False, frozenset()), iters, puts)

    def block(self, at: Point, remaining: tuple, puts: tuple, values: tuple = ()) -> tuple:
        """(passes, puts) that run at a point; `remaining` loops open further in."""
        roots = [e for p in puts for e in (p.offset, p.value)] + list(values)
        passes = []
        for batch in self.batches(at, roots):
            passes.append(self.fold_pass(at, batch))
            at = Point(at.opened, at.vectored, at.placed.union(batch))
        here = tuple(p for p in puts if set(p.iters) <= at.opened)
        deeper = tuple(p for p in puts if p not in here)
        if deeper:
            passes.append(self.loop(at, remaining, deeper))
        return tuple(passes), here

    def loop(self, at: Point, remaining: tuple, puts: tuple) -> Pass:
        i, rest = remaining[0], remaining[1:]
        roots = [e for p in puts for e in (p.offset, p.value)]
        scans = tuple(s for s in scans_of(roots) if s.args[-1] is i)
        body, here = self.block(at.inside([i], i is self.vector), rest, puts)
        made = Pass((i,), body, here, (), scans, i if i is self.vector else None)
        return merged(made)

    def batches(self, at: Point, roots: list[Expr]) -> list[list[Expr]]:
        """Folds that can run at a point; independent ones over the same loops together."""
        ready = [f for f in folds(roots) if f not in at.placed and f.free <= at.opened]
        level: dict[Expr, int] = {}
        for f in ready:
            below = [level[g] for g in folds(values_of(f)) if g in level]
            level[f] = 1 + max(below, default=0)
        batches: dict[tuple, list[Expr]] = {}
        for f in ready:
            batches.setdefault((level[f], bound_of(f)), []).append(f)
        return [batches[k] for k in sorted(batches, key=lambda k: k[0])]

    def fold_pass(self, at: Point, batch: list[Expr]) -> Pass:
        bound, along = bound_of(batch[0]), None
        if not at.vectored:
            along = next((v for v in map(fold_vector, batch) if v is not None), None)
        if along is not None:
            bound = (*[b for b in bound if b is not along], along)
        values = tuple(v for f in batch for v in values_of(f))
        body, _ = self.block(at.inside(bound, along is not None), (), (), values)
        return Pass(bound, body, (), tuple(Fold(f, values_of(f)) for f in batch), (), along)


def merged(p: Pass) -> Pass:
    """A loop around nothing but one loop becomes one pass of both."""
    if p.puts or p.folds or p.scans or len(p.body) != 1:
        return p
    inner = p.body[0]
    if inner.folds or inner.scans or (p.vector is not None and inner.vector is not None):
        return p
    return replace(
        inner, iters=p.iters + inner.iters, vector=inner.vector if p.vector is None else p.vector
    )
