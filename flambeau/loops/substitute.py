"""Putting expressions in the place of iterators and loads, with bound iterators kept apart.

A `reduce` binds its iterators: a replacement that mentions an iterator of the same name and extent
must not be captured, so the bound one is renamed first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flambeau.loops.expr import Expr, iterator


def substitute(e: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """`e` with every free occurrence of a key of `values` replaced."""
    return Substitution(values).of(e)


class Substitution:
    """One mapping applied to many expressions, sharing the work."""

    def __init__(self, values: Mapping[Expr, Expr], load: Callable[[Expr], Expr] | None = None):
        self.values = {k: v for k, v in values.items() if v is not k}
        self.load = load  # what to put for a rebuilt `load` or `guarded`
        self.keys = frozenset(self.values)
        self.only_iterators = all(k.kind == "iter" for k in self.keys)
        self.incoming = frozenset().union(*[v.free for v in self.values.values()])
        self.done: dict[Expr, Expr] = dict(self.values)

    def of(self, e: Expr) -> Expr:
        """Operands first; what cannot change is not entered."""
        stack = [e]
        while stack:
            node = stack[-1]
            if node in self.done:
                stack.pop()
            elif self.load is None and self.only_iterators and not self.touches(node):
                self.done[stack.pop()] = node
            else:
                waiting = [a for a in node.args if a not in self.done]
                if waiting:
                    stack.extend(waiting)
                else:
                    self.done[stack.pop()] = self.one(node)
        return self.done[e]

    def touches(self, node: Expr) -> bool:
        """May a key occur in the node? An iterator's extent is not among its free iterators."""
        extent = node.attr[1] if node.kind == "iter" else None
        return bool(node.free & self.keys or (isinstance(extent, Expr) and extent.free & self.keys))

    def one(self, node: Expr) -> Expr:
        """`node`, whose operands are done."""
        if node.kind == "iter":
            extent = node.attr[1]
            if isinstance(extent, Expr) and extent.free & self.keys:
                return iterator(node.attr[0], self.of(extent))
            return node
        if node.kind == "reduce":
            return self.binder(node)
        made = node.with_args(tuple([self.done[a] for a in node.args]))
        if self.load is not None and node.kind in ("load", "guarded"):
            return self.load(made)
        return made

    def binder(self, node: Expr) -> Expr:
        """A reduce: its own iterators shadow keys, and are renamed where they would capture."""
        bound = node.args[node.attr[1] :]
        shadowed = self.keys & set(bound)
        clashing = [i for i in bound if i in self.incoming] if node.free & self.keys else []
        ragged = [i for i in bound if self.done.get(i, i) is not i and i not in shadowed]
        if not shadowed and not clashing and not ragged:
            return node.with_args(tuple([self.done[a] for a in node.args]))
        inner = {k: v for k, v in self.values.items() if k not in shadowed}
        taken = {i.attr[0] for i in self.incoming | node.free | set(bound)}
        for i in bound:
            extent = i.attr[1]
            new = substitute(extent, inner) if isinstance(extent, Expr) else extent
            name = fresh(i.attr[0], taken) if i in clashing else i.attr[0]
            taken.add(name)
            if name != i.attr[0] or new is not extent:
                inner[i] = iterator(name, new)
        below = Substitution(inner, self.load)
        return node.with_args(tuple([below.of(a) for a in node.args]))


def fresh(name: str, taken: set[str]) -> str:
    """A name like `name` that is not in `taken`."""
    stem = name.rstrip("0123456789")
    count = 0
    while f"{stem}{count}" in taken:
        count += 1
    return f"{stem}{count}"
