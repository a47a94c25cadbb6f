"""A graph that serves many sizes, made for the sizes of one call.

Numbers that decide sizes are put into the parameters, and every spec follows from the specs of the
inputs by the rules of the operations. Other numbers (rates, step counts) stay inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.core.spec import Spec
from flambeau.graph.graph import Equation, Graph, Value
from flambeau.graph.numbers import function_of, is_number


class Unsized(Exception):
    """A size depends on what tensors hold."""


def has_symbols(s: Spec) -> bool:
    """Does the spec stand for several sizes? Symbolic sizes are a class of their own."""
    return any(type(n) is not int for n in s.shape)


def sizing(graph: Graph) -> set[Value]:
    """The numbers on which parameters depend."""
    found: set[Value] = set()
    for equation in reversed(graph.equations):
        if is_number(equation.op):
            if any(v in found for v in equation.outputs):
                found.update(v for v in equation.values() if v.spec.weak)
        elif equation.open_params:
            found.update(equation.replaced(inputs=()).values())  # those in parameters only
    return found


def deciding(graph: Graph) -> list[int]:
    """The positions of the inputs that decide sizes: tensors by their specs, numbers."""
    numbers = sizing(graph)
    return [k for k, v in enumerate(graph.inputs) if v in numbers or has_symbols(v.spec)]


class Sizes:
    """Makes one graph out of another for given inputs: specs of tensors, and numbers."""

    def __init__(self, graph: Graph, inputs: Sequence[Any]):
        self.graph = graph
        numbers = sizing(graph)
        self.values: dict[Value, Any] = {v: v for v in graph.constants}
        self.inputs: list[Value] = []
        for value, x in zip(graph.inputs, inputs, strict=True):
            made = Value(x if isinstance(x, Spec) else value.spec)
            self.inputs.append(made)
            self.values[value] = x if value in numbers else made

    def closed(self) -> Graph:
        equations = [e for e in map(self.equation, self.graph.equations) if e is not None]
        outputs = [self.values[v] for v in self.graph.outputs]
        if not all(isinstance(v, Value) for v in outputs):
            raise Unsized("a result is a number that decides sizes")
        return Graph(self.inputs, equations, outputs, self.graph.constants)

    def equation(self, e: Equation) -> Equation | None:
        """The equation for these sizes; None where it has become a number."""
        inputs = tuple(self.values[v] if isinstance(v, Value) else v for v in e.inputs)
        if is_number(e.op):
            if not any(isinstance(v, Value) for v in inputs):
                (out,) = e.outputs
                self.values[out] = function_of(e.op)(*inputs)
                return None
            return e.replaced(inputs=inputs, outputs=self.fresh(e, [v.spec for v in e.outputs]))
        params = {k: self.parameter(v) for k, v in e.params.items()} if e.open_params else e.params
        target = None if e.target is None else self.values[e.target]
        made = e.replaced(inputs=inputs, params=params, target=target)
        return made if target is not None else made.replaced(outputs=self.fresh(e, specs_of(made)))

    def parameter(self, held: Any) -> Any:
        if isinstance(held, tuple):
            return tuple(map(self.parameter, held))
        found = self.values[held] if isinstance(held, Value) else held
        if isinstance(found, Value):
            raise Unsized("a parameter depends on what tensors hold")
        return found

    def fresh(self, e: Equation, specs: Sequence[Spec]) -> tuple[Value, ...]:
        made = tuple(map(Value, specs))
        self.values.update(zip(e.outputs, made, strict=True))
        return made


def specs_of(e: Equation) -> list[Spec]:
    """The specs of the outputs, from the rules of the operation."""
    if isinstance(e.op, str):  # an alias
        return [e.inputs[0].spec]
    got = e.op.meta(*e.input_specs(), **e.params)
    if e.is_view:
        got = got[0]
    return list(got) if e.several else [got]


def closed(graph: Graph, inputs: Sequence[Any]) -> Graph:
    """The graph for inputs of these specs and for these numbers. Raises Unsized, and what the
    operations raise."""
    return Sizes(graph, inputs).closed()
