"""A program that a profiler watches: the same tape, a kernel at a time with a clock between."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from flambeau.autograd.profiler import kernel
from flambeau.compile.native.calls import Call, Work
from flambeau.compile.native.program import Program
from flambeau.graph.accounting import nbytes, operations
from flambeau.graph.graph import Equation

MOST_NAMES = 4  # of the operations in a fused kernel


def title(equations: Iterable[Equation]) -> str:
    """`add+relu+sum`, or what a long kernel begins with and how many more there are."""
    names = list(dict.fromkeys(e.name for e in equations if not e.is_view))
    more = len(names) - MOST_NAMES
    return "+".join(names[:MOST_NAMES]) + (f"+{more} more" if more > 0 else "")


class ProfiledProgram(Program):
    """Every call of a kernel is a tape of its own, and reports to the profilers that watch, as do
    the steps that run as Python."""

    def write(self, work: Sequence[Work]) -> None:
        self.space["clock"] = time.perf_counter
        super().write(work)

    def flush(self, calls: list[Call]) -> None:
        for call in list(calls):
            values = (*call.uses(), *call.written)
            report = self.report(f"kernel {title(call.equations)}", call.equations, values)
            self.line("start = clock()")
            super().flush([call])
            self.line(report)

    def step(self, equation: Equation) -> None:
        values = (*equation.values(), *equation.outputs)
        report = self.report(f"step {equation.name}", (equation,), values)
        self.line("start = clock()")
        super().step(equation)
        self.line(report)

    def report(self, name: str, equations: Iterable[Equation], values: Iterable[Any]) -> str:
        """The line that tells the profilers."""
        made = kernel(name, sum(map(operations, equations)), nbytes(values))
        return f"{self.constant(made)}(start, clock())"
