"""What the forward pass keeps for the backward pass, and what the backward pass computes again.

The values that the backward pass reads must come from kept ones through equations that are cheap
enough to run twice. The set to keep is the cheapest cut, by bytes, between the inputs and those
values. Reading what is kept must be as safe as in eager execution: memory that the user can reach
is kept only if autograd would keep it too, since writes to it then raise; nothing is computed
again from memory that the graph overwrites.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from flambeau.aot.flow import Network, cheapest_cut
from flambeau.graph import Equation, Graph, Value
from flambeau.graph.passes import memory

SOURCE, SINK = "source", "sink"
CHEAP = frozenset(
    "add sub mul neg abs relu square sign where eq ne lt le gt ge maximum minimum clamp convert "
    "logical_not logical_and logical_or full arange scalar_tensor masked_fill addcmul".split()
)
"""Operations that cost no more than reading their result from memory."""


class Partition:
    """Decides for one forward graph; `read` are the values that autograd saves."""

    def __init__(self, forward: Graph, read: Iterable[Value]):
        self.graph, self.read = forward, tuple(read)
        self.root = memory(forward)
        self.made = {v: e for e in forward.equations for v in e.outputs}
        self.written = {self.root[v] for v in forward.writes()}
        self.escaping = {self.root[v] for v in (*forward.inputs, *forward.outputs)}
        self.saved = {self.root[v] for v in self.read}

    def repeatable(self, value: Value) -> bool:
        """May the backward pass compute the value again?"""
        equation = self.made.get(value)
        if equation is None or self.root[value] in self.written and not equation.is_view:
            return False
        if equation.is_view:
            return True
        overwritten = any(self.root[v] in self.written for v in equation.values())
        return not overwritten and not equation.is_random and equation.name in CHEAP

    def price(self, value: Value) -> float:
        """What keeping the value costs, in bytes."""
        if value in self.graph.constants or value.spec.weak:
            return 0.0
        if value in self.made and self.made[value].is_view:
            return math.inf  # keep what it is a view of
        if self.root[value] in self.escaping:
            return 0.0 if self.root[value] in self.saved else math.inf
        return float(value.spec.nbytes)

    def kept(self) -> list[Value]:
        """The values to keep, in the order in which they are made."""
        network = Network()
        seen: set[Value] = set()
        stack = list(self.read)
        for value in self.read:
            network.edge(("after", value), SINK)
        while stack:
            value = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            network.edge(("before", value), ("after", value), self.price(value))
            if not self.repeatable(value):
                network.edge(SOURCE, ("before", value))
                continue
            for operand in self.made[value].values():
                network.edge(("after", operand), ("before", value))
                stack.append(operand)
        near = cheapest_cut(network, SOURCE, SINK)
        order = [*self.graph.inputs, *self.graph.constants, *self.made]
        return [
            v for v in order if v in seen and ("after", v) in near and ("before", v) not in near
        ]

    def again(
        self, kept: Iterable[Value], equations: Iterable[Equation], outputs: Iterable[Value]
    ) -> list[Equation]:
        """The equations, and before the first use of a forward value what computes it again."""
        known = {*kept, *self.graph.constants}
        result: list[Equation] = []
        for equation in equations:
            for value in equation.values():
                self._emit(value, known, result)
            result.append(equation)
        for value in outputs:
            self._emit(value, known, result)
        return result

    def _emit(self, value: Value, known: set[Value], result: list[Equation]) -> None:
        stack = [value]
        while stack:
            value = stack[-1]
            equation = self.made.get(value)
            if value in known or equation is None:
                stack.pop()
                continue
            missing = [v for v in equation.values() if v not in known and v in self.made]
            if missing:
                stack += missing
                continue
            stack.pop()
            known.update(equation.outputs)
            result.append(equation)
