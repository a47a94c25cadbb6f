"""Folds inside of folds that would be computed again and again get their values from memory.

A fold inside of another runs once for each point of all the loops around it. Where those include
loops that it does not depend on, it becomes a nest of its own, over what it depends on, into
scratch that the outer fold reads.
"""

from __future__ import annotations

from itertools import count

from flambeau.loops.expr import Expr, iterator
from flambeau.loops.nest import Buf, Nest, Store
from flambeau.loops.substitute import Substitution
from flambeau.schedule.cost import trips
from flambeau.schedule.domain import bound_of, folds, values_of


def unnested(nests: tuple[Nest, ...]) -> tuple[Nest, ...]:
    """The nests, each preceded by those of the inner folds that it had."""
    names = count()
    done: list[Nest] = []
    for n in nests:
        while (inner := inner_fold([s.value for s in n.stores])) is not None:
            scratch, nest = own_nest(inner, n, f"fold{next(names)}_")
            done.append(nest)
            n = with_load(n, inner, scratch)
        done.append(n)
    return tuple(done)


def inner_fold(roots: list[Expr]) -> Expr | None:
    """A single-valued fold inside of another that runs more often than it has values."""
    for outer in folds(roots):
        around = outer.free.union(bound_of(outer))
        for fold in folds(values_of(outer)):
            depends = fold.free & set(bound_of(outer)) and not isinstance(fold.dtype, tuple)
            if depends and trips(around - fold.free) > 1 and has_known_shape(fold):
                return fold
    return None


def has_known_shape(fold: Expr) -> bool:
    return all(isinstance(i.attr[1], int) for i in fold.free)


def order(fold: Expr, n: Nest) -> tuple[Expr, ...]:
    """The iterators that the fold depends on, the nest's own first."""
    own = [i for i in n.iters if i in fold.free]
    return (*own, *sorted(fold.free - set(own), key=lambda i: i.attr[0]))


def own_nest(fold: Expr, n: Nest, name: str) -> tuple[Buf, Nest]:
    free = order(fold, n)
    shape = tuple(i.attr[1] for i in free)
    iters = tuple(iterator(f"i{d}", size) for d, size in enumerate(shape))
    value = Substitution(dict(zip(free, iters))).of(fold)
    scratch = Buf(name, shape, None, fold.dtype)
    return scratch, Nest(iters, (Store(scratch, iters, value),), n.source)


def with_load(n: Nest, fold: Expr, scratch: Buf) -> Nest:
    change = Substitution({fold: scratch[order(fold, n)]})
    return Nest(
        n.iters,
        tuple(Store(s.buf, s.index, change.of(s.value), s.combine) for s in n.stores),
        n.source,
    )
