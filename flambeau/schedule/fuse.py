"""Which nests run as one kernel.

Vertically, a producer's value is computed where it is used, so its buffer disappears: pointwise
producers into everything, folds into consumers that need them once a row. Horizontally, nests over
one domain (or a prefix of it) share one kernel, so what both need is computed once.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from flambeau.ir.node import nodes
from flambeau.loops.expr import Expr
from flambeau.loops.nest import Nest, Store
from flambeau.loops.simplify import simplified
from flambeau.schedule.choose import folds_columns
from flambeau.schedule.cost import CHEAP_TO_REPEAT, cycles, extent, repeat_cycles, trips
from flambeau.schedule.domain import bound_of, folds
from flambeau.schedule.flat import flat_value
from flambeau.schedule.hoist import folds_outermost
from flambeau.schedule.inline import canonical, inlined, rewritten, values_by_buffer
from flambeau.schedule.liveness import read_names, roots_of
from flambeau.schedule.machine import Machine
from flambeau.schedule.unnest import inner_fold, unnested

FEWEST_ROWS = 8  # a fold inside of a kernel runs once a row: fewer rows leave threads idle
SMALL_FOLD_CYCLES = 30_000  # below, one thread is enough
COLUMNS_AT_ONCE = 64
MOST_NODES = 600  # of one kernel
MOST_PASSES = 10  # over one row, one after the other


def fused(
    nests: tuple[Nest, ...], outside: tuple[str, ...], machine: Machine
) -> tuple[tuple[Nest, ...], ...]:
    """Groups of nests, each one kernel, in an order that keeps every dependence."""
    named = tuple(with_canonical_folds(n) for n in unnested(nests))
    return grouped([folds_outermost(n) for n in vertically(named, frozenset(outside))])


def with_canonical_folds(n: Nest) -> Nest:
    """Simplified, with the names of fold loops settled."""
    n = simplified(n)
    stores = tuple(Store(s.buf, s.index, canonical(s.value), s.combine) for s in n.stores)
    return Nest(n.iters, stores, n.source)


# vertical -----------------------------------------------------------------------------------------


def vertically(nests: tuple[Nest, ...], outside: frozenset[str]) -> list[Nest]:
    """Producers inlined into their consumers; scratch that nobody reads any more is dropped."""
    done: list[Nest] = []
    written: dict[str, int] = {}  # buffer -> the last nest that stores to it
    for n in nests:
        done.append(with_producers(n, done, written))
        written.update((s.buf.name, len(done) - 1) for s in n.stores)
    return without_unread(done, outside)


def with_producers(consumer: Nest, earlier: list[Nest], written: dict[str, int]) -> Nest:
    """`consumer` with all the producers inlined that pay, nearest first."""
    refused: set[str] = set()
    while True:
        wanted = {name: written[name] for name in read_names(consumer) if name in written}
        at = max((k for name, k in wanted.items() if name not in refused), default=-1)
        if at < 0:
            return consumer
        mine = {name for name, k in wanted.items() if k == at}
        made = None
        if not overwritten(earlier[at], at, written):
            made = with_producer(consumer, earlier[at], mine - refused)
        if made is None:
            refused |= mine
        else:
            refused |= mine & read_names(made)
            consumer = made


def with_producer(consumer: Nest, producer: Nest, names: set[str]) -> Nest | None:
    """`consumer` computing those of the producer's results that pay; None when none does."""
    values = {name: v for name, v in values_by_buffer(producer).items() if name in names}
    values = {name: v for name, v in values.items() if pays(consumer, name, v)}
    if not values:
        return None
    candidate = rewritten(consumer, values)
    return candidate if is_sound(candidate) else None


def overwritten(producer: Nest, at: int, written: dict[str, int]) -> bool:
    """Has a later nest changed what the producer read or wrote, or the producer its own input?"""
    stored = {s.buf.name for s in producer.stores}
    mine = stored | read_names(producer)
    return bool(stored & read_names(producer)) or any(written.get(n, -1) > at for n in mine)


def pays(consumer: Nest, name: str, filled: tuple[tuple[Expr, ...], Expr]) -> bool:
    """Is computing the value at every use no more work than keeping it?"""
    iters, value = filled
    loads = [
        n
        for n in nodes(roots_of(consumer))
        if n.kind in ("load", "guarded") and n.attr.name == name
    ]
    if runs_along(value) or runs_along(*roots_of(consumer)) and folds([value]):
        return False
    inner = folds([value])
    elements = trips(iters)
    if inner and any(s.combine for s in consumer.stores):
        return False  # loops that scatter are put in another order, which would run the folds anew
    if inner:
        once = all(trips(x.free) <= elements for x in loads)
        return once and len(loads) <= 2 and not any(is_shared_out(f) for f in inner)
    once = all(turns(x, consumer) <= elements for x in loads)
    return (once and len(loads) <= 4) or repeat_cycles(value) < CHEAP_TO_REPEAT


def runs_along(*roots: Expr) -> bool:
    """Is there a running fold, which has values only in the order of its loop?"""
    return any(n.kind == "scan" for n in nodes(roots))


def turns(load: Expr, consumer: Nest) -> int:
    """How often a load's place in the nest is reached: loops outside of it count, used or not."""
    last = max((k for k, i in enumerate(consumer.iters) if i in load.free), default=-1)
    return trips(load.free | set(consumer.iters[: last + 1]))


@lru_cache(maxsize=1024)
def is_shared_out(fold: Expr) -> bool:
    """Must threads split this fold, since it runs too few times?"""
    rows = trips(fold.free)
    if folds_columns(flat_value(fold)):
        rows = rows // COLUMNS_AT_ONCE
    if rows >= FEWEST_ROWS:
        return False
    work = sum(cycles(n) for n in nodes(fold.args)) / 16
    return trips(fold.free) * trips(bound_of(fold)) * work > SMALL_FOLD_CYCLES


def is_sound(nest: Nest) -> bool:
    """Do the loops of folds nest in one another, does none run anew, is the kernel of sane size?"""
    roots = list(roots_of(nest))
    own = frozenset(nest.iters)
    sets = sorted({f.free & own for f in folds(roots)} | {own}, key=len)
    nested = all(a <= b for a, b in pairwise(sets)) and inner_fold(roots) is None
    return nested and is_small(roots)


def is_small(roots: list[Expr]) -> bool:
    """Are there few enough nodes, and folds that wait for one another?"""
    level: dict[Expr, int] = {}
    for node in (everything := nodes(tuple(roots))):
        below = max((level[a] for a in node.args), default=0)
        level[node] = below + (node.kind == "reduce")
    return len(everything) <= MOST_NODES and max(level.values(), default=0) <= MOST_PASSES


def without_unread(nests: list[Nest], outside: frozenset[str]) -> list[Nest]:
    """Stores to scratch that no nest reads are dropped, last nest first."""
    kept: list[Nest] = []
    wanted = set(outside)
    for n in reversed(nests):
        stores = tuple(s for s in n.stores if s.buf.name in wanted)
        if stores:
            n = n if len(stores) == len(n.stores) else Nest(n.iters, stores, n.source)
            kept.append(n)
            wanted.update(read_names(n))
    return kept[::-1]


# horizontal ---------------------------------------------------------------------------------------


def grouped(nests: list[Nest]) -> tuple[tuple[Nest, ...], ...]:
    """Every nest joins the latest earlier group that it may join without passing a dependence."""
    groups: list[list[Nest]] = []
    for n in nests:
        for at in range(len(groups) - 1, -1, -1):
            if may_join(groups[at], n):
                groups[at].append(n)
                break
            if depends(n, groups[at]):
                groups.append([n])
                break
        else:
            groups.append([n])
    return tuple(tuple(forwarded(g)) for g in groups)


def depends(n: Nest, group: list[Nest]) -> bool:
    """Must `n` stay after the group?"""
    written = {s.buf.name for m in group for s in m.stores}
    read = frozenset().union(*map(read_names, group))
    mine = {s.buf.name for s in n.stores}
    return bool(written & (read_names(n) | mine) or read & mine)


def may_join(group: list[Nest], n: Nest) -> bool:
    """Same domain or a prefix, something to share, and no dependence but at the same point."""
    first = max(group, key=lambda m: len(m.iters))
    short, long = sorted((n.iters, first.iters), key=len)
    if any(runs_along(*roots_of(m)) for m in (n, *group)):
        return False
    if short != long[: len(short)] or any(s.combine for m in (n, *group) for s in m.stores):
        return False
    if len(short) < len(long) and not shares_folds(group, n):
        return False
    if depends(n, group) and not only_at_same_point(group, n):
        return False
    if not shares_something(group, n):
        return False
    roots = [e for m in (*group, n) for s in m.stores for e in (*s.index, s.value)]
    sets = sorted(
        {f.free & set(long) for f in folds(roots)} | {frozenset(m.iters) for m in (*group, n)},
        key=len,
    )
    return all(a <= b for a, b in pairwise(sets)) and is_small(roots)


def only_at_same_point(group: list[Nest], n: Nest) -> bool:
    """Does `n` read the group's results at its own point only, and write nothing it reads?"""
    written = {name: v for m in group for name, v in values_by_buffer(m).items()}
    everything = {s.buf.name for m in group for s in m.stores}
    touched = everything.union(*map(read_names, group))
    if {s.buf.name for s in n.stores} & touched:
        return False
    for node in nodes(roots_of(n)):
        if (
            node.kind in ("load", "guarded")
            and node.attr.name in everything
            and (
                node.attr.name not in written
                or node.kind == "guarded"
                or written[node.attr.name][0] != node.args
            )
        ):
            return False
    return True


def shares_folds(group: list[Nest], n: Nest) -> bool:
    mine = set(folds(s.value for s in n.stores))
    return bool(mine & set(folds(s.value for m in group for s in m.stores)))


def shares_something(group: list[Nest], n: Nest) -> bool:
    """A load, a fold, or a value handed over."""
    stored = {s.buf.name for m in group for s in m.stores}
    return not read_names(n).isdisjoint(stored.union(*map(read_names, group)))


def forwarded(group: list[Nest]) -> list[Nest]:
    """Reads of what an earlier nest of the group stores, replaced by the stored value."""
    done: list[Nest] = []
    for n in group:
        values = {name: v for m in done for name, v in values_by_buffer(m).items()}
        mine = read_names(n) & set(values)
        done.append(rewritten(n, {name: values[name] for name in mine}) if mine else n)
    return done


__all__ = ["extent", "fused", "inlined"]
