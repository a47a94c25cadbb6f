"""Words of memory that change whenever an object does: guards as one native comparison.

CPython gives every dictionary a version that no two states of any dictionaries share, and keeps
attributes, list elements and cell contents at fixed places. While the words read here are as they
were, and the objects are alive, everything that was found by following them still is.

`hold` compares a table of (address, expected word) pairs from the front and stops at the first that
differs, so a word may be read through pointers that earlier pairs have confirmed. The first word of
a table counts how often all of it has held.
"""

from __future__ import annotations

import collections
import ctypes
import functools
import gc
import struct
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

from flambeau.capture.values import static
from flambeau.core.errors import FlambeauError
from flambeau.runtime import builtin, jit

Words = tuple[tuple[int, int], ...]
TYPE, CELL_CONTENTS, LIST_SIZE, LIST_ITEMS, FUNCTION_CODE = 8, 16, 16, 24, 48
DICT_USED, DICT_VERSION, DICT_VALUES = 16, 24, 40
INSTANCE_DICT = -24
DESCRIPTOR_MEMBER, MEMBER_OFFSET = 40, 16
_CHECK = """
declare void @Py_IncRef(ptr)
@_Py_TrueStruct = external global i8
@_Py_FalseStruct = external global i8
define ptr @flambeau_words_hold(ptr %self, ptr %args, i64 %count) {
entry:
  %table = load ptr, ptr %args
  %sizeat = getelementptr i8, ptr %table, i64 16
  %size = load i64, ptr %sizeat
  %counter = getelementptr i8, ptr %table, i64 32
  %first = getelementptr i8, ptr %table, i64 40
  %last = getelementptr i8, ptr %counter, i64 %size
  br label %loop
loop:
  %at = phi ptr [ %first, %entry ], [ %next, %same ]
  %done = icmp eq ptr %at, %last
  br i1 %done, label %yes, label %look
look:
  %place = load ptr, ptr %at
  %now = load i64, ptr %place
  %wantat = getelementptr i8, ptr %at, i64 8
  %want = load i64, ptr %wantat
  %equal = icmp eq i64 %now, %want
  br i1 %equal, label %same, label %no
same:
  %next = getelementptr i8, ptr %at, i64 16
  br label %loop
yes:
  %before = load i64, ptr %counter
  %after = add i64 %before, 1
  store i64 %after, ptr %counter
  call void @Py_IncRef(ptr @_Py_TrueStruct)
  ret ptr @_Py_TrueStruct
no:
  call void @Py_IncRef(ptr @_Py_FalseStruct)
  ret ptr @_Py_FalseStruct
}
"""


def _define_booleans() -> None:
    jit.define_symbol("_Py_TrueStruct", id(True))
    jit.define_symbol("_Py_FalseStruct", id(False))


jit.provide(("_Py_TrueStruct", "_Py_FalseStruct"), _define_booleans)


def table(words: Iterable[tuple[int, int]]) -> bytes:
    """What `hold` takes, which counts in it."""
    flat = [part for pair in words for part in pair]
    return struct.pack(f"<Q{len(flat)}Q", 0, *flat)


def times_held(made: bytes) -> int:
    """How often all words of a table were as expected."""
    return struct.unpack_from("<Q", made)[0]


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


@functools.cache
def hold() -> Callable[[bytes], bool] | None:
    """The comparison; None where CPython's memory is not laid out as described here."""
    if sys.byteorder != "little" or not (3, 11) <= sys.version_info < (3, 14):
        return None
    if ctypes.sizeof(ctypes.c_void_p) != 8 or hasattr(sys, "gettotalrefcount"):
        return None
    if not builtin.is_supported() or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    if not _layout_is_known():
        return None
    try:
        library = jit.load(_CHECK)
    except (FlambeauError, ImportError, OSError):
        return None
    made: Any = builtin.wrap(library, "flambeau_words_hold")
    return made


# Words of objects; each gives None where the object is not of a kind that has them ---------------


def of_type(value: Any) -> Words:
    """The class of an object, which may be assigned to."""
    return ((id(value) + TYPE, id(type(value))),)


def of_dict(value: Any) -> Words | None:
    """Keys and values of a dictionary, and their order."""
    if not isinstance(value, dict):
        return None
    if isinstance(value, collections.OrderedDict) and len(value) > 1:
        return None  # `move_to_end` is no change of the dictionary below
    words = [(id(value) + at, _word(id(value) + at)) for at in (DICT_VERSION, DICT_USED)]
    if sys.version_info >= (3, 13):
        words += _shared_values(value)
    return tuple(words)


def _shared_values(value: dict) -> list[tuple[int, int]]:
    """Attributes written on the owner go past the dictionary's version, straight to its values."""
    values = _word(id(value) + DICT_VALUES)
    found = [(id(value) + DICT_VALUES, values)]
    if values:
        capacity = ctypes.c_uint8.from_address(values).value
        found += [(at, _word(at)) for at in range(values + 8, values + 8 + 8 * capacity, 8)]
    return found


def of_attributes(owner: Any) -> Words | None:
    """The whole instance dictionary of an object, or the dictionary of a class."""
    if isinstance(owner, type):
        found = [d for d in gc.get_referents(owner.__dict__) if isinstance(d, dict)]
        return of_dict(found[0]) if len(found) == 1 else None
    link = of_instance_dict(owner)
    inner = None if link is None else of_dict(owner.__dict__)
    return None if link is None or inner is None else link + inner


def of_instance_dict(owner: Any) -> Words | None:
    """Which dictionary an object has."""
    if isinstance(owner, types.ModuleType):
        return ()  # it cannot be exchanged
    if not type(owner).__flags__ & (1 << 4):  # Py_TPFLAGS_MANAGED_DICT
        return None
    held = owner.__dict__
    if type(held) is not dict or _word(id(owner) + INSTANCE_DICT) != id(held):
        return None
    return ((id(owner) + INSTANCE_DICT, id(held)),)


def of_slot(owner: Any, name: str) -> Words | None:
    """An attribute with a place of its own; the word of an unset one is 0."""
    member = static(type(owner), name)
    if not isinstance(member, types.MemberDescriptorType):
        return None
    offset = _word(_word(id(member) + DESCRIPTOR_MEMBER) + MEMBER_OFFSET)
    try:
        expected = id(member.__get__(owner))
    except AttributeError:
        expected = 0
    address = id(owner) + offset
    return ((address, expected),) if _word(address) == expected else None


def of_cell(cell: Any) -> Words | None:
    """The content of a closure cell."""
    if type(cell) is not types.CellType:
        return None
    return ((id(cell) + CELL_CONTENTS, _word(id(cell) + CELL_CONTENTS)),)


def of_list(value: Any) -> Words | None:
    """Length and elements."""
    if type(value) is not list:
        return None
    items = _word(id(value) + LIST_ITEMS)
    head = ((id(value) + LIST_SIZE, len(value)), (id(value) + LIST_ITEMS, items))
    return head + tuple((items + 8 * k, id(v)) for k, v in enumerate(value))


def of_code(function: Any) -> Words | None:
    """The code object of a function."""
    if type(function) is not types.FunctionType:
        return None
    return ((id(function) + FUNCTION_CODE, id(function.__code__)),)


# What is taken for granted above, tried once in each process -------------------------------------


class _Sample:
    first: Any
    second: Any


class _Slotted:
    __slots__ = ("_place",)


def _layout_is_known() -> bool:
    return _dictionaries_tell() and _places_are_known()


def _changes(words: Callable[[], Words | None], change: Callable[[], Any]) -> bool:
    before = words()
    change()
    return before is not None and words() != before


def _dictionaries_tell() -> bool:
    """Every kind of write shows, also on an object whose attributes have been written often."""
    held: dict[Any, Any] = {"a": 1}
    owner, other = _Sample(), _Sample()
    owner.first = owner.second = 1
    kept = owner.__dict__
    shows = [
        _changes(lambda: of_dict(held), change)
        for change in (
            lambda: held.__setitem__("b", object()),
            lambda: held.__setitem__("b", object()),
            lambda: held.update(c=1),
            lambda: held.setdefault("d", 1),
            lambda: held.pop("b"),
            lambda: held.popitem(),
            lambda: held.clear(),
        )
    ]
    for _ in range(40):
        other.first = object()

        def write() -> None:
            owner.first = object()

        shows.append(_changes(lambda: of_attributes(owner), write))
    shows.append(_changes(lambda: of_attributes(owner), lambda: kept.update(second=object())))
    shows.append(_changes(lambda: of_attributes(owner), lambda: setattr(owner, "third", 1)))
    shows.append(_changes(lambda: of_attributes(owner), lambda: delattr(owner, "second")))
    shows.append(_changes(lambda: of_attributes(_Sample), lambda: setattr(_Sample, "fourth", 1)))
    shows.append(_changes(lambda: of_attributes(_Sample), lambda: delattr(_Sample, "fourth")))
    return all(shows)


def _places_are_known() -> bool:
    slotted, cell, items = _Slotted(), types.CellType(object()), [object(), object()]
    before = of_slot(slotted, "_place")
    slotted._place = object()  # type: ignore[attr-defined]
    code = of_code(_layout_is_known)
    return (
        before is not None
        and of_slot(slotted, "_place") not in (None, before)
        and of_cell(cell) == ((id(cell) + CELL_CONTENTS, id(cell.cell_contents)),)
        and all(_word(at) == want for at, want in of_list(items) or ((0, 1),))
        and code is not None
        and _word(code[0][0]) == code[0][1]
        and _word(id(cell) + TYPE) == id(types.CellType)
    )
