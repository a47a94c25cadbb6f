"""Objects of built-in classes that existed before the frame: what guards can say about them.

C code computes from all of an object, so the frame may only read what a guard covers as a whole.
Immutable values are guarded by value. Anything else of a class written in C may be passed on, and
is read by plain Python.
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau.capture.values import BY_IDENTITY

NUMBERS_AND_TEXT: dict[type, Callable[[Any], Any]] = {
    int: int.__index__,
    float: float.hex,
    complex: complex.__repr__,
    str: str.__str__,
    bytes: bytes.hex,
}
"""Built-in class -> what tells its values apart, whatever a subclass makes of them."""
BY_REPRESENTATION = frozenset("datetime decimal _decimal _pydecimal zoneinfo".split())
"""Modules whose objects are immutable and say all about themselves."""
C_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)


class Same:
    """A test that an immutable object has the value that it had."""

    def __init__(self, value: Any, form: Callable[[Any], Any]):
        self.kind, self.form, self.expected = type(value), form, form(value)

    def __call__(self, value: Any) -> bool:
        return type(value) is self.kind and self.form(value) == self.expected

    @property
    def mark(self) -> tuple:
        """Equal for equal tests."""
        return (self.kind, self.expected)


def _of_array_scalar(value: np.generic) -> tuple:
    return (value.dtype, value.tobytes())


def same_value(value: Any) -> Same | None:
    """A test for an immutable object whose class is written in C, or derives from such a class."""
    if isinstance(value, np.generic):
        return Same(value, _of_array_scalar)
    if isinstance(value, np.dtype):
        return Same(value, np.dtype.__repr__)
    for kind, form in NUMBERS_AND_TEXT.items():
        if isinstance(value, kind):
            return Same(value, form)
    if type(value).__module__ in BY_REPRESENTATION:
        return Same(value, repr)
    return None


def is_rate(value: Any) -> bool:
    """An array scalar that may become a symbolic number, as schedules in arrays have them; what the
    frame computes from it is a Python number then."""
    return isinstance(value, (np.floating, np.integer))


def is_one_of_a_kind(value: Any) -> bool:
    """Objects that a guard compares by identity: nobody makes a second one like it."""
    return isinstance(value, (*BY_IDENTITY, enum.Enum, np.ufunc, functools._lru_cache_wrapper))


@functools.lru_cache(maxsize=4096)
def _is_written_in_c(cls: type) -> bool:
    return any(
        isinstance(member, C_METHODS) and member.__objclass__ is cls
        for member in vars(cls).values()
    )


@functools.lru_cache(maxsize=4096)
def is_opaque_class(cls: type) -> bool:
    """Whether C code reads objects of the class in ways that attribute guards do not cover."""
    return any(_is_written_in_c(base) for base in cls.__mro__ if base is not object)
