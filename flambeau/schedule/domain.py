"""Loops rearranged: split where quotients ask for it, ordered by strides, collapsed.

Two loops collapse into one when every index moves by the same step through both: then a tensor of
any rank that is dense, or strided alike in all operands, is walked by one long loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from flambeau.core import dtype as dtypes
from flambeau.ir.node import nodes, postorder
from flambeau.loops.affine import Affine, Number, affine, bounds, times
from flambeau.loops.expr import Expr, const, iterator
from flambeau.loops.substitute import Substitution
from flambeau.schedule.flat import Flat, Put, tidied, tidy

INDEX_KINDS = frozenset(
    ("add", "sub", "mul", "neg", "floordiv", "mod", "min", "max", "check", "iter", "const", "size")
)


def is_index(e: Expr) -> bool:
    return e.kind in INDEX_KINDS and e.dtype is dtypes.int64


def index_roots(roots: Iterable[Expr]) -> frozenset[Expr]:
    """Every index sum in use: offsets, iterators used as values, and what quotients divide."""
    return _index_roots(tuple(roots))


@lru_cache(maxsize=256)
def _index_roots(roots: tuple[Expr, ...]) -> frozenset[Expr]:
    found = {root for root in roots if is_index(root)}
    for node in nodes(roots):
        if not is_index(node):
            found.update(a for a in value_args(node) if is_index(a))
    pending = list(found)
    while pending:
        for atom in affine(pending.pop()).terms:
            if atom.kind == "iter":
                continue
            for a in atom.args:
                if is_index(a) and a not in found:
                    found.add(a)
                    pending.append(a)
    return frozenset(e for e in found if e.free)


def value_args(node: Expr) -> tuple[Expr, ...]:
    """Operands that are computed; a fold's iterators are not."""
    return node.args[: node.attr[1]] if node.kind in ("reduce", "scan") else node.args


def folds(roots: Iterable[Expr]) -> list[Expr]:
    """Every reduce under `roots`, inner ones first."""
    return [n for n in nodes(tuple(roots)) if n.kind == "reduce"]


def bound_of(fold: Expr) -> tuple[Expr, ...]:
    return fold.args[fold.attr[1] :]


def values_of(fold: Expr) -> tuple[Expr, ...]:
    return fold.args[: fold.attr[1]]


def magnitude(coefficient: Number) -> int:
    """How far a step moves; unknown sizes count by their least value, and as large."""
    if isinstance(coefficient, int):
        return abs(coefficient)
    return max(abs(bounds(coefficient)[0]), 1 << 12)


# splitting ------------------------------------------------------------------------------------


def split_quotients(flat: Flat) -> Flat:
    """An iterator i that occurs as i // c and i % c, c dividing its extent, becomes two loops."""
    for i in flat.iters:
        c = divisor(i, flat.roots())
        if c:
            high, low = iterator(i.attr[0] + "h", i.attr[1] // c), iterator(i.attr[0] + "l", c)
            iters = tuple(n for j in flat.iters for n in ((high, low) if j is i else (j,)))
            return split_quotients(flat.mapped({i: high * c + low}, iters))
    return flat


def divisor(i: Expr, roots: Iterable[Expr]) -> int:
    """The least c > 1 for which i // c or i % c is needed and i's extent is a multiple of c."""
    extent = i.attr[1]
    if not isinstance(extent, int):
        return 0
    found = []
    for e in index_roots(roots):
        for atom in affine(e).terms:
            if atom.kind in ("floordiv", "mod") and atom.args[1].kind == "const":
                inner, c = affine(atom.args[0]), atom.args[1].attr
                if (
                    inner.coefficient(i) == 1
                    and extent % c == 0
                    and 1 < c < extent
                    and aligned(inner, i, c)
                ):
                    found.append(c)
    return min(found, default=0)


def aligned(inner, i: Expr, c: int) -> bool:
    """Is everything beside i a multiple of c?"""
    others = [k for a, k in inner.terms.items() if a is not i] + [inner.constant]
    return all(isinstance(k, int) and k % c == 0 for k in others)


# collapsing -----------------------------------------------------------------------------------


def moves_alike(roots: frozenset[Expr], outer: Expr, inner: Expr) -> bool:
    """Does one step of `outer` equal a full run of `inner` in every index?"""
    extent = inner.attr[1]
    for e in roots:
        sums = affine(e)
        step = times(sums.coefficient(inner), extent)
        if sums.coefficient(outer) is not step and sums.coefficient(outer) != step:
            return False
    return True


def collapsed(flat: Flat) -> Flat:
    """Adjacent loops merged wherever every access allows it."""
    at = 0
    scanned = scan_loops(flat)
    while at + 1 < len(flat.iters):
        outer, inner = flat.iters[at], flat.iters[at + 1]
        together = all((outer in p.iters) == (inner in p.iters) for p in flat.puts)
        together = together and not {outer, inner} & scanned
        if (
            together
            and unragged(flat, outer, inner)
            and moves_alike(index_roots(flat.roots()), outer, inner)
        ):
            merged = iterator(outer.attr[0], times(outer.attr[1], inner.attr[1]))
            iters = (*flat.iters[:at], merged, *flat.iters[at + 2 :])
            flat = flat.mapped({outer: const(0, dtypes.int64), inner: merged}, iters)
        else:
            at += 1
    return flat


def scan_loops(flat: Flat) -> set[Expr]:
    """Loops that scans run along: they keep their order."""
    return {n.args[-1] for n in nodes(tuple(flat.roots())) if n.kind == "scan"}


def unragged(flat: Flat, *iters: Expr) -> bool:
    """No fold's extent depends on these iterators."""
    wanted = set(iters)
    return not any(
        isinstance(b.attr[1], Expr) and b.attr[1].free & wanted
        for f in folds(flat.roots())
        for b in bound_of(f)
    )


def folds_rearranged(flat: Flat) -> Flat:
    """The iterators of every fold ordered by strides and collapsed."""
    puts = tuple(
        Put(p.buf, p.offset, fold_rearranged(p.value), p.combine, p.iters) for p in flat.puts
    )
    return Flat(flat.iters, puts)


def fold_rearranged(e: Expr) -> Expr:
    done: dict[Expr, Expr] = {}
    for node in postorder([e]):
        made = node.with_args(tuple([done[a] for a in node.args]))
        done[node] = (
            one_fold_rearranged(made) if made.kind == "reduce" and len(bound_of(made)) > 1 else made
        )
    return done[e]


def one_fold_rearranged(fold: Expr) -> Expr:
    values = values_of(fold)
    roots = index_roots(values)
    bound = sorted(bound_of(fold), key=lambda r: -largest_step(roots, r))
    if any(isinstance(r.attr[1], Expr) and r.attr[1].free for r in bound):
        return fold
    at = 0
    while at + 1 < len(bound):
        outer, inner = bound[at], bound[at + 1]
        if moves_alike(index_roots(values), outer, inner):
            merged = iterator(outer.attr[0], times(outer.attr[1], inner.attr[1]))
            change = Substitution({outer: const(0, dtypes.int64), inner: merged})
            values = tuple(
                tidied(change.of(v)) if not is_index(v) else tidy(change.of(v)) for v in values
            )
            bound[at : at + 2] = [merged]
        else:
            at += 1
    return fold.make("reduce", fold.dtype, (*values, *bound), fold.attr)


def largest_step(roots: frozenset[Expr], i: Expr) -> int:
    """The farthest that one step of `i` moves in any access."""
    return max((magnitude(affine(e).coefficient(i)) for e in roots), default=0)


# ordering -------------------------------------------------------------------------------------


def chain(flat: Flat) -> list[frozenset]:
    """The sets of loops that hoisted folds depend on, smallest first."""
    sets = {f.free & frozenset(flat.iters) for f in folds(flat.roots())}
    sets |= {frozenset(p.iters) for p in flat.puts}
    return sorted(sets, key=len)


def ordered(flat: Flat, last: Expr | None = None) -> Flat:
    """Loops that folds need first, then by the strides of the largest store, largest first.

    `last` (the vector loop) comes last among its equals; loops whose turns may meet at one element
    come after the others in the order given, and loops that scans run along at the end.
    """
    sets = chain(flat)
    widest = max(flat.puts, key=lambda p: len(p.iters))
    target = affine(widest.offset)
    accesses = index_roots(flat.roots())
    scanned, met = scan_loops(flat), meeting_loops(flat)

    def key(i: Expr) -> tuple:
        rank = next((at for at, s in enumerate(sets) if i in s), len(sets))
        step = target.coefficient(i)
        far = magnitude(step) or largest_step(accesses, i)
        return i in scanned, i in met, rank, i is last, 0 if i in met else -far

    iters = tuple(sorted(flat.iters, key=key))
    puts = tuple(
        Put(p.buf, p.offset, p.value, p.combine, tuple(i for i in iters if i in p.iters))
        for p in flat.puts
    )
    return Flat(iters, puts)


def meeting_loops(flat: Flat) -> set[Expr]:
    """Loops two of whose turns may store to one element: they run in order, on one thread."""
    return {i for p in flat.puts for i in p.iters if may_meet(p, i)}


def may_meet(p: Put, i: Expr) -> bool:
    sums = affine(p.offset)
    if p.combine is None and all(a.kind == "iter" for a in sums.terms):
        return False  # a nest promises that plain stores do not meet
    step = sums.coefficient(i)
    if not isinstance(step, int) or step == 0 or not isinstance(i.attr[1], int):
        return True
    # Steps of i and multiples of its run apart, the rest must stay below one step.
    run = abs(step) * i.attr[1]
    inner = {
        a: k
        for a, k in sums.terms.items()
        if a is not i and not (isinstance(k, int) and k % run == 0)
    }
    low, high = Affine(inner, 0).bounds()
    return high - low >= abs(step)
