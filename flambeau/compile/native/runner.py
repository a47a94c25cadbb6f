"""Running a graph by its steps, with eager tensors for what lives between them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from flambeau.capture.outputs import alias as detached
from flambeau.capture.outputs import bump
from flambeau.compile.native.lowering import SegmentKernel, compiled
from flambeau.compile.native.segments import Segment, steps
from flambeau.core.errors import FlambeauError
from flambeau.eager.memory import empty_array
from flambeau.eager.native.address import address
from flambeau.graph import Graph
from flambeau.graph.graph import Equation, Value
from flambeau.graph.interpret import Plan, Untouched
from flambeau.tensor.tensor import make

log = logging.getLogger("flambeau.compile")


class NativePlan(Plan):
    """A graph whose loop segments run as kernels, compiled when they are first reached."""

    def __init__(self, graph: Graph):
        super().__init__(graph, detached, bump)
        self.parts = list(steps(graph))
        self.needs, self.dead = lifetimes(graph, self.parts)
        self.kernels: dict[int, SegmentKernel | None] = {}
        self.specs = [None if v.spec.weak else v.spec for v in graph.inputs]
        self.sized_by_numbers = any(e.open_params for e in graph.equations)

    def fits(self, inputs: tuple) -> bool:
        """Are the inputs laid out as the kernels expect? A graph may serve several sizes."""
        if self.sized_by_numbers:
            return False
        for x, s in zip(inputs, self.specs):
            if s is not None and x._spec is not s and (
                    x.dtype is not s.dtype or x.shape != s.shape
                    or x._spec.strides != s.strides):
                return False
        return True

    def __call__(self, *inputs: Any) -> list[Any]:
        if not self.fits(inputs):
            return super().__call__(*inputs)
        environment: dict[Value, Any] = dict(self.graph.constants)
        environment.update(zip(self.graph.inputs, inputs))
        touched = False
        try:
            for number, part in enumerate(self.parts):
                if isinstance(part, Segment):
                    self.run_segment(number, part, environment)
                    touched = touched or bool(part.written)
                else:
                    self._step(part, environment)
                    touched = touched or part.has_effect
                for value in self.dead[number]:
                    environment.pop(value, None)
        except Exception as error:
            if not touched:
                raise Untouched from error
            raise
        return [environment[v] for v in self.graph.outputs]

    def run_segment(self, number: int, segment: Segment, environment: dict) -> None:
        if number not in self.kernels:
            self.kernels[number] = self.kernel(number, segment)
        kernel = self.kernels[number]
        if kernel is None:
            for equation in segment.equations:
                self._step(equation, environment)
            return
        results = [empty_array(v.spec) for v in kernel.results]
        kernel.entry(*[address(environment[v]._array) for v in kernel.reads],
                     *[address(environment[v]._array) for v in kernel.targets],
                     *map(address, results), *[environment[v] for v in kernel.numbers])
        for v in kernel.targets:
            self.written(environment[v])
        for v, array in zip(kernel.results, results):
            environment[v] = make(array, v.spec)
        for equation in kernel.views:
            self._step(equation, environment)

    def kernel(self, number: int, segment: Segment) -> SegmentKernel | None:
        """The segment compiled; None, and eager operations, where that fails."""
        if len(segment.equations) == 1 and not segment.equations[0].is_view:
            return None  # the eager kernel is the same
        try:
            return compiled(segment, self.needs[number])
        except (FlambeauError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            log.warning("a segment runs as eager operations: %s", error)
            return None


def values_of(part: Segment | Equation) -> tuple[set[Value], set[Value]]:
    """(values read or overwritten, values made)."""
    equations = part.equations if isinstance(part, Segment) else [part]
    read: set[Value] = set()
    made: set[Value] = set()
    for e in equations:
        read.update(e.values())
        if e.target is not None:
            read.add(e.target)
        made.update(e.outputs)
    return read, made


def lifetimes(graph: Graph, parts: list) -> tuple[list[set[Value]], list[list[Value]]]:
    """For each part, (what later parts or the outputs read, what nothing needs afterwards)."""
    needed = set(graph.outputs)
    needs, dead = [], []
    for part in reversed(parts):
        read, made = values_of(part)
        needs.append(set(needed))
        dead.append([v for v in read | made if v not in needed])
        needed |= read
    return needs[::-1], dead[::-1]


def native_runner(graph: Graph, examples: list[Any]) -> Callable[..., list[Any]]:
    """The backend: a plan that keeps its kernels from call to call."""
    return NativePlan(graph)
