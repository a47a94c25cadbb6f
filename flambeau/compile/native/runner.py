"""The native backend: a graph as a program, and eager operations while there is none and where it
does not fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.autograd.profiler import recording
from flambeau.capture.outputs import alias as detached
from flambeau.capture.outputs import bump
from flambeau.codegen.templates.tuning import tuning
from flambeau.compile import config
from flambeau.compile.background import worker
from flambeau.compile.native.calls import REFUSALS, Work, activated, single
from flambeau.compile.native.contiguous import with_contiguous
from flambeau.compile.native.epilogues import Activated
from flambeau.compile.native.followers import Followed
from flambeau.compile.native.lowering import NoLoops, compiled
from flambeau.compile.native.memory import planned
from flambeau.compile.native.normalised import with_normalised
from flambeau.compile.native.ordering import numbers_together
from flambeau.compile.native.places import Place, places
from flambeau.compile.native.program import Misfit, Program
from flambeau.compile.native.segments import steps
from flambeau.compile.native.sized import SizedPlan
from flambeau.compile.native.tails import one_kernel
from flambeau.compile.native.together import Together
from flambeau.compile.records import CompileWarning
from flambeau.compile.settings import Settings
from flambeau.core import context, logs
from flambeau.core.errors import complaint
from flambeau.eager.executor import EagerExecutor
from flambeau.eager.meanwhile import MeanwhileExecutor
from flambeau.graph import Graph
from flambeau.graph.generated import GeneratedPlan
from flambeau.graph.graph import Equation, Value
from flambeau.graph.sizes import has_symbols
from flambeau.tensor.numerics import are_deterministic_algorithms_enabled

PATIENCE = 0.05
"""Seconds that a first call waits for its program where code has to be generated: less than its
capture has taken, and a small program is there at once."""
meanwhile = MeanwhileExecutor()


class NativePlan:
    """A graph as a native program, made when it is first run: in the background after `hesitation`
    calls. Inputs of another layout than the program's run on eager operations."""

    def __init__(self, graph: Graph, settings: Settings, hesitation: int = 0):
        self.graph, self.settings, self.hesitation = graph, settings, hesitation
        self.program: Program | None = None
        self.profiled: Program | None = None
        self.fault: Exception | None = None
        self.told = self.asked = self.seen = False
        self.eager: GeneratedPlan | None = None

    def __call__(self, *inputs: Any) -> list[Any]:
        program = self.watched() if recording else self.program or self.wanted()
        if program is None:
            return self.meanwhile(*inputs)
        try:
            return program.run(*inputs)
        except Misfit:
            return self.otherwise(*inputs)

    # The program -----------------------------------------------------------------------------

    def wanted(self) -> Program | None:
        """The program, or None while it is made in the background and where it cannot be made."""
        if self.fault is None:
            if self.settings.wait or are_deterministic_algorithms_enabled():
                self.make()
            elif self.hesitation:
                self.hesitation -= 1
            else:
                worker().ask(self)
                if not self.asked:
                    self.asked = True
                    worker().wait_for(self, PATIENCE)
        if self.fault is not None:
            self.tell(self.fault)
        return self.program

    def make(self) -> None:
        """Make the program, or keep the reason why there is none."""
        with worker().making:
            if self.program is None and self.fault is None:
                try:
                    with logs.timed(f"program of {len(self.graph.equations)} equations"):
                        self.program = self.written(Program)
                except Exception as fault:
                    self.fault = fault

    def tell(self, fault: Exception) -> None:
        """Why there is no program: once, to the user's thread."""
        if config.raise_internal_errors:
            raise fault
        if not self.told:
            self.told = True
            must = "a graph should become a program; it runs on eager operations"
            why = {"because": f"{type(fault).__name__}: {fault}"}
            hint = "FLAMBEAU_CHECK=1 raises the error; please report it."
            warnings.warn(complaint("compile", must, why, hint), CompileWarning, stacklevel=2)

    def watched(self) -> Program:
        """The program as profilers see it."""
        from flambeau.compile.native.profiled import ProfiledProgram

        with worker().making:
            if self.profiled is None:
                self.profiled = self.written(ProfiledProgram)
        return self.profiled

    def written(self, kind: type[Program]) -> Program:
        graph = with_contiguous(with_normalised(numbers_together(self.graph)))
        found = places(graph)
        with tuning(self.settings.tune):
            work = work_of(graph, found)
        return kind(graph, work, planned(graph, work, found), detached, bump)

    # Without it ------------------------------------------------------------------------------

    def meanwhile(self, *inputs: Any) -> list[Any]:
        """Eager operations that wait for no kernel."""
        if self.fault is not None or type(context.state.executor) is not EagerExecutor:
            return self.otherwise(*inputs)
        with context.executing(meanwhile):
            if self.seen:
                return self.otherwise(*inputs)
            self.seen = True
            with worker().resting(self):
                return self.otherwise(*inputs)

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
    for works in Together(kernels, list(zip(parts, read_later(graph, parts, found)))).run():
        yield from works


def kernels(given: tuple[Any, set[Value]]) -> list[Work]:
    """The work that a part becomes; `given` is the part, and the memory that is read after it."""
    part, needed = given
    if isinstance(part, Equation):
        return [single(part)]
    if isinstance(part, Activated):
        return activated(part)
    if isinstance(part, Followed):
        return one_kernel(part)
    try:
        return [compiled(part, lambda v: v in needed)]
    except REFUSALS as error:
        logs.show("breaks", f"a segment runs as single operations: {error}")
        return [single(e) for e in part.equations if not e.is_view]


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


WAITING = Settings(wait=True)


def native_runner(
    graph: Graph, examples: list[Any], settings: Settings = WAITING
) -> Callable[..., list[Any]]:
    """The backend: a plan that keeps its program, or one for each size, from call to call."""
    sized = any(e.open_params for e in graph.equations) or any(
        has_symbols(v.spec) for v in graph.inputs
    )
    if sized:
        return SizedPlan(graph, lambda graph: NativePlan(graph, settings, hesitation=1))
    return NativePlan(graph, settings)
