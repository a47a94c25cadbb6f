"""Where the values of a graph are: a piece of memory, and how far into it."""

from __future__ import annotations

from dataclasses import dataclass

from flambeau.graph import Graph
from flambeau.graph.graph import Equation, Value


@dataclass(frozen=True, slots=True)
class Place:
    """`root` is the value that made or brought the memory; `offset` counts bytes."""

    root: Value
    offset: int = 0


def places(graph: Graph) -> dict[Value, Place]:
    """The place of every value; a view is in its operand's memory, wherever that is."""
    found = {v: Place(v) for v in (*graph.inputs, *graph.constants)}
    for equation in graph.equations:
        for value in equation.outputs:
            found[value] = viewed(equation, found) if equation.is_view else Place(value)
    return found


def viewed(equation: Equation, found: dict[Value, Place]) -> Place:
    base = found[equation.inputs[0]]
    if isinstance(equation.op, str):
        return base
    of, elements = equation.op.meta(*equation.input_specs(), **equation.params)
    return Place(base.root, base.offset + elements * of.itemsize)
