"""`__torch_function__`: subclasses and modes that want to see public functions.

`active` is false while no such subclass exists and no mode is entered, so plain programs pay one
look.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from flambeau.core.errors import ArgumentError, complaint
from flambeau.tensor.tensor import Tensor


class _Switch:
    """Whether anybody overrides: subclasses count for ever, modes while they are entered."""

    active = False
    subclassed = False

    def __init__(self) -> None:
        self._users, self._lock = 0, threading.Lock()

    def on(self) -> None:
        with self._lock:
            self._users += 1
            self.active = True

    def off(self) -> None:
        with self._lock:
            self._users -= 1
            self.active = self._users > 0


class _Modes(threading.local):
    stack: tuple = ()
    disabled: bool = False


switch = _Switch()
modes = _Modes()


def no_torch_function(func: Callable, types, args=(), kwargs=None):
    """As the `__torch_function__` of a class: its tensors are treated as plain ones."""
    return NotImplemented


def interested(values) -> list:
    """Arguments whose class overrides, subclasses before their bases, otherwise in order."""
    found: list[Any] = []
    for v in values:
        if isinstance(v, (list, tuple)):
            found += [x for x in interested(v) if type(x) not in map(type, found)]
            continue
        cls = type(v)
        if cls is Tensor or getattr(cls, "_plain_results", False) or cls in map(type, found):
            continue
        if getattr(cls, "__torch_function__", None) in (None, no_torch_function):
            continue
        at = next((i for i, x in enumerate(found) if issubclass(cls, type(x))), len(found))
        found.insert(at, v)
    return found


def handle(function: Callable, args: tuple, kwargs: dict):
    """The overridden result, or NotImplemented when nobody overrides."""
    before = modes.stack
    if before:
        names = before[-1].names
        wanted = names is None or function.__name__ in names
        if wanted or len(before) > 1:
            modes.stack = before[:-1]
            try:
                return _through_mode(before[-1], function, args, kwargs) if wanted else handle(
                    function, args, kwargs)
            finally:
                modes.stack = before
    if modes.disabled or not switch.subclassed:
        return NotImplemented
    types = _types(args, kwargs)
    if not types:
        return NotImplemented
    for v in interested((*args, *kwargs.values())):
        result = type(v).__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise ArgumentError(complaint(
        function.__name__, "no implementation was found for the types that override it",
        dict(types=[t.__name__ for t in types])))


def _types(args: tuple, kwargs: dict) -> tuple:
    return tuple({type(v): None for v in interested((*args, *kwargs.values()))})


def _through_mode(mode, function: Callable, args: tuple, kwargs: dict):
    types = _types(args, kwargs) if switch.subclassed else ()
    return mode.__torch_function__(function, types, args, kwargs)


class DisableTorchFunctionSubclass:
    """Within the block, subclasses are treated as plain tensors."""

    def __enter__(self) -> None:
        self.before, modes.disabled = modes.disabled, True

    def __exit__(self, *exc) -> None:
        modes.disabled = self.before


def default_torch_function(cls, func: Callable, types, args=(), kwargs=None):
    """Run `func` on plain tensors and give the results the subclass's type."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if func in UNCONVERTED else converted(result, cls)


UNCONVERTED: set = set()


def converted(result, cls):
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        kinds = [converted(r, cls) for r in result]
        return type(result)(*kinds) if hasattr(result, "_fields") else type(result)(kinds)
    return result


class TorchFunctionMode:
    """A context manager whose `__torch_function__` sees every public call made inside.

    `names`: the functions that it cares about; None, the default, for all.
    """

    names: frozenset[str] | None = None

    def __enter__(self):
        switch.on()
        modes.stack = (*modes.stack, self)
        return self

    def __exit__(self, *exc) -> None:
        modes.stack = modes.stack[:-1]
        switch.off()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _init_subclass(cls, **kwargs) -> None:
    super(Tensor, cls).__init_subclass__(**kwargs)
    if not getattr(cls, "_plain_results", False):
        switch.subclassed = True
        switch.on()


Tensor.__init_subclass__ = classmethod(_init_subclass)
Tensor.__torch_function__ = classmethod(default_torch_function)
