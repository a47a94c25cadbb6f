"""`explain(fn)(*args)`: what a call was captured as, and where it was not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from flambeau.capture.capture import Captured, Options
from flambeau.compile import records
from flambeau.compile.backends import backend_of
from flambeau.compile.compiled import Compiled, compiled
from flambeau.compile.sites import FailedGuard
from flambeau.nn import Module


class BreakReason(NamedTuple):
    """One place where a frame runs as plain Python."""

    where: str
    reason: str
    rewrite: str


class Explanation:
    """Graphs, breaks, guards and time of one call."""

    def __init__(self, captures: list[Captured], skips: list[tuple[str, str]], seconds: float):
        self.captures = captures
        self.seconds = seconds
        self.graphs = [c.graph for c in captures if c.graph.equations]
        self.graph_count = len(self.graphs)
        broken = [c.broken for c in captures if c.broken is not None]
        self.break_reasons = [BreakReason(b.where, b.reason, b.hint) for b in broken]
        self.break_reasons += [BreakReason(name, why, "") for name, why in skips]
        self.graph_break_count = len(self.break_reasons)
        self.op_count = sum(len(g.equations) for g in self.graphs)
        self.out_guards = [guard for c in captures for guard in c.guards]

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            f"Guards: {len(self.out_guards)}",
            f"Capture: {self.seconds * 1e3:.1f} ms",
        ]
        for at, found in enumerate(self.break_reasons, 1):
            lines.append(f"Break {at} at {found.where}: {found.reason}. {found.rewrite}".rstrip())
        return "\n".join(lines)


def explain_recompile(compiled_function: Any, *args: Any, **kwargs: Any) -> list[FailedGuard]:
    """Why a call with these arguments would be captured anew: (guard, old value, new value) of
    each test that fails; an empty list where a program would answer."""
    target = compiled_function
    if isinstance(target, Module):  # compiled when it is first called
        target = target.__dict__.get("_call") or target
    owner = getattr(target, "__self__", None)
    inner = getattr(target, "__func__", target)
    if not isinstance(inner, Compiled):
        return []
    return inner.explain_recompile(*(() if owner is None else (owner,)), *args, **kwargs)


def explain(f: Any, *extra: Any, **options: Any) -> Any:
    """A function that captures a call of `f` and reports on it."""
    if extra:
        return explain(f)(*extra, **options)

    def call(*args: Any, **kwargs: Any) -> Explanation:
        seen: list[tuple[str, Any, Any]] = []
        target: Callable = compiled(f, Options(backend_of("eager")))
        records.collected.append(seen)
        start = time.perf_counter()
        try:
            target(*args, **kwargs)
        finally:
            records.collected.remove(seen)
        captures = [what for kind, _, what in seen if kind == "capture"]
        skips = [(site.code.co_qualname, what) for kind, site, what in seen if kind == "skip"]
        return Explanation(captures, skips, time.perf_counter() - start)

    return call
