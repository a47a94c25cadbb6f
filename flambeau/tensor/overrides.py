"""`__torch_function__`: subclasses and modes that want to see public functions.

`active` is false until the first such subclass or mode exists, so plain programs pay one look.
"""

from __future__ import annotations

import threading
from typing import Any, Callable

from flambeau.core.errors import ArgumentError, complaint
from flambeau.tensor.tensor import Tensor


class _State:
    active = False  # a subclass that overrides exists, or a mode has been entered


class _Modes(threading.local):
    stack: tuple = ()
    disabled: bool = False


switch = _State()
modes = _Modes()


def interested(values) -> list:
    """Arguments whose class overrides, subclasses before their bases, otherwise in order."""
    found: list[Any] = []
    for v in values:
        if isinstance(v, (list, tuple)):
            found += [x for x in interested(v) if type(x) not in map(type, found)]
            continue
        cls = type(v)
        if cls is Tensor or getattr(cls, "_plain_results", False) or not hasattr(
                cls, "__torch_function__") or cls in map(type, found):
            continue
        at = next((i for i, x in enumerate(found) if issubclass(cls, type(x))), len(found))
        found.insert(at, v)
    return found


def handle(function: Callable, args: tuple, kwargs: dict):
    """The overridden result, or NotImplemented when nobody overrides."""
    types = tuple({type(v): None for v in interested((*args, *kwargs.values()))})
    if modes.stack:
        before, mode = modes.stack, modes.stack[-1]
        modes.stack = before[:-1]
        try:
            return mode.__torch_function__(function, types, args, kwargs)
        finally:
            modes.stack = before
    if modes.disabled or not types:
        return NotImplemented
    for v in interested((*args, *kwargs.values())):
        result = type(v).__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise ArgumentError(complaint(
        function.__name__, "no implementation was found for the types that override it",
        dict(types=[t.__name__ for t in types])))


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
    """A context manager whose `__torch_function__` sees every public call made inside."""

    def __enter__(self):
        switch.active = True
        modes.stack = (*modes.stack, self)
        return self

    def __exit__(self, *exc) -> None:
        modes.stack = modes.stack[:-1]

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _init_subclass(cls, **kwargs) -> None:
    super(Tensor, cls).__init_subclass__(**kwargs)
    if not getattr(cls, "_plain_results", False):
        switch.active = True


Tensor.__init_subclass__ = classmethod(_init_subclass)
Tensor.__torch_function__ = classmethod(default_torch_function)
