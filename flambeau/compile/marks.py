"""Names by which a program talks to the compiler, each with an effect of its own when captured."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.capture import frame_hook, trust
from flambeau.capture.breaks import GraphBreak
from flambeau.capture.interpreter.builtin_calls import handles
from flambeau.compile import config
from flambeau.compile.background import worker
from flambeau.compile.compiled import regions


def is_compiling() -> bool:
    """True in code that is being captured."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


@handles(is_compiling)
def _captured(run: Any) -> bool:
    return True


def disable(fn: Any = None, recursive: bool = True, *, reason: str = "") -> Any:
    """The function runs as plain Python, and so does what it calls."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(fn, type) or not hasattr(fn, "__code__"):
        fn_call = fn

        @functools.wraps(fn, updated=())
        def called(*args: Any, **kwargs: Any) -> Any:
            with frame_hook.enabled(None):
                return fn_call(*args, **kwargs)

        called._flambeau_disable = True  # type: ignore[attr-defined]
        return called

    @functools.wraps(fn)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with frame_hook.enabled(None):
            return fn(*args, **kwargs)

    inside._flambeau_disable = True  # type: ignore[attr-defined]
    trust.opaque_codes.add(fn.__code__)
    return inside


def graph_break(msg: str = "") -> None:
    """End the graph here."""


@handles(graph_break)
def _break(run: Any, msg: str = "") -> None:
    raise GraphBreak(msg or "graph_break() was called")


def allow_in_graph(fn: Callable) -> Callable:
    """Accepted; functions are looked into anyway."""
    return fn


def assume_constant_result(fn: Callable) -> Callable:
    """Accepted; results of pure functions are constants anyway."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """Accepted; programs keep no memory between steps that this would free."""


def mark_dynamic(t: Any, index: Any = None, **limits: Any) -> None:
    """Accepted as a hint: sizes that change become symbolic by themselves."""


maybe_mark_dynamic = mark_dynamic


def mark_static(t: Any, index: Any = None) -> None:
    """Accepted as a hint."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Accepted as a hint: the memory of `t` stays where it is."""


def substitute_in_graph(original_fn: Any, **options: Any) -> Any:
    """Accepted; the original is looked into, or run as it is."""
    return lambda traceable_fn: traceable_fn


def nested_compile_region(fn: Any = None, options: Any = None) -> Any:
    """Accepted; a region that repeats is captured where it is met."""
    return (lambda f: f) if fn is None else fn


def wrap_numpy(fn: Any) -> Any:
    """A function of arrays, as one of tensors."""
    from flambeau.tensor import Tensor, from_numpy

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        arrays = [a.numpy() if isinstance(a, Tensor) else a for a in args]
        result = fn(*arrays, **kwargs)
        return from_numpy(result) if hasattr(result, "__array_interface__") else result

    return call


def reset() -> None:
    """Forget every program."""
    for region in regions:
        region.reset()
    worker().forget()


def wait(timeout: float | None = None) -> bool:
    """Wait until every program that calls have asked for is made, at most `timeout` seconds: the
    end of a warm-up. False if some are still missing."""
    return worker().wait(timeout)


@contextlib.contextmanager
def set_stance(stance: str = "default", **options: Any) -> Iterator[None]:
    """`force_eager` runs everything inside as plain Python."""
    before, config.enabled = config.enabled, stance != "force_eager"
    try:
        yield
    finally:
        config.enabled = before
