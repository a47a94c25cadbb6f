"""Cutting a graph into steps: segments of loop equations, and single kernels in between.

A segment's equations run as one program without touching Python, so within it memory must be
known by one name only: once a piece of memory is written in a segment, the segment reaches it
through no other value.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from flambeau.compile.native.epilogues import Activated, activations
from flambeau.compile.native.followers import Followed, followed
from flambeau.compile.native.kinds import has_indices, is_loop
from flambeau.compile.native.reading import is_readable
from flambeau.graph import Graph
from flambeau.graph.graph import Equation, Value
from flambeau.graph.passes import memory

LONGEST = 400  # equations; compile time grows faster than a segment
Part = Followed | Activated | Equation


@dataclass(slots=True)
class Segment:
    """Consecutive equations for one kernel. `made` are the values that its equations compute."""

    equations: list[Equation] = field(default_factory=list)
    made: set[Value] = field(default_factory=set)
    touched: dict[Value, set[Value]] = field(default_factory=dict)  # memory -> values used for it
    written: set[Value] = field(default_factory=set)  # memory
    may_fail: bool = False  # an index in it may be out of range
    hidden: set[Value] = field(default_factory=set)  # views of `made` that have no plain index

    def accepts(self, equation: Equation, roots: dict[Value, Value]) -> bool:
        """May the equation join without memory being known by two names?"""
        target = equation.target
        if any(v in self.hidden for v in equation.uses()):
            return False
        if self.may_fail and target is not None:
            return False  # a kernel that fails has run to its end, this write included
        for v in equation.uses():
            root = roots.get(v, v)
            names = self.touched.get(root, set()) | {v}
            if len(names) > 1 and (root in self.written or v is target):
                return False
        return len(self.equations) < LONGEST

    def independent(self, part: Part, roots: dict[Value, Value]) -> bool:
        """Does it read nothing that the segment computes or overwrites?"""
        return not any(v in self.made or v in self.hidden or roots.get(v, v) in self.written
                       for v in part.values())

    def see(self, view: Equation, roots: dict[Value, Value]) -> None:
        """A view of a value of the segment joins it, or hides that value from it."""
        (of, *_), (out,) = view.inputs, view.outputs
        if of in self.made and is_readable(view):
            self.add(view, roots)
        elif of in self.made or of in self.hidden:
            self.hidden.add(out)

    def add(self, equation: Equation, roots: dict[Value, Value]) -> None:
        self.equations.append(equation)
        self.made.update(equation.outputs)
        self.may_fail = self.may_fail or has_indices(equation)
        for v in (*equation.uses(), *equation.outputs):
            self.touched.setdefault(roots.get(v, v), set()).add(v)
        if equation.target is not None:
            self.written.add(roots.get(equation.target, equation.target))


def steps(
    graph: Graph, alone: Container[Equation] = ()
) -> Iterator[Segment | Part]:
    """The graph in order, as segments and single kernels; equations in `alone` join no segment.

    A view is a fact about memory and no step, unless a segment reads what it computed through it.
    What needs nothing of a segment does not end it: it goes before.
    """
    roots = memory(graph)
    heads: dict[Equation, Part] = {**activations(graph), **followed(graph)}
    done = {e for part in heads.values() for e in part.equations[1:]}
    segment = Segment()
    for equation in graph.equations:
        if equation in done:
            continue
        if equation.is_view:
            segment.see(equation, roots)
            continue
        loop = equation not in alone and is_loop(equation)
        if loop and segment.accepts(equation, roots):
            segment.add(equation, roots)
            continue
        part = heads.get(equation, equation)
        if not equation.has_effect and not loop and segment.independent(part, roots):
            yield part
            continue
        if segment.equations:
            yield segment
            segment = Segment()
        if loop:
            segment.add(equation, roots)
        else:
            yield part
    if segment.equations:
        yield segment
