"""Passes over graphs that need no knowledge of the target. Each is a pure Graph -> Graph."""

from __future__ import annotations

from flambeau.graph.graph import Equation, Graph, Value


def without_aliases(graph: Graph) -> Graph:
    """%b = alias(%a) only cuts history: where none is recorded, %b is %a."""
    same: dict[Value, Value] = {}
    equations = []
    for equation in graph.equations:
        equation = renamed(equation, same)
        if equation.op == "alias":
            same[equation.outputs[0]] = equation.inputs[0]
        else:
            equations.append(equation)
    return graph.replaced(equations=equations, outputs=tuple(same.get(v, v) for v in graph.outputs))


def renamed(equation: Equation, names: dict[Value, Value]) -> Equation:
    """The equation with some values replaced."""
    if not names:
        return equation
    if not any(v in names for v in equation.uses()):
        return equation
    target = equation.target
    inputs = tuple(names.get(v, v) if isinstance(v, Value) else v for v in equation.inputs)
    return equation.replaced(inputs=inputs, target=names.get(target, target) if target else None)


def without_dead_code(graph: Graph, effects: bool = True) -> Graph:
    """Drop equations without effect whose outputs nobody reads.

    A write into memory that the graph made itself counts as read only if that memory is; without
    `effects` that holds for memory from outside as well, and checks go. Random draws always stay.
    """
    root = memory(graph)
    live = {root[v] for v in graph.outputs}
    if effects:
        live.update(graph.inputs, graph.constants)
    needed: set[Value] = set(graph.outputs)
    kept = []
    for equation in reversed(graph.equations):
        if equation.target is not None:
            wanted = root[equation.target] in live
        else:
            wanted = equation.is_random or (effects and equation.is_check)
            wanted = wanted or any(v in needed for v in equation.outputs)
        if not wanted:
            continue
        kept.append(equation)
        used = list(equation.uses())
        needed.update(used)
        live.update(root[v] for v in used)
    return graph.replaced(equations=kept[::-1])


def memory(graph: Graph) -> dict[Value, Value]:
    """For each value, the value that stands for the memory it is in."""
    root = {v: v for v in (*graph.inputs, *graph.constants)}
    for equation in graph.equations:
        for value in equation.outputs:
            root[value] = root[equation.inputs[0]] if equation.is_view else value
    return root


def without_final_copies(graph: Graph) -> Graph:
    """%b = copy(%a), where %a is fresh, equally laid out and not used otherwise: %b is %a."""
    uses: dict[Value, int] = {}
    root = memory(graph)
    for equation in graph.equations:
        for value in equation.uses():
            uses[root[value]] = uses.get(root[value], 0) + 1
    for value in graph.outputs:
        uses[root[value]] = uses.get(root[value], 0) + 1
    fresh = {v for e in graph.equations if not e.is_view for v in e.outputs}
    same: dict[Value, Value] = {}
    equations = []
    for equation in graph.equations:
        equation = renamed(equation, same)
        source = equation.inputs[0] if equation.inputs else None
        removable = (
            equation.name == "copy"
            and equation.target is None
            and isinstance(source, Value)
            and source in fresh
            and uses[root[source]] == 1
            and source.spec is equation.outputs[0].spec
        )
        if removable:
            (out,) = equation.outputs
            same[out] = source
            uses[root[source]] = uses.get(root[out], 0)
        else:
            equations.append(equation)
    return graph.replaced(equations=equations, outputs=tuple(same.get(v, v) for v in graph.outputs))
