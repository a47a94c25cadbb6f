"""Values that only exist while a frame is being captured, and questions about values."""

from __future__ import annotations

import types
from typing import Any

from flambeau.capture.breaks import NeedGradients


class _Marker:
    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


NULL = _Marker("NULL")
"""The empty stack slot that calls push."""
MISSING = _Marker("MISSING")
"""No such attribute, key or variable."""
DELETED = _Marker("DELETED")
"""An attribute or variable that existed before the frame and was deleted in it."""


class _Unread:
    """Stands for `.grad` until somebody needs it."""

    def __getattr__(self, name: str) -> Any:
        raise NeedGradients


UNREAD: Any = _Unread()


class ListShadow(list):
    """Stands for a list that existed before the frame.

    Until it is read it holds only what was appended; `Session.fill` puts the elements of the
    original in front, each with a source and a guard.
    """

    __slots__ = ("filled",)

    def __init__(self) -> None:
        super().__init__()
        self.filled = False

    def __reduce__(self) -> Any:
        return (list, (list(self),))


class InstanceDict:
    """`vars(owner)`: reads and writes go to the attributes that the session knows."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any):
        self.owner = owner


class Unseen:
    """An argument of the outermost frame that nobody has looked at, so nothing guards it."""

    __slots__ = ("source", "value")

    def __init__(self, value: Any, source: Any):
        self.value, self.source = value, source

    def look(self, session: Any) -> Any:
        return session.wrap(self.value, self.source)


PLAIN = (
    int,
    float,
    bool,
    complex,
    str,
    bytes,
    type(None),
    type(Ellipsis),
    type(NotImplemented),
    range,
    types.CodeType,
)
"""Immutable types whose values compare by value and hold nothing else."""

BY_IDENTITY = (
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
    types.MethodWrapperType,
    types.GenericAlias,
    types.UnionType,
    property,
    staticmethod,
    classmethod,
)
"""Types whose objects a guard compares by identity."""

CONTAINERS = (list, tuple, dict, set, frozenset)


def is_python_defined(cls: type, name: str) -> bool:
    """Whether looking `name` up on instances of `cls` finds a Python function."""
    return isinstance(static(cls, name), types.FunctionType)


def static(cls: type, name: str, default: Any = None) -> Any:
    """What the class hierarchy holds under `name`, without descriptors being asked."""
    for base in type.__dict__["__mro__"].__get__(cls):
        found = base.__dict__.get(name, MISSING)
        if found is not MISSING:
            return found
    return default


def holder(cls: type, name: str) -> type | None:
    """The class in the hierarchy that holds `name`."""
    for base in type.__dict__["__mro__"].__get__(cls):
        if name in base.__dict__:
            return base
    return None
