"""A graph replayed on fakes with autograd running, and backward passes traced from there.

The fakes are the capture's: tensors without data whose operations are written down. Replaying a
graph on them gives the same operations again, and this time the results have nodes, so that the
engine can walk back and its operations are written down behind the others. Numbers are taken as
they are: the result holds for the given sizes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from flambeau.autograd.engine import run_backward
from flambeau.autograd.node import Node, PrimitiveNode, gradient_edge
from flambeau.autograd.saved import unseen
from flambeau.capture.traced import OutsideNode, Recorder, TracedStorage, traced
from flambeau.core import context
from flambeau.core.errors import FlambeauError
from flambeau.graph import Equation, Graph, Value
from flambeau.graph.interpret import run_recorded
from flambeau.graph.passes import without_aliases
from flambeau.tensor.tensor import Tensor, alias, storage_of


class Unsupported(FlambeauError):
    """The two passes cannot be separate programs; the graph runs through autograd instead."""


class PlainNumbers:
    """What the recorder asks about numbers, where none is symbolic."""

    symbols = ()

    def is_symbolic(self, value: Any) -> bool:
        return False


class Joint(NamedTuple):
    """The equations of both passes in one graph.

    graph      inputs, and cotangents behind them, to outputs, and gradients behind them
    forward    how many of the equations belong to the forward pass
    gradients  for each differentiable input, whether it gets a gradient
    """

    graph: Graph
    forward: int
    gradients: tuple[bool, ...]


class History:
    """`core` replayed on fakes that stand for `inputs`."""

    def __init__(self, core: Graph, inputs: Sequence[Any]):
        self.recorder = Recorder()
        self.recorder.scalars = PlainNumbers()
        self.storages: dict[int, TracedStorage] = {}
        self.fakes = [self._fake(x) for x in inputs]
        self.places = [self._place(fake) for fake in self.fakes]
        self.outputs: list[Tensor] = []
        with unseen(), context.executing(self.recorder):
            self.outputs = run_recorded(core, self.fakes, alias)
            self.values = [self.recorder.value_of(t) for t in self.outputs]
        self.end = len(self.recorder.equations)
        self._check_inputs(core)
        self.differentiable = [k for k, fake in enumerate(self.fakes) if _edge(fake)]
        self.live = [k for k, t in enumerate(self.outputs) if t._node is not None]

    def _fake(self, x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        edge = gradient_edge(x)
        storage = storage_of(x)
        known = self.storages.get(id(storage))
        if known is None:
            known = self.storages[id(storage)] = TracedStorage(storage.nbytes)
        fake = traced(x._spec, known)
        fake._offset = x._offset
        fake._requires_grad = edge is not None
        if edge is not None and edge[1] >= 0:
            fake._node, fake._output_nr = OutsideNode([], edge[0].out_specs), edge[1]
        self.recorder.inputs.append(self.recorder.define(fake))
        return fake

    @staticmethod
    def _place(fake: Any) -> Any:
        return (fake._node, fake._spec) if isinstance(fake, Tensor) else None

    def _check_inputs(self, core: Graph) -> None:
        """Inputs must keep their history, and what is written must not be known twice."""
        for fake, place in zip(self.fakes, self.places):
            if self._place(fake) != place:
                raise Unsupported("an input gets a new history")
        written = core.writes()
        shared = len(self.storages) < len(self.recorder.inputs)
        if shared and written & set(core.inputs):
            raise Unsupported("inputs that are written share memory")

    # The backward pass -----------------------------------------------------------------------

    def saving_nodes(self, k: int) -> set[Node]:
        """The nodes behind output `k` that keep values for the backward pass."""
        found, seen = set(), set()
        stack = [self.outputs[k]._node]
        while stack:
            node = stack.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if isinstance(node, PrimitiveNode) and node.rule.saves:
                found.add(node)
            stack += [e[0] for e in node.edges if e is not None and e[1] >= 0]
        return found

    def joint(self, live: Sequence[int]) -> Joint:
        """Both passes, where the outputs `live` have cotangents."""
        recorder = self.recorder
        del recorder.equations[self.end :]
        cotangents = [traced(self.outputs[k]._spec.preserved()) for k in live]
        values = [recorder.define(t) for t in cotangents]
        edges = [_edge(self.fakes[k]) for k in self.differentiable]
        state = context.state
        before = state.stack, state.top
        state.stack, state.top = (), None
        try:
            with unseen(), context.executing(recorder):
                roots = [self.outputs[k] for k in live]
                found = run_backward(roots, cotangents, True, False, edges).found
                grads = [found.get((id(e[0]), e[1])) for e in edges]
                results = [recorder.value_of(g) for g in grads if g is not None]
        finally:
            state.stack, state.top = before
        return self._joined(values, results, tuple(g is not None for g in grads))

    def _joined(
        self, cotangents: list[Value], results: list[Value], gradients: tuple[bool, ...]
    ) -> Joint:
        recorder = self.recorder
        graph = Graph(
            [*recorder.inputs, *cotangents],
            recorder.equations,
            [*self.values, *results],
            recorder.constants,
        )
        forward = sum(e.op != "alias" for e in recorder.equations[: self.end])
        return Joint(without_aliases(graph), forward, gradients)


def _edge(fake: Any) -> tuple | None:
    """Where the gradient of a fake input goes."""
    if not isinstance(fake, Tensor) or not fake._requires_grad:
        return None
    return (fake, -1) if fake._node is None else (fake._node, fake._output_nr)


def reads(equations: Sequence[Equation]) -> list[Value]:
    """The values that the equations read and do not make, in order."""
    made: set[Value] = set()
    found: dict[Value, None] = {}
    for equation in equations:
        for value in equation.uses():
            if value not in made:
                found[value] = None
        made.update(equation.outputs)
    return list(found)
