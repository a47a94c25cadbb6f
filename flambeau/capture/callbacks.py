"""Interpreted functions as arguments of C functions."""

from __future__ import annotations

import functools
import types
from typing import Any

from flambeau.capture.breaks import native_side


class Callback:
    """Called by C code, it interprets a function of the user's."""

    __slots__ = ("function", "run")

    def __init__(self, run: Any, function: Any):
        self.run, self.function = run, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        session = self.run.session
        for value in args:  # containers that the C code or the library has made
            if isinstance(value, (list, dict, set)) and id(value) not in session.originals:
                session.note_created(value)
        return native_side(self.run.call, self.function, args, kwargs)


def is_interpreted(value: Any) -> bool:
    """Whether calling `value` would run Python code of the user's."""
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
        return True
    if isinstance(value, type):
        return bool(value.__flags__ & (1 << 9))
    return isinstance(static_call(type(value)), types.FunctionType)


def static_call(cls: type) -> Any:
    for base in cls.__mro__:
        if "__call__" in base.__dict__:
            return base.__dict__["__call__"]
    return None


def for_c_code(run: Any, value: Any) -> Any:
    """`value`, or a callback in its place if it is an interpreted function."""
    return Callback(run, value) if is_interpreted(value) else value
