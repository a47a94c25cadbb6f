"""How native code calls a kernel without Python in between.

Beside its Python callable every kernel has a form, ``i64 f(ptr description, ptr context)``. The
context is a block of 64-bit words that holds the kernel's arguments; the other words are the
kernel's own. It returns 0, or 1 when an index was out of range, or 2 when memory ran out.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass

INDEX_ERROR, NO_MEMORY = 1, 2


@dataclass(frozen=True, slots=True)
class Form:
    """`function` and `description` are addresses.

    words    length of the context
    places   the word of each argument of the Python callable
    letters  how each argument is read: ``p`` address, ``i`` integer, ``d`` double
    found    the word of the index that was out of range; the size it ran into is in the next, and
             in the one after that who looked it up
    sites    their names (see flambeau.core.bounds)
    """

    function: int
    description: int
    words: int
    places: tuple[int, ...]
    letters: str
    nanoseconds: int
    found: int = 0
    sites: tuple[str, ...] = ()


_forms: weakref.WeakKeyDictionary[Callable, Form] = weakref.WeakKeyDictionary()


def remember(entry: Callable, form: Form) -> None:
    """`form` does what `entry` does."""
    _forms[entry] = form


def form_of(entry: Callable) -> Form:
    """The form of a kernel's Python callable."""
    return _forms[entry]
