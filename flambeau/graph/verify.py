"""What every graph must satisfy, checked between passes when FLAMBEAU_CHECK=1."""

from __future__ import annotations

from flambeau.core.errors import FlambeauError, complaint
from flambeau.graph.graph import Equation, Graph, Value


class GraphError(FlambeauError, AssertionError):
    """A pass has made a graph that means nothing."""


def _fail(must: str, equation: Equation | None = None) -> GraphError:
    facts = {} if equation is None else {"equation": repr(equation)}
    return GraphError(complaint("graph", must, facts))


def verify(graph: Graph) -> None:
    """Every value is defined once and before it is used, and has the spec that its op gives."""
    defined = {*graph.inputs, *graph.constants}
    if len(defined) != len(graph.inputs) + len(graph.constants):
        raise _fail("every input and constant must be a different value")
    for equation in graph.equations:
        _check_uses(equation, defined)
        for value in equation.outputs:
            if value in defined:
                raise _fail("a value must be defined once", equation)
            defined.add(value)
        _check_specs(equation)
    missing = [v for v in graph.outputs if v not in defined]
    if missing:
        raise _fail(f"every output must be defined, {missing[0]!r} is not")


def _check_uses(equation: Equation, defined: set[Value]) -> None:
    for value in equation.uses():
        if value not in defined:
            raise _fail(f"{value!r} must be defined before it is used", equation)
    if (equation.target is None) is not bool(equation.outputs):
        raise _fail("an equation must have either outputs or a target", equation)


def _check_specs(equation: Equation) -> None:
    if isinstance(equation.op, str) or equation.target is not None or equation.open_params:
        return
    got = equation.op.meta(*equation.input_specs(), **equation.params)
    if equation.is_view:
        got = got[0]
    results = got if equation.several else (got,)
    for value, spec in zip(equation.outputs, results):
        if repr(value.spec) != repr(spec):
            raise _fail(f"the op gives {spec!r}", equation)
