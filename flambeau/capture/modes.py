"""The thread's switches: grad mode, autocast and the like, which captured code reads and sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core import context
from flambeau.core.dtype import default_dtype
from flambeau.tensor import overrides

FIELDS = ("grad_enabled", "inference", "stack", "top")


def snapshot() -> dict[str, Any]:
    return {name: getattr(context.state, name) for name in FIELDS}


def restore(saved: dict[str, Any]) -> None:
    for name, value in saved.items():
        setattr(context.state, name, value)


def changes(before: dict[str, Any]) -> dict[str, Any]:
    """What the captured code has left set differently."""
    return {n: v for n, v in snapshot().items() if v is not before[n]}


def _described(context_object: Any) -> tuple:
    return (type(context_object), tuple(sorted(vars(context_object).items(), key=str)))


def current() -> tuple:
    """Everything about the thread that a captured program depends on, by value."""
    state = context.state
    stack = tuple(map(_described, state.stack)) if state.stack else ()
    return (state.grad_enabled, state.inference, stack, default_dtype(), overrides.modes.stack)


def unchanged() -> tuple[Callable[[], bool], str]:
    """A test that the switches are as they are now, and what it says."""
    expected = current()
    text = f"grad mode is {expected[0]}, inference mode {expected[1]}, default dtype {expected[3]}"
    return (lambda: current() == expected), text
