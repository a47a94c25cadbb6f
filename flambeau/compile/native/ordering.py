"""Equations moved so that native steps are not interrupted.

An optimizer counts the steps of every parameter in a tensor and reads it as a Python number before
the parameter is updated. Every such reading would end a stretch of kernels. Counters depend on
little, so all are counted and read together, before the first update.
"""

from __future__ import annotations

from flambeau.graph import Graph
from flambeau.graph.graph import Equation, Value
from flambeau.graph.numbers import is_number
from flambeau.graph.passes import memory


class Uses:
    """What a list of equations reads, writes and makes, by memory."""

    def __init__(self, roots: dict[Value, Value]):
        self.roots = roots
        self.read: set[Value] = set()
        self.written: set[Value] = set()

    def add(self, equation: Equation) -> None:
        read, written = touched(equation, self.roots)
        self.read |= read
        self.written |= written

    def conflict(self, equation: Equation) -> bool:
        """Must the equation stay behind the list?"""
        read, written = touched(equation, self.roots)
        return bool((read | written) & self.written or written & self.read)


def touched(equation: Equation, roots: dict[Value, Value]) -> tuple[set[Value], set[Value]]:
    """(what the equation reads, what it makes or overwrites)."""
    read = {roots.get(v, v) for v in equation.values()}
    written = set(equation.outputs) if not equation.is_view else set()
    if equation.target is not None:
        written.add(roots[equation.target])
    return read, written


def reads_tensor(equation: Equation) -> bool:
    """Does a number come out of a tensor here?"""
    return is_number(equation.op) and any(not v.spec.weak for v in equation.values())


def needed_by_numbers(graph: Graph, roots: dict[Value, Value]) -> set[Equation]:
    """Equations on single elements that numbers are read from, and those readings."""
    wanted: set[Value] = set()
    found: set[Equation] = set()
    for equation in reversed(graph.equations):
        read, written = touched(equation, roots)
        if reads_tensor(equation) or (written & wanted and is_small(equation)):
            found.add(equation)
            wanted |= read
    return found


def is_small(equation: Equation) -> bool:
    values = [*equation.outputs, *([equation.target] if equation.target is not None else [])]
    return not equation.is_random and all(v.spec.numel == 1 for v in values)


def numbers_together(graph: Graph) -> Graph:
    """Readings of tensors as numbers, as far as nothing else depends on their place, side by side
    where the first one is."""
    start = next((k for k, e in enumerate(graph.equations) if reads_tensor(e)), None)
    if start is None:
        return graph
    roots = memory(graph)
    moving = needed_by_numbers(graph, roots)
    late, readings = Uses(roots), Uses(roots)
    rest: list[Equation] = []
    counts: list[Equation] = []
    numbers: list[Equation] = []
    for equation in graph.equations[start:]:
        if equation not in moving or late.conflict(equation):
            late.add(equation)
            rest.append(equation)
        elif reads_tensor(equation) or readings.conflict(equation):
            readings.add(equation)
            numbers.append(equation)
        else:
            counts.append(equation)
    return graph.replaced(equations=[*graph.equations[:start], *counts, *numbers, *rest])
