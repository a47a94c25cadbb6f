"""Backends: graph and example inputs -> a callable from inputs to a list of outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.capture.outputs import eager_runner
from flambeau.compile.native import native_runner
from flambeau.compile.settings import Settings, settings_of
from flambeau.core.errors import ValueRangeError, complaint
from flambeau.graph import Graph

Backend = Callable[[Graph, list[Any]], Callable[..., list[Any]]]
BACKENDS: dict[str, Backend] = {}


def register_backend(name: str, backend: Backend | None = None) -> Any:
    """Make a backend known by name; without a backend, a decorator."""
    if backend is None:
        return lambda made: register_backend(name, made)
    BACKENDS[name] = backend
    return backend


register_backend("eager", eager_runner)
register_backend("interpret", eager_runner)
for _name in ("native", "inductor", "aot_eager"):
    register_backend(_name, native_runner)


def list_backends() -> list[str]:
    """Names that `backend=` accepts."""
    return sorted(BACKENDS)


class Chosen:
    """The backend that a call of `compile` asked for; survives pickling where the choice does."""

    def __init__(self, choice: Any, settings: Settings):
        self.choice, self.settings = choice, settings

    def __call__(self, graph: Graph, examples: list[Any]) -> Callable[..., list[Any]]:
        if callable(self.choice):
            run = self.choice(graph, examples)
            return lambda *inputs: list(run(*inputs))  # it may return a tuple
        backend = BACKENDS[self.choice]
        if backend is native_runner:
            return native_runner(graph, examples, self.settings)
        return backend(graph, examples)


def backend_of(choice: Any, settings: Settings | None = None) -> Chosen:
    """The backend for `backend=`: a name, or a callable (graph, examples) -> callable."""
    if not callable(choice) and choice not in BACKENDS:
        raise ValueRangeError(
            complaint(
                "compile",
                "backend must be a callable or one of " + ", ".join(list_backends()),
                {"backend": choice},
            )
        )
    return Chosen(choice, settings_of(None) if settings is None else settings)
