"""`trace(fn, *args)`: what a function does to tensors, as one graph, without running it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flambeau.capture.bytecodes import argument_names
from flambeau.capture.capture import Frozen, Options, capture
from flambeau.graph import Graph


class Traced(NamedTuple):
    """A graph and what it takes: the tensors and numbers that the function met."""

    graph: Graph
    inputs: list[Any]


def trace(fn: Callable, *args: Any) -> Traced:
    """The graph of `fn(*args)`: gradients, optimizers and whole steps included.

    Nothing is computed and nothing changes. Raises GraphBreak where a value would be needed.
    """
    seen: list[Traced] = []

    def backend(graph: Graph, examples: list[Any], *rest: Any) -> Callable:
        seen.append(Traced(graph, examples))
        return lambda *inputs: []

    def call(*operands: Any) -> Any:
        return fn(*operands)

    code = call.__code__
    frozen = Frozen(call, code, argument_names(code), (args,))
    capture(frozen, Options(backend, backend, fullgraph=True, static=True))
    return seen[-1]
