"""The native backend: a graph as a program, and eager operations where the program does not fit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.autograd.profiler import recording
from flambeau.capture.outputs import alias as detached
from flambeau.capture.outputs import bump
from flambeau.compile.native.calls import REFUSALS, Work, activated, single
from flambeau.compile.native.epilogues import Activated
from flambeau.compile.native.lowering import NoLoops, compiled
from flambeau.compile.native.memory import planned
from flambeau.compile.native.ordering import numbers_together
from flambeau.compile.native.places import Place, places
from flambeau.compile.native.program import Misfit, Program
from flambeau.compile.native.segments import steps
from flambeau.core import logs
from flambeau.graph import Graph
from flambeau.graph.generated import GeneratedPlan
from flambeau.graph.graph import Equation, Value


class NativePlan:
    """A graph as a native program, made when it is first run. Inputs of another layout than the
    program's run on eager operations: a graph may serve several sizes."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.sized_by_numbers = any(e.open_params for e in graph.equations)
        self.lock = threading.Lock()
        self.program: Program | None = None
        self.profiled: Program | None = None
        self.eager: GeneratedPlan | None = None

    def __call__(self, *inputs: Any) -> list[Any]:
        if self.sized_by_numbers:
            return self.otherwise(*inputs)
        program = self.watched() if recording else self.program or self.made()
        try:
            return program.run(*inputs)
        except Misfit:
            return self.otherwise(*inputs)

    def made(self) -> Program:
        with self.lock:
            if self.program is None:
                self.program = self.written(Program)
        return self.program

    def watched(self) -> Program:
        """The program as profilers see it."""
        from flambeau.compile.native.profiled import ProfiledProgram

        with self.lock:
            if self.profiled is None:
                self.profiled = self.written(ProfiledProgram)
        return self.profiled

    def written(self, kind: type[Program]) -> Program:
        graph = numbers_together(self.graph)
        found = places(graph)
        work = work_of(graph, found)
        return kind(graph, work, planned(graph, work, found), detached, bump)

    def otherwise(self, *inputs: Any) -> list[Any]:
        if self.eager is None:
            self.eager = GeneratedPlan(self.graph, detached, bump)
        return self.eager(*inputs)


def work_of(graph: Graph, found: dict[Value, Place]) -> list[Work]:
    """Kernels for whatever has one, in order."""
    alone: set[Equation] = set()
    while True:
        try:
            return list(attempted(graph, found, alone))
        except NoLoops as refusal:
            alone.add(refusal.equation)


def attempted(graph: Graph, found: dict[Value, Place], alone: set[Equation]) -> Iterator[Work]:
    parts = list(steps(graph, alone))
    for part, needed in zip(parts, read_later(graph, parts, found)):
        if isinstance(part, Equation):
            yield single(part)
            continue
        if isinstance(part, Activated):
            yield from activated(part)
            continue
        try:
            yield compiled(part, lambda v, needed=needed: v in needed)
        except REFUSALS as error:
            logs.show("breaks", f"a segment runs as single operations: {error}")
            yield from (single(e) for e in part.equations if not e.is_view)


def read_later(graph: Graph, parts: list, found: dict[Value, Place]) -> list[set[Value]]:
    """For each part, the memory that later parts or the outputs use."""
    needed = {found[v].root for v in graph.outputs}
    result = []
    for part in reversed(parts):
        result.append(set(needed))
        for e in [part] if isinstance(part, Equation) else part.equations:
            if not e.is_view:
                needed.update(found[v].root for v in e.uses())
    return result[::-1]


def native_runner(graph: Graph, examples: list[Any]) -> Callable[..., list[Any]]:
    """The backend: a plan that keeps its program from call to call."""
    return NativePlan(graph)
