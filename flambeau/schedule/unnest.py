"""Folds whose steps need a fold of their own get it from memory.

A kernel computes a fold once for each point of the loops outside of it. A fold inside of another
fold that depends on its iterators is therefore a nest of its own, over the iterators it depends
on, into scratch that the outer fold reads.
"""

from __future__ import annotations

from itertools import count

from flambeau.loops.expr import Expr, iterator
from flambeau.loops.nest import Buf, Nest, Store
from flambeau.loops.substitute import Substitution
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
    """A single-valued fold inside of another that depends on the other's iterators."""
    for outer in folds(roots):
        bound = set(bound_of(outer))
        for fold in folds(values_of(outer)):
            if fold.free & bound and not isinstance(fold.dtype, tuple) and all(
                    isinstance(i.attr[1], int) for i in fold.free):
                return fold
    return None


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
    return Nest(n.iters, tuple(Store(s.buf, s.index, change.of(s.value), s.combine)
                               for s in n.stores), n.source)
