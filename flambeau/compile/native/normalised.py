"""Convolutions whose results are normalised by running statistics, and activated, in one pass."""

from __future__ import annotations

from collections import Counter

from flambeau.core import dtype as dtypes
from flambeau.core.spec import Spec
from flambeau.graph import Graph
from flambeau.graph.graph import Equation, Value
from flambeau.ops.normalised_convolution import channel_affine, conv_affine

Triple = tuple[Equation, Equation, Equation]  # conv, batch_norm_eval, relu


def with_normalised(graph: Graph) -> Graph:
    """relu(batch_norm(conv(x, w))) becomes one equation, behind one for scale and shift.

    Both stand where the relu was: nothing is written between it and the convolution.
    """
    triples = {triple[2]: triple for triple in found(graph)}
    if not triples:
        return graph
    dropped = {e for conv, norm, _ in triples.values() for e in (conv, norm)}
    equations: list[Equation] = []
    for equation in graph.equations:
        if equation in triples:
            equations.extend(as_one(*triples[equation]))
        elif equation not in dropped:
            equations.append(equation)
    return graph.replaced(equations=equations)


def found(graph: Graph) -> list[Triple]:
    uses = Counter(graph.outputs)
    place: dict[Equation, int] = {}
    maker: dict[Value, Equation] = {}
    writes = [0]  # how many there are before each equation
    for at, equation in enumerate(graph.equations):
        uses.update(equation.uses())
        maker.update((v, equation) for v in equation.outputs)
        place[equation] = at
        writes.append(writes[-1] + (equation.target is not None))
    triples = []
    for relu in graph.equations:
        norm = before(relu, "relu", maker, uses)
        conv = None if norm is None else before(norm, "batch_norm_eval", maker, uses)
        if norm is None or conv is None or not fits(conv, norm, relu):
            continue
        if writes[place[conv]] == writes[place[relu]]:
            triples.append((conv, norm, relu))
    return triples


def before(
    equation: Equation, name: str, maker: dict[Value, Equation], uses: Counter
) -> Equation | None:
    """What made the operand of an equation of this name, where nobody else uses that operand."""
    if equation.name != name or equation.target is not None:
        return None
    operand = equation.inputs[0]
    return maker.get(operand) if isinstance(operand, Value) and uses[operand] == 1 else None


def fits(conv: Equation, norm: Equation, relu: Equation) -> bool:
    """A convolution of float32 pictures without bias and groups, in one layout throughout."""
    if conv.name != "conv" or conv.open_params or norm.open_params or conv.inputs[2] is not None:
        return False
    specs = [v.spec for v in (*conv.values(), *norm.values())]
    if not all(isinstance(s, Spec) and s.dtype is dtypes.float32 for s in specs):
        return False
    whole = conv.outputs[0].spec
    plain = whole.ndim == 4 and conv.params["groups"] == 1
    vectors = all(v.spec.strides == (1,) for v in norm.inputs[1:] if isinstance(v, Value))
    return plain and vectors and norm.outputs[0].spec is relu.outputs[0].spec is whole


def as_one(conv: Equation, norm: Equation, relu: Equation) -> list[Equation]:
    affine = tuple(Value(norm.inputs[3].spec) for _ in range(2))
    return [
        Equation(channel_affine, norm.inputs[1:], norm.params, affine, line=norm.line),
        Equation(
            conv_affine, (*conv.inputs[:2], *affine), conv.params, relu.outputs, line=conv.line
        ),
    ]
