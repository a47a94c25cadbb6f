"""From the joint graph to two graphs: one for the forward pass, one for the backward pass."""

from __future__ import annotations

import os
from typing import NamedTuple

from flambeau.aot.history import Joint, Unsupported, reads
from flambeau.aot.partition import Partition
from flambeau.graph import Graph, Value, verify
from flambeau.graph.passes import without_dead_code

CHECKED = os.environ.get("FLAMBEAU_CHECK") == "1"


class Forward(NamedTuple):
    """The forward graph gives the core's outputs and, behind them, what it keeps.

    kept  the values that the backward pass gets; inputs among them are not outputs of the graph
    """

    graph: Graph
    kept: tuple[Value, ...]


def halves(joint: Joint, inputs: int, outputs: int) -> tuple[Graph, Graph]:
    """The forward equations with the core's outputs, and the backward equations that the
    gradients need, with everything that they read as inputs."""
    graph = joint.graph
    first = graph.replaced(
        inputs=graph.inputs[:inputs],
        equations=graph.equations[: joint.forward],
        outputs=graph.outputs[:outputs],
    )
    rest = graph.equations[joint.forward :]
    gradients = graph.outputs[outputs:]
    made = {v for e in rest for v in e.outputs}
    read = [*reads(rest), *(v for v in gradients if v not in made)]
    outside = [v for v in dict.fromkeys(read) if v not in graph.constants]
    second = without_dead_code(Graph(outside, rest, gradients, graph.constants))
    used = {*reads(second.equations), *gradients}
    second = second.replaced(inputs=[v for v in outside if v in used])
    if second.writes() & set(outside):
        raise Unsupported("the backward pass writes to memory of the forward pass")
    return first, second


def forward_graph(joint: Joint, inputs: int, outputs: int) -> tuple[Forward, Partition]:
    """The forward pass, and the decision on what the backward pass computes again."""
    first, second = halves(joint, inputs, outputs)
    cotangents = set(joint.graph.inputs[inputs:])
    partition = Partition(first, [v for v in second.inputs if v not in cotangents])
    kept = tuple(v for v in partition.kept() if v not in first.constants)
    more = tuple(v for v in kept if v not in first.inputs and v not in first.outputs)
    return Forward(checked(first.replaced(outputs=(*first.outputs, *more))), kept), partition


def backward_graph(
    joint: Joint, partition: Partition, kept: tuple[Value, ...], inputs: int, outputs: int
) -> Graph:
    """(kept values, cotangents) -> gradients."""
    _, second = halves(joint, inputs, outputs)
    equations = partition.again(kept, second.equations, second.outputs)
    result = second.replaced(inputs=(*kept, *joint.graph.inputs[inputs:]), equations=equations)
    if set(reads(equations)) - {*result.inputs, *result.constants}:
        raise Unsupported("the backward pass reads what was not kept")
    return checked(without_dead_code(result))


def checked(graph: Graph) -> Graph:
    """The graph, verified when FLAMBEAU_CHECK=1."""
    if CHECKED:
        verify(graph)
    return graph
