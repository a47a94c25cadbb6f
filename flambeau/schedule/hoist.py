"""Loops that folds depend on become the outermost loops of a nest.

Over those loops alone the folds' own results have nests, which can then share the nest's kernel.
Where a fold depends on blocks of a loop (groups of channels), the loop is split for it.
"""

from __future__ import annotations

from itertools import pairwise

from flambeau.loops.expr import Expr, iterator
from flambeau.loops.nest import Nest, Store
from flambeau.loops.substitute import Substitution
from flambeau.schedule.domain import divisor, folds
from flambeau.schedule.flat import tidied, tidy
from flambeau.schedule.liveness import roots_of


def folds_outermost(n: Nest) -> Nest:
    """The nest with its loops in the order in which folds ask for them."""
    if not folds(roots_of(n)) or any(s.combine for s in n.stores):
        return n
    n = in_blocks(n)
    own = frozenset(n.iters)
    sets = sorted({f.free & own for f in folds(roots_of(n))}, key=len)
    if not all(a <= b for a, b in pairwise(sets)):
        return n
    rank = {i: next((k for k, s in enumerate(sets) if i in s), len(sets)) for i in n.iters}
    order = tuple(sorted(n.iters, key=rank.__getitem__))
    return n if order == n.iters else over(n, order, {})


def in_blocks(n: Nest) -> Nest:
    """Every loop i of which a fold sees only i // c becomes a loop over blocks and one inside."""
    for i in n.iters:
        c = divisor(i, folds(roots_of(n)))
        if not c:
            continue
        block, inside = iterator(f"{i.attr[0]}b", i.attr[1] // c), iterator(f"{i.attr[0]}i", c)
        iters = tuple(k for j in n.iters for k in ((block, inside) if j is i else (j,)))
        split = over(n, iters, {i: block * c + inside})
        if any(split.iters[iters.index(inside)] not in f.free for f in folds(roots_of(split))):
            return in_blocks(split)
    return n


def over(n: Nest, order: tuple[Expr, ...], values: dict[Expr, Expr]) -> Nest:
    """The nest over the loops `order`, named by their places; `values` for those replaced."""
    iters = tuple(iterator(f"i{d}", i.attr[1]) for d, i in enumerate(order))
    renamed = Substitution(dict(zip(order, iters)))
    kept = {i: renamed.of(i) for i in n.iters if i not in values}
    change = Substitution(kept | {i: renamed.of(v) for i, v in values.items()})
    stores = tuple(
        Store(s.buf, tuple(tidy(change.of(k)) for k in s.index), tidied(change.of(s.value)), None)
        for s in n.stores
    )
    return Nest(iters, stores, n.source)
