"""The thread's switches: grad mode, autocast and the like, which captured code reads and sets.

Library code that runs for real while capturing reads these objects, so interpreted code sets them
for real too; the capture puts them back at its end, and the program sets them when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.amp.settings import settings
from flambeau.autograd import anomaly
from flambeau.core import context
from flambeau.core.dtype import default_dtype
from flambeau.tensor import overrides

SWITCHES: dict[Any, tuple[str, ...]] = {}
"""Object -> the attributes of it that are switches."""
for _owner, _names in (
    (context.state, ("grad_enabled", "inference", "stack", "top")),
    (overrides.modes, ("stack", "disabled")),
    (settings, ("enabled", "dtypes", "cache_enabled", "nesting", "cache")),
):
    SWITCHES[_owner] = _names
REAL = {id(o) for o in SWITCHES} | {id(settings.enabled), id(settings.dtypes)}
REAL.add(id(settings.cache))
"""Objects that are changed for real while capturing."""


def snapshot() -> list[tuple[Any, str, Any]]:
    """(object, attribute, value) of every switch; dictionaries are copied."""
    found = []
    for owner, names in SWITCHES.items():
        for name in names:
            value = getattr(owner, name)
            found.append((owner, name, dict(value) if isinstance(value, dict) else value))
    return found


def put(owner: Any, name: str, value: Any) -> None:
    """Set a switch; dictionaries keep their identity."""
    if isinstance(value, dict):
        held = getattr(owner, name)
        held.clear()
        held.update(value)
    else:
        setattr(owner, name, value)


def restore(saved: list[tuple[Any, str, Any]]) -> None:
    for owner, name, value in saved:
        put(owner, name, value)


def changes(before: list[tuple[Any, str, Any]]) -> list[tuple[Any, str, Any]]:
    """What the captured code has left set differently."""
    pairs = zip(before, snapshot())
    return [
        now
        for (_, name, old), now in pairs
        if name != "cache" and old is not now[2] and old != now[2]
    ]


def _described(mode: Any) -> tuple:
    return (type(mode), tuple(sorted(getattr(mode, "__dict__", {}).items(), key=str)))


def current() -> tuple:
    """Everything about the thread that a captured program depends on, by value."""
    state, stack = context.state, overrides.modes.stack
    return (
        state.grad_enabled,
        state.inference,
        tuple(map(_described, state.stack)) if state.stack else (),
        default_dtype(),
        tuple(map(_described, stack)) if stack else (),
        overrides.modes.disabled,
        (*settings.enabled.values(), *settings.dtypes.values(), settings.cache_enabled),
        anomaly.enabled,
    )


class Unchanged:
    """A test that the switches are as they were when it was made."""

    def __init__(self) -> None:
        self.expected = current()

    def __call__(self) -> bool:
        return current() == self.expected

    @property
    def description(self) -> str:
        grad, inference, _, kind, *_ = self.expected
        return f"grad mode is {grad}, inference mode {inference}, default dtype {kind}"


def dictionaries() -> tuple[dict, ...]:
    """Where this thread's switches are kept that are no attributes."""
    return (settings.enabled, settings.dtypes, default_dtype.__globals__)


def attributes_text(test: Unchanged, constant: Callable[[Any], str]) -> str | None:
    """The test as an expression, for a caller who knows that `dictionaries` are unchanged."""
    grad, inference, contexts, _, overriding, disabled, (*_, cache), checking = test.expected
    if contexts or overriding or checking:
        return None
    state, over, cast = map(constant, (context.state, overrides.modes, settings))
    looking = constant(anomaly)
    enabled, dtypes, _ = map(constant, dictionaries())
    return (
        f"{state}.grad_enabled is {grad} and {state}.inference is {inference} "
        f"and not {state}.stack and not {over}.stack and {over}.disabled is {disabled} "
        f"and {cast}.enabled is {enabled} and {cast}.dtypes is {dtypes} "
        f"and {cast}.cache_enabled is {cache} and not {looking}.enabled"
    )
