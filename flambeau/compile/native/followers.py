"""Elementwise operations that follow a product: which of them its kernel computes as well.

A follower runs where the product runs, so it may read only what exists there already and nobody
overwrites in between. It joins if that saves a pass over memory: what it reads of the product
need not be stored for anyone else, or what it gives must be stored in any case.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from flambeau.compile.native.kinds import is_loop, is_plain
from flambeau.core.spec import Spec
from flambeau.graph import Graph
from flambeau.graph.graph import Equation, Value
from flambeau.graph.passes import memory

PRODUCTS = ("linear", "matmul")
MOST_FOLLOWERS = 8
MOST_POINTERS = 12


@dataclass(frozen=True, slots=True)
class Followed:
    """A product with the operations that its kernel computes as well.

    stored   values of these equations that somebody else reads; the kernel's C is the first
    names    values of these equations and their views -> the value
    """

    product: Equation
    followers: tuple[Equation, ...]
    stored: tuple[Value, ...]
    names: dict[Value, Value] = field(compare=False, repr=False)

    @property
    def equations(self) -> tuple[Equation, ...]:
        return self.product, *self.followers

    def values(self) -> Iterator[Value]:
        """What all equations together read."""
        yield from (v for e in self.equations for v in e.values() if v not in self.names)


class Surroundings:
    """Who makes, reads and overwrites the values of a graph, and where."""

    def __init__(self, graph: Graph):
        self.roots = memory(graph)
        self.position = {e: k for k, e in enumerate(graph.equations)}
        self.made: dict[Value, int] = {}
        self.users: dict[Value, list[Equation]] = {}
        self.writes: dict[Value, list[int]] = {}
        self.leaving = {self.roots[v] for v in graph.outputs}
        for at, equation in enumerate(graph.equations):
            for value in equation.outputs:
                self.made[value] = at
            for value in equation.uses():
                self.users.setdefault(value, []).append(equation)
            if equation.target is not None:
                self.writes.setdefault(self.roots[equation.target], []).append(at)

    def readers(self, value: Value) -> Iterator[Equation]:
        """Those who use the memory of `value`, through views too."""
        for user in self.users.get(value, ()):
            if user.is_view:
                for view in user.outputs:
                    yield from self.readers(view)
            else:
                yield user

    def exists(self, value: Value, before: Equation) -> bool:
        return self.made.get(value, -1) < self.position[before]

    def overwritten(self, value: Value, after: Equation, before: Equation) -> bool:
        low, high = self.position[after], self.position[before]
        return any(low < at < high for at in self.writes.get(self.roots[value], ()))


class Growth:
    """One product and what joins it, in the order of the graph."""

    def __init__(self, product: Equation, around: Surroundings):
        self.product, self.around = product, around
        (out,) = product.outputs
        self.columns = out.spec.shape[-1]
        self.rows = out.spec.numel // self.columns
        self.chain = {out}  # values at hand, views that only reshape included
        self.members: list[Equation] = []
        self.pointers: set[Value] = set()
        waiting = [(around.position[e], e) for e in dict.fromkeys(around.users.get(out, ()))]
        heapq.heapify(waiting)
        seen = {e for _, e in waiting}
        while waiting and len(self.members) < MOST_FOLLOWERS:
            equation = heapq.heappop(waiting)[1]
            if not self.takes(equation):
                continue
            self.chain.update(equation.outputs)
            for user in around.users.get(equation.outputs[0], ()):
                if user not in seen:
                    seen.add(user)
                    heapq.heappush(waiting, (around.position[user], user))

    def takes(self, equation: Equation) -> bool:
        """Does the equation's result join the chain?"""
        if equation.is_view:
            return equation.op == "alias" or self.is_flat(equation.outputs[0].spec)
        if not self.is_elementwise(equation) or not all(map(self.has, equation.inputs)):
            return False
        read = [v for v in equation.inputs if isinstance(v, Value)]
        if any(self.around.overwritten(v, self.product, equation) for v in read):
            return False
        if not self.saves(equation):
            return False
        pointers = self.pointers | {v for v in read if v not in self.chain}
        if len(pointers) > MOST_POINTERS:
            return False
        self.pointers = pointers
        self.members.append(equation)
        return True

    def is_flat(self, s: Spec) -> bool:
        """Is it laid out like the product's rows and columns?"""
        return s.is_contiguous and s.numel == self.rows * self.columns

    def is_elementwise(self, equation: Equation) -> bool:
        op = equation.op
        if isinstance(op, str) or op.kind != "pointwise" or equation.target is not None:
            return False
        (out,), dtype = equation.outputs, self.product.outputs[0].spec.dtype
        return is_loop(equation) and self.is_flat(out.spec) and out.spec.dtype is dtype

    def has(self, operand: Any) -> bool:
        """Can a tile read the operand?"""
        if not isinstance(operand, Value) or operand in self.chain:
            return True
        s = operand.spec
        if s.weak or not self.around.exists(operand, self.product):
            return False
        return layout(s, self.rows, self.columns) is not None

    def saves(self, equation: Equation) -> bool:
        members = (*self.members, equation)
        if not any(self.must_store(v, members) for v in equation.inputs if v in self.chain):
            return True
        return any(not is_loop(r) for r in self.around.readers(equation.outputs[0]))

    def must_store(self, value: Value, members: tuple[Equation, ...]) -> bool:
        around, root = self.around, self.around.roots[value]
        return root in around.leaving or any(r not in members for r in around.readers(root))

    def result(self) -> Followed | None:
        if not self.members:
            return None
        made = [v for e in (self.product, *self.members) for v in e.outputs]
        stored = tuple(v for v in made if self.must_store(v, tuple(self.members)))
        names = {v: self.around.roots[v] for v in self.chain}
        return Followed(self.product, tuple(self.members), stored, names) if stored else None


def layout(s: Spec, rows: int, columns: int) -> tuple | None:
    """The shape in which an operand broadcasts against (rows, columns), or None."""
    if not s.is_contiguous:
        return None
    if s.numel == rows * columns:
        return (rows, columns)
    if s.numel == 1:
        return ()
    return (columns,) if s.numel == columns == s.shape[-1] else None


def followed(graph: Graph) -> dict[Equation, Followed]:
    """product -> the product and its followers, which run in its place."""
    around = Surroundings(graph)
    found: dict[Equation, Followed] = {}
    taken: set[Equation] = set()
    for equation in graph.equations:
        if equation.name not in PRODUCTS or not is_product(equation):
            continue
        made = Growth(equation, around).result()
        if made is not None and not taken.intersection(made.followers):
            found[equation] = made
            taken.update(made.followers)
    return found


def is_product(equation: Equation) -> bool:
    """One product of matrices, not a batch of them."""
    if equation.open_params or not all(map(is_plain, (*equation.inputs, *equation.outputs))):
        return False
    s = equation.outputs[0].spec
    return s.is_contiguous and s.numel > 0 and (equation.name == "linear" or s.ndim == 2)
