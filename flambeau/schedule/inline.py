"""One nest's values put in the place of loads from the buffer that it fills."""

from __future__ import annotations

import weakref

from flambeau.core import dtype as dtypes
from flambeau.ir.node import nodes, postorder
from flambeau.loops.expr import Expr, const, iterator, where
from flambeau.loops.nest import Nest, Store
from flambeau.loops.substitute import Substitution


def is_pointwise_store(nest: Nest, s: Store) -> bool:
    """Does the store fill its buffer, each element at its own point, in whichever order?"""
    if s.combine is not None or len(s.index) != len(nest.iters):
        return False
    if s.index != nest.iters and set(s.index) != set(nest.iters):
        return False
    return all(i.attr[1] == n for i, n in zip(s.index, s.buf.shape))


def values_by_buffer(nest: Nest) -> dict[str, tuple[tuple[Expr, ...], Expr]]:
    """buffer name -> (iterators, value at their point), for stores that fill their buffer."""
    found = {s.buf.name: (s.index, s.value) for s in nest.stores if is_pointwise_store(nest, s)}
    for s in nest.stores:
        if not is_pointwise_store(nest, s):
            found.pop(s.buf.name, None)
    return found


def inlined(e: Expr, values: dict[str, tuple[tuple[Expr, ...], Expr]]) -> Expr:
    """`e` with every load from a buffer in `values` replaced by what fills it there."""
    memo: dict[Expr, Expr] = {}

    def one(made: Expr) -> Expr:
        if made.attr.name not in values:
            return made
        if made not in memo:
            memo[made] = value_at(made, *values[made.attr.name])
        return memo[made]

    return canonical(Substitution({}, one).of(e))


def value_at(load: Expr, iters: tuple[Expr, ...], value: Expr) -> Expr:
    """`value` at the load's position; a guarded load guards the loads inside."""
    if load.kind == "load":
        return Substitution(dict(zip(iters, load.args))).of(value)
    condition, other, *position = load.args
    moved = Substitution(dict(zip(iters, position))).of(value)
    return where(condition, guarded_by(moved, condition), other)


def guarded_by(e: Expr, condition: Expr) -> Expr:
    """`e` whose loads read nothing where `condition` does not hold."""
    done: dict[Expr, Expr] = {}
    for node in postorder([e]):
        made = node.with_args(tuple([done[a] for a in node.args]))
        if made.kind == "load":
            zero = const(0, made.dtype)
            made = Expr.make("guarded", made.dtype, (condition, zero, *made.args), made.attr)
        elif made.kind == "guarded":
            both = Expr.make("and", dtypes.bool, (condition, made.args[0]))
            made = made.with_args((both, *made.args[1:]))
        done[node] = made
    return done[e]


_canonical: weakref.WeakSet[Expr] = weakref.WeakSet()


def canonical(e: Expr) -> Expr:
    """Fold iterators numbered by nesting, innermost first, so that equal folds are one node."""
    done: dict[Expr, Expr] = {}
    stack = [e]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        if node in _canonical:
            done[stack.pop()] = node
            continue
        waiting = [a for a in node.args if a not in done]
        if waiting:
            stack.extend(waiting)
            continue
        made = node.with_args(tuple([done[a] for a in node.args]))
        if made.kind == "reduce" and made not in _canonical:
            made = numbered(made)
        _canonical.add(made)
        done[stack.pop()] = made
    return done[e]


def numbered(fold: Expr) -> Expr:
    """A fold over numbered ones, with the least numbers that no fold inside depends on."""
    count = fold.attr[1]
    bound = fold.args[count:]
    inside = [n for n in nodes(fold.args[:count]) if n.kind == "reduce" and n.free & set(bound)]
    first = max((last_number(n) + 1 for n in inside), default=0)
    taken = {i.attr[0] for v in fold.args[:count] for i in v.free - set(bound)}
    names: list[str] = []
    at = first
    while len(names) < len(bound):
        if f"r{at}" not in taken:
            names.append(f"r{at}")
        at += 1
    renames = {b: iterator(name, b.attr[1]) for b, name in zip(bound, names) if b.attr[0] != name}
    if not renames:
        return fold
    change = Substitution(renames)
    values = tuple(change.of(v) for v in fold.args[:count])
    new = [renames.get(b, b) for b in bound]
    return fold.make("reduce", fold.dtype, (*values, *new), fold.attr)


def last_number(fold: Expr) -> int:
    """The highest number among the iterators of a numbered fold."""
    return max(int(i.attr[0][1:]) for i in fold.args[fold.attr[1] :])


def rewritten(nest: Nest, values: dict[str, tuple[tuple[Expr, ...], Expr]]) -> Nest:
    """The nest with loads inlined, in values and indices."""
    stores = tuple(
        Store(
            s.buf, tuple(inlined(i, values) for i in s.index), inlined(s.value, values), s.combine
        )
        for s in nest.stores
    )
    return Nest(nest.iters, stores, nest.source)
