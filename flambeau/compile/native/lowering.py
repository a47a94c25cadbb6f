"""A segment as loop nests, and the nests as one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.compile.native.calls import REFUSALS, Call
from flambeau.compile.native.reading import reader
from flambeau.compile.native.segments import Segment
from flambeau.eager.native import nests
from flambeau.graph.graph import Equation, Value
from flambeau.loops.api import Buf, Scalar


class NoLoops(Exception):
    """An equation of a segment has no loop form for its signature."""

    def __init__(self, equation: Equation):
        super().__init__(equation)
        self.equation = equation


class Lowering:
    """Names the memory of a segment and writes its nests."""

    def __init__(self, segment: Segment):
        self.segment = segment
        self.known: dict[Value, Any] = {}  # value -> Buf, Reader or Scalar
        self.reads: list[Value] = []
        self.targets: list[Value] = []
        self.numbers: list[Value] = []
        self.nests: list = []
        self.names: dict[str, Value] = {}

    def buffer(self, value: Value, prefix: str) -> Buf:
        s = value.spec
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        made = self.known[value] = Buf(name, tuple(s.shape), s.strides, s.dtype)
        return made

    def operand(self, value: Any) -> Any:
        if not isinstance(value, Value):
            return value
        if value in self.known:
            return self.known[value]
        if value.spec.weak:
            name = f"n{len(self.names)}"
            self.names[name] = value
            self.numbers.append(value)
            made = self.known[value] = Scalar(name, nests.number_dtype(value.spec))
            return made
        self.reads.append(value)
        return self.buffer(value, "x")

    def lower(self) -> None:
        for equation in self.segment.equations:
            if equation.is_view:
                self.known[equation.outputs[0]] = reader(
                    equation, self.known[equation.inputs[0]])
                continue
            try:
                self.nests += self.written(equation)
            except REFUSALS as error:
                raise NoLoops(equation) from error

    def written(self, equation: Equation) -> list:
        """The nests of one equation."""
        operands = [self.operand(v) for v in equation.inputs]
        if equation.target is not None:
            outs = (self.destination(equation.target),)
        else:
            outs = tuple(self.buffer(v, "t") for v in equation.outputs)
        made = nests.written(equation.op, equation.input_specs(), operands, equation.params, outs)
        return list(made) if isinstance(made, (tuple, list)) else [made]

    def destination(self, target: Value) -> Buf:
        found = self.known.get(target)
        if target not in self.targets:
            if target in self.reads:
                self.reads.remove(target)
            if target not in self.segment.made:
                self.targets.append(target)
        return found if isinstance(found, Buf) else self.buffer(target, "w")


def compiled(segment: Segment, needed: Callable[[Value], bool]) -> Call:
    """The segment's kernel; `needed(value)`: does somebody read the value's memory after it?"""
    from flambeau.codegen.kernel import compile_kernel

    lowering = Lowering(segment)
    lowering.lower()
    results = [v for e in segment.equations if not e.is_view for v in e.outputs if needed(v)]
    order = [*lowering.reads, *lowering.targets, *results]
    parameters = [lowering.known[v].name for v in order]
    kernel = compile_kernel(lowering.nests, parameters=parameters)
    numbers = tuple(lowering.names[name] for name in kernel.numbers)
    return Call(kernel.entry, (*order, *numbers), tuple(results), tuple(lowering.targets),
                tuple(segment.equations))
