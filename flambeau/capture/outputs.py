"""Tensors that leave the captured program, and what happens to those that came in."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flambeau.autograd.views import bump
from flambeau.capture.breaks import SkipFrame
from flambeau.capture.rebuild import Builder, Unrebuildable
from flambeau.capture.session import Session
from flambeau.capture.sources import Source
from flambeau.capture.tensors import Tensors, foreign_history, is_spent
from flambeau.capture.traced import SpentNode
from flambeau.capture.values import UNREAD
from flambeau.graph import Graph, Value
from flambeau.graph.generated import GeneratedPlan
from flambeau.graph.interpret import Untouched, run_recorded
from flambeau.graph.passes import without_aliases, without_dead_code, without_final_copies
from flambeau.tensor.tensor import Tensor, alias


class Outputs:
    """Collects escaping tensors while values are being written down."""

    builder: Builder

    def __init__(self, tensors: Tensors, session: Session):
        self.tensors, self.session = tensors, session
        self.values: list[Value] = []
        self.by_fake: dict[int, str] = {}
        self.fakes: list[Tensor] = []
        self.live = False
        self.with_history: set[int] = set()
        self.lines: list[str] = []

    def expression(self, fake: Tensor) -> str:
        """The variable that holds a tensor in the running program."""
        known = self.tensors.by_fake.get(id(fake))
        if known is not None:
            return self.builder.reads.path(known.source)
        found = self.by_fake.get(id(fake))
        if found is not None:
            return found
        if id(fake) not in self.tensors.recorder.values and not self._is_traced(fake):
            return self.builder.constant(fake)
        return self._output(fake)

    def _is_traced(self, fake: Tensor) -> bool:
        return self.tensors.recorder.is_traced(fake)

    def _output(self, fake: Tensor) -> str:
        value = self.tensors.recorder.value_of(fake)
        name = self.by_fake[id(fake)] = f"t{len(self.by_fake)}"
        self.fakes.append(fake)
        self.values.append(value)
        if fake._node is not None and not is_spent(fake):
            self.live = True
            self.with_history.add(len(self.values) - 1)
            self._check_history(fake)
        self._state(name, fake)
        return name

    def _check_history(self, fake: Tensor) -> None:
        for found in foreign_history(fake, self.tensors.by_fake):
            what = "a leaf of the frame" if isinstance(found, Tensor) else "a custom gradient"
            raise Unrebuildable(found, f"{what} is part of the history of a result")

    def _state(self, name: str, fake: Tensor) -> None:
        """Give the tensor what eager execution would have given it besides its data."""
        builder = self.builder
        if fake._node is not None and is_spent(fake):
            mark = builder.constant(_mark_spent)
            self.lines.append(f"    {mark}({name})")
        elif fake._node is None and fake._requires_grad:
            self.lines.append(f"    {name}._requires_grad = True")
        if type(fake) is not Tensor:
            raise SkipFrame(f"a {type(fake).__name__} is made by the frame")
        if fake._grad is not None and fake._grad is not UNREAD:
            builder.tasks.append(
                lambda: builder.body.line(f"{name}._grad = {builder.expression(fake._grad)}")
            )
        if fake.__dict__:
            builder.tasks.append(
                lambda: builder.body.line(
                    f"{name}.__dict__.update({builder.entries(fake.__dict__)})"
                )
            )

    def note_changes(self) -> None:
        """Gradients, memory and flags of incoming tensors that the frame has changed."""
        for known in list(self.tensors.inputs.values()):
            fake = known.fake
            if fake._grad is not known.grad:
                self._assign(known.source, "_grad", fake._grad)
            if fake._requires_grad is not known.requires_grad and fake._node is None:
                self._assign(known.source, "_requires_grad", fake._requires_grad)
            if (fake._storage, fake._offset, fake._spec) != known.place:
                if fake._node is not None or fake._base is not None:
                    raise SkipFrame("the memory of a tensor from outside is exchanged")
                recorder = self.tensors.recorder
                held = alias(fake)
                recorder.define(held, recorder.value_of(fake))
                self._assign(known.source, "data", held)
            if fake._node is not None and type(fake._node).__name__ != "OutsideNode":
                self.live = True
                self._check_history(fake)

    def _assign(self, source: Source, name: str, value: Any) -> None:
        target = self.builder.reads.path(source)
        text = self.builder.expression(value)
        self.builder.finish()
        self.builder.body.line(f"{target}.{name} = {text}")

    # The graph -------------------------------------------------------------------------------

    def graph(self) -> Graph:
        """What was recorded, with everything removed that cannot be seen."""
        graph = self.tensors.recorder.graph(self.values)
        numbers = [value for _, value in self.session.scalars.inputs.values()]
        graph = graph.replaced(inputs=(*graph.inputs, *numbers))
        if self.live:
            return without_dead_code(graph)
        return without_dead_code(without_final_copies(without_aliases(graph)))

    def separated(self, graph: Graph) -> list[str]:
        """Lines that make outputs objects of their own where the graph gives one tensor twice,
        or one that came in."""
        taken, lines = set(graph.inputs), []
        for name, value in zip(self.names(), graph.outputs):
            if value in taken and not value.spec.weak:
                lines.append(f"    {name} = {self.builder.constant(alias)}({name})")
            taken.add(value)
        return lines

    def input_sources(self) -> list[Source]:
        return [known.source for known in self.tensors.inputs.values()]

    def number(self, symbol: Any) -> str:
        """The text of a symbolic number; one that the graph computes is one of its outputs."""
        if symbol.term.depends_on_graph:
            name = self.by_fake.get(id(symbol.term))
            if name is None:
                name = self.by_fake[id(symbol.term)] = f"t{len(self.by_fake)}"
                self.values.append(self.session.scalars.value_of(symbol))
            return name
        source = symbol.term.source
        if source is not None and source.kind in ("number", "integer"):  # the array scalar itself
            return self.builder.reads.path(source.base)
        return symbol.term.text(self.builder.reads)

    def names(self) -> list[str]:
        return list(self.by_fake.values())

    def examples(self) -> list[Any]:
        tensors = [known.real for known in self.tensors.inputs.values()]
        return tensors + [term.hint for term, _ in self.session.scalars.inputs.values()]

    def execution(self, graph: Graph, backend: Callable, differentiable: Callable) -> Callable:
        """inputs -> outputs, made by the backend or, if they have a history, from two programs."""
        examples = self.examples()
        if self.live:
            run = differentiable(graph, examples, backend, self.with_history)
        else:
            run = backend(graph, examples)

        def execute(*inputs: Any) -> list[Any] | None:
            try:
                return run(*inputs)
            except Untouched:
                return None

        return execute


def eager_runner(graph: Graph, examples: list[Any]) -> Callable:
    """The backend that runs the graph on eager operations."""
    return GeneratedPlan(graph, alias, bump)


def recorded_runner(
    graph: Graph, examples: list[Any], backend: Callable, outputs: set[int]
) -> Callable:
    """The graph through autograd, one operation after the other, as eager execution would."""
    return functools.partial(_recorded, graph)


def _recorded(graph: Graph, *inputs: Any) -> list[Any]:
    return run_recorded(graph, inputs, alias)


def _mark_spent(t: Tensor) -> None:
    t._node, t._output_nr, t._requires_grad = SpentNode([], (t._spec,)), 0, True
