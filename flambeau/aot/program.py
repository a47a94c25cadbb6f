"""A captured graph whose results have a history, as one node of the user's autograd graph.

The forward pass is a program of the backend; the backward pass is another one, made when it is
first needed. What two programs cannot express runs through autograd as eager execution would: an
input that gets a new history, second derivatives, users who watch what is saved.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from flambeau.aot.core import needed_for, owners, split
from flambeau.aot.history import History, Unsupported, reads
from flambeau.aot.node import CompiledFunctionBackward
from flambeau.aot.passes import backward_graph, forward_graph
from flambeau.autograd import anomaly
from flambeau.autograd.node import gradient_edge, old_value
from flambeau.autograd.saved import hooked
from flambeau.capture.breaks import GraphBreak
from flambeau.core import logs
from flambeau.core.errors import FlambeauError
from flambeau.graph import Graph
from flambeau.graph.interpret import Untouched, run_recorded
from flambeau.graph.sizes import has_symbols
from flambeau.ops.casts import convert, copy
from flambeau.random.generator import default_generator
from flambeau.tensor.tensor import Tensor, alias

Backend = Callable[[Graph, list[Any]], Callable[..., list[Any]]]
MOST_SIZES = 16
"""Programs made of one graph for different sizes and numbers; beyond, the graph is recorded."""


class BackwardProgram:
    """The backward pass for one pattern of cotangents.

    run        (kept values, cotangents) -> gradients; made at the first call
    needed     which of the node's kept values it takes
    gradients  for each differentiable input, whether it gets one
    """

    def __init__(self, graph: Graph, gradients: tuple[bool, ...], backend: Backend, count: int):
        kept = graph.inputs[: len(graph.inputs) - count]
        taken = {*reads(graph.equations), *graph.outputs}
        self.needed = [k for k, v in enumerate(kept) if v in taken]
        cts = graph.inputs[len(kept) :]
        self.graph = graph.replaced(inputs=(*(kept[k] for k in self.needed), *cts))
        self.gradients, self.backend = gradients, backend
        self.specs = [v.spec for v in cts]
        self.run: Callable[..., list[Any]] | None = None

    def __call__(self, kept: list[Any], cts: Sequence[Tensor]) -> list[Tensor | None]:
        given = [laid_out(ct, s) for ct, s in zip(cts, self.specs)]
        if self.run is None:
            self.run = self.backend(self.graph, [*kept, *given])
        try:
            found = iter(self.run(*kept, *given))
        except Untouched as error:
            raise error.__cause__ or error from None
        return [next(found) if has else None for has in self.gradients]


def laid_out(ct: Tensor, spec: Any) -> Tensor:
    """The cotangent with the dtype and strides that the program expects."""
    if ct._spec is spec:
        return ct
    if ct._spec.dtype is not spec.dtype:
        ct = convert(ct, dtype=spec.dtype)
    return ct if ct._spec.strides == spec.strides else copy(ct, strides=spec.strides)


class JointProgram:
    """Both passes of one graph, for inputs of one kind.

    differentiable  positions of the inputs that have gradients
    live            positions of the core's outputs that have a history
    reached         for each of the differentiable inputs, whether an output depends on it
    kept            for each kept value ("in", position) or ("out", position)
    """

    def __init__(self, graph: Graph, inputs: Sequence[Any], backend: Backend, wanted: set[int]):
        self.core, self.finish = split(graph)
        self.backend, self.lock = backend, threading.Lock()
        self.history = history = History(self.core, inputs)
        self.differentiable = history.differentiable
        self.live = self._wanted_of(history.live, graph, wanted)
        if not self.live:
            raise Unsupported("no output has a history")
        joint = history.joint(self.live)
        sizes = len(history.recorder.inputs), len(history.outputs)
        self.sizes = sizes
        self.forward, self.partition = forward_graph(joint, *sizes)
        self.tensors = [k for k, x in enumerate(inputs) if isinstance(x, Tensor)]
        self.places = self._kept_places()
        self.saving = [history.saving_nodes(k) for k in self.live]
        self.replay = needed_for(self.core, tuple(self.core.outputs[k] for k in self.live))
        self.draws = any(e.is_random for e in self.replay.equations)
        self.count = len(inputs)
        self.replayed = self._replayed()
        self.copied = self._copied()
        self.variants: dict[tuple[bool, ...], BackwardProgram | None] = {}
        self.variants[(True,) * len(self.live)] = self._backward(joint)
        self.reached = joint.gradients
        examples = [inputs[k] for k in self.tensors]
        self.run = backend(self.forward.graph, examples)

    def _wanted_of(self, live: list[int], graph: Graph, wanted: set[int]) -> list[int]:
        """Outputs of the core in whose memory an output lives that needs its history."""
        roots = owners(graph)
        memory = {roots[n] for n in wanted}
        return [k for k in live if self.core.outputs[k] in memory]

    def _kept_places(self) -> list[tuple[str, int]]:
        graph = self.forward.graph
        return [
            ("in", self.tensors[graph.inputs.index(v)])
            if v in graph.inputs
            else ("out", graph.outputs.index(v))
            for v in self.forward.kept
        ]

    def _replayed(self) -> list[int]:
        """Inputs that a replay takes."""
        taken = set(reads(self.replay.equations))
        return [k for k, v in enumerate(self.core.inputs) if v in taken]

    def _copied(self) -> set[int]:
        """Those of them that the forward pass overwrites."""
        written = set(owners(self.core.replaced(outputs=tuple(self.core.writes()))))
        return {k for k in self.replayed if self.core.inputs[k] in written}

    def _backward(self, joint: Any) -> BackwardProgram:
        graph = backward_graph(joint, self.partition, self.forward.kept, *self.sizes)
        count = len(graph.inputs) - len(self.forward.kept)
        return BackwardProgram(graph, joint.gradients, self.backend, count)

    def backward(self, present: tuple[bool, ...]) -> BackwardProgram | None:
        """The program for outputs of which some have no cotangent; None if there is none."""
        with self.lock:
            if present not in self.variants:
                live = [k for k, there in zip(self.live, present) if there]
                try:
                    self.variants[present] = self._backward(self.history.joint(live))
                except (Exception, GraphBreak) as error:
                    logs.show("breaks", "a backward pass runs through autograd", error)
                    self.variants[present] = None
            return self.variants[present]

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Do the same inputs have a history as when the program was made?"""
        edges = [k for k in self.tensors if gradient_edge(inputs[k]) is not None]
        return edges == self.differentiable

    def __call__(self, *inputs: Any) -> list[Any]:
        before = {k: old_value(inputs[k]) for k in self.copied}
        state = default_generator.engine.get_state() if self.draws else None
        outs = self.run(*[inputs[k] for k in self.tensors])
        node = CompiledFunctionBackward(self, inputs, before, state, outs)
        outs = outs[: self.sizes[1]]
        for number, k in enumerate(self.live):
            t = outs[k]
            t._node, t._output_nr, t._requires_grad = node, number, True
        if not self.finish.equations:
            values = dict(zip(self.finish.inputs, (*outs, *inputs)))
            values.update(self.finish.constants)
            return [values[v] for v in self.finish.outputs]
        return run_recorded(self.finish, (*outs, *inputs), alias)


class Differentiable:
    """A graph with a history: a joint program for each kind of inputs, or autograd.

    wanted  the outputs that need their history
    """

    def __init__(self, graph: Graph, backend: Backend, wanted: set[int]):
        self.graph, self.backend, self.wanted = graph, backend, wanted
        self.programs: dict[tuple, JointProgram | None] = {}
        self.many = any(v.spec.weak or has_symbols(v.spec) for v in graph.inputs)

    def program(self, inputs: Sequence[Any]) -> JointProgram | None:
        """The program for such inputs. Without numbers and symbolic sizes, guards see to it that
        all are alike."""
        key = tuple(map(_kind, inputs)) if self.many else ()
        if key not in self.programs:
            made = len(self.programs) < MOST_SIZES
            self.programs[key] = self._made(inputs) if made else None
        return self.programs[key]

    def _made(self, inputs: Sequence[Any]) -> JointProgram | None:
        try:
            return JointProgram(self.graph, inputs, self.backend, self.wanted)
        except (Unsupported, FlambeauError, Untouched, GraphBreak) as error:
            logs.show("breaks", "a graph runs through autograd", error)
            return None

    def __call__(self, *inputs: Any) -> list[Any]:
        program = self.program(inputs)
        if program is None or anomaly.enabled or hooked() or not program.fits(inputs):
            return run_recorded(self.graph, inputs, alias)
        return program(*inputs)


def _kind(x: Any) -> Any:
    return x._spec if isinstance(x, Tensor) else (type(x), x)


def differentiable(
    graph: Graph, examples: list[Any], backend: Backend, wanted: set[int]
) -> Callable[..., list[Any]]:
    """inputs -> outputs, of which those at the positions `wanted` can be differentiated."""
    made = Differentiable(graph, backend, wanted)
    made.program(examples)
    return made
