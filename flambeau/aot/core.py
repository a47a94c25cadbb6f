"""A graph as its core, which computes, and its finish, which only takes views of the results.

Views and detached aliases that leave a graph must share memory and history with what they are views
of, be it an input or another output. So the core gives the tensors that own memory, and the views
are taken from those by the ordinary operations.
"""

from __future__ import annotations

from typing import NamedTuple

from flambeau.graph import Equation, Graph, Value
from flambeau.graph.numbers import is_number
from flambeau.graph.passes import memory, without_dead_code


class Split(NamedTuple):
    """The outputs of `core` are the first inputs of `finish`; the inputs of both follow."""

    core: Graph
    finish: Graph


def split(graph: Graph) -> Split:
    """The core and the finish of a graph."""
    made = {v: e for e in graph.equations for v in e.outputs}
    views: set[Equation] = set()
    roots: dict[Value, None] = {}
    for value in graph.outputs:
        while value in made and made[value].is_view:
            views.add(made[value])
            value = made[value].inputs[0]
        if value in made:
            roots[value] = None
    core = without_dead_code(graph.replaced(outputs=tuple(roots)))
    views |= sizes_of(views, made)
    taken = [e for e in graph.equations if e in views]
    finish = Graph((*roots, *graph.inputs), taken, graph.outputs, graph.constants)
    return Split(core, finish)


def sizes_of(views: set[Equation], made: dict[Value, Equation]) -> set[Equation]:
    """The equations on numbers that give the views their sizes and places."""
    found: set[Equation] = set()
    pending = list(views)
    while pending:
        for value in pending.pop().uses():
            equation = made.get(value)
            if equation is not None and is_number(equation.op) and equation not in found:
                found.add(equation)
                pending.append(equation)
    return found


def owners(graph: Graph) -> list[Value]:
    """For each output, the value that owns its memory."""
    root = memory(graph)
    return [root[v] for v in graph.outputs]


def needed_for(graph: Graph, outputs: tuple[Value, ...]) -> Graph:
    """The equations that decide the given outputs: other writes are dropped, draws are not."""
    return without_dead_code(graph.replaced(outputs=outputs), effects=False)
