"""What of a program's guards needs no test as long as memory says that nothing has changed.

An `Observation` follows the paths of a program's guards on the objects of one call. The objects it
reaches through places with words (`words.py`) are *settled*: while the words stay as they are, and
roots are the same objects, what was read from there would be read again, and guards on settled
objects that held then hold now. The rest (the batch, a learning rate that changes) is tested as
before. Keys name the places, so that those that turn out to change often can be left out.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

from flambeau.capture import modes, words
from flambeau.capture.attributes import _holds_member
from flambeau.capture.guards import Guard
from flambeau.capture.sources import WALK, Source
from flambeau.capture.values import PLAIN, static
from flambeau.tensor.tensor import Tensor

OPEN: Any = type("Open", (), {"__repr__": lambda self: "OPEN"})()
"""A path whose object has to be read in every call."""
TENSOR_SLOTS = ("_spec", "_requires_grad", "_node")
FOLLOWED = (types.CellType, types.FunctionType, types.MethodType, types.ModuleType, type)
CONTAINERS = (list, dict, tuple)


class Observation:
    """The objects of one call of a program, with the words and roots that vouch for them."""

    def __init__(
        self,
        guards: list[Guard],
        sources: list[Source],
        volatile: frozenset,
        function: types.FunctionType,
        arguments: dict[str, Any],
    ):
        self.volatile, self.function, self.arguments = volatile, function, arguments
        self.words: dict[tuple, words.Words] = {}
        self.pins: dict[tuple, tuple[Source, int]] = {}
        """Paths that are read in every call, and the identity of what they must give."""
        self.known: dict[int, Any] = {}
        self.switches = self.complete = False
        self.watched: list[weakref.ref] = []
        self.open_guards = [g for g in guards if not self._settles(g)]
        for source in sources:
            self.value(source)

    def facts(self) -> dict[tuple, Any]:
        """Key -> what must stay equal for the settled guards to hold."""
        return {**self.words, **{k: identity for k, (_, identity) in self.pins.items()}}

    def forget_call(self, died: Callable[[Any], None]) -> None:
        """Let go of the arguments; `died` is called when one that a program relies on is gone."""
        self.arguments, self.complete = {}, True
        roots = [source for source, _ in self.pins.values() if source.kind == "local"]
        self.watched = [weakref.ref(self.known.pop(id(root)), died) for root in roots]

    def vouches_for_slot(self, owner: Any, name: str) -> bool:
        return ("slot", id(owner), name) in self.words

    # Following paths -------------------------------------------------------------------------

    def value(self, source: Source) -> Any:
        """The settled object at a path, or OPEN; nothing is settled after the call any more."""
        found = self.known.get(id(source), OPEN if self.complete else self)
        if found is self:
            found = self.known[id(source)] = self._found(source)
        return found

    def _found(self, source: Source) -> Any:
        if source.base is None:
            if source.kind == "constant":
                return source.key
            return self._pinned(source)
        base = self.value(source.base)
        if base is OPEN:
            return self._pinned(source) if source.kind in ("cell", "globals") else OPEN
        if STEPS[source.kind](self, source, base):
            try:
                return self._read(source, base)
            except (AttributeError, LookupError, TypeError, ValueError):
                return OPEN
        return self._pinned(source)

    def _read(self, source: Source, base: Any) -> Any:
        key = source.key
        if isinstance(key, Source):
            key = self.value(key)
            if key is OPEN:
                return OPEN
        return WALK[source.kind](base, key)

    def _pinned(self, source: Source) -> Any:
        """An object that is compared by identity each time, so that what is below is settled."""
        key = ("pin", id(source))
        if key in self.volatile:
            return OPEN
        try:
            value = source.value(self.arguments, self.function)
            again = source.value(self.arguments, self.function)
        except (AttributeError, LookupError, TypeError, ValueError):
            return OPEN
        if value is not again or not self._can_pin(source, value):
            return OPEN
        self.pins[key] = (source, id(value))
        return value

    def _can_pin(self, source: Source, value: Any) -> bool:
        """Arguments are held only weakly, or a program would keep its last caller's data alive."""
        if isinstance(value, (*PLAIN, Tensor)):
            return False
        if source.root_local() is None:
            return isinstance(value, (*FOLLOWED, *CONTAINERS)) or hasattr(value, "__dict__")
        return source.base is None and hasattr(type(value), "__weakref__")

    # Places ----------------------------------------------------------------------------------

    def vouched(self, key: tuple, found: words.Words | None) -> bool:
        """Remember the words of a place; False if it has none, or changes too often."""
        if found is None or key in self.volatile:
            return False
        self.words[key] = found
        return True

    def _own(self, key: tuple, measure: Callable[[Any], words.Words | None], value: Any) -> bool:
        return key in self.words or key not in self.volatile and self.vouched(key, measure(value))

    def dictionary(self, value: Any) -> bool:
        return self._own(("dict", id(value)), words.of_dict, value)

    def attributes(self, owner: Any) -> bool:
        return self._own(("attributes", id(owner)), words.of_attributes, owner)

    def elements(self, value: Any) -> bool:
        if isinstance(value, tuple):
            return True
        return self._own(("list", id(value)), words.of_list, value)

    def slot(self, owner: Any, name: str) -> bool:
        key = ("slot", id(owner), name)
        return self._own(key, lambda held: words.of_slot(held, name), owner)

    def class_of(self, value: Any) -> bool:
        return self._own(("type", id(value)), words.of_type, value)

    # Guards ----------------------------------------------------------------------------------

    def _settles(self, guard: Guard) -> bool:
        """Whether the words vouch for a guard that holds now."""
        if guard.source is None:
            return guard.kind == "test" and self._settles_modes(guard)
        if guard.kind in ("distinct", "apart"):
            return self._settles_together(guard)
        value = self.value(guard.source)
        if value is OPEN:
            return False
        test = SETTLED.get(guard.kind)
        return test is not None and test(self, guard, value)

    def _settles_modes(self, guard: Guard) -> bool:
        """The part of a test of the thread's switches that dictionaries hold."""
        if isinstance(guard.expected.call, modes.Unchanged):
            vouched = [self.dictionary(d) for d in modes.dictionaries()]
            self.switches = all(vouched)
        return False

    def _settles_together(self, guard: Guard) -> bool:
        if guard.kind == "distinct":
            return all(self.value(s) is not OPEN for s in guard.expected)
        members = [self.value(s) for group in guard.expected for s in group]
        vouched = [v is not OPEN and self.slot(v, "_storage") for v in members]
        return all(vouched)

    def is_tensor(self, guard: Guard, value: Any) -> bool:
        held = self.class_of(value)
        return held and all(self.slot(value, name) for name in TENSOR_SLOTS)

    def is_plain(self, guard: Guard, value: Any) -> bool:
        return isinstance(value, PLAIN)

    def is_same(self, guard: Guard, value: Any) -> bool:
        return self.value(guard.expected) is not OPEN

    def is_sized(self, guard: Guard, value: Any) -> bool:
        return self.dictionary(value) if isinstance(value, dict) else self.elements(value)

    def has_code(self, guard: Guard, value: Any) -> bool:
        return self._own(("code", id(value)), words.of_code, value)

    def lacks_entry(self, guard: Guard, value: Any) -> bool:
        return self.attributes(value)

    def is_unset(self, guard: Guard, value: Any) -> bool:
        if type(value) is types.CellType:
            return self._own(("cell", id(value)), words.of_cell, value)
        return self.slot(value, guard.expected)

    def holds_member(self, guard: Guard, value: Any) -> bool:
        call = guard.expected.call
        if not isinstance(call, functools.partial) or call.func is not _holds_member:
            return False
        return self.attributes(value)


def _attribute(seen: Observation, source: Source, base: Any) -> bool:
    if source.key == "__dict__":
        key = ("instance", id(base))
        return not isinstance(base, type) and seen._own(key, words.of_instance_dict, base)
    if source.key == "cell_contents":
        return seen._own(("cell", id(base)), words.of_cell, base)
    if static(type(base), source.key) is None:
        return source.key in getattr(base, "__dict__", ()) and seen.attributes(base)
    return seen.slot(base, source.key)


def _item(seen: Observation, source: Source, base: Any) -> bool:
    if isinstance(base, dict):
        return type(base).__getitem__ is dict.__getitem__ and seen.dictionary(base)
    return type(base) in (list, tuple) and seen.elements(base)


STEPS: dict[str, Callable[[Observation, Source, Any], bool]] = {
    "attribute": _attribute,
    "entry": lambda seen, source, base: seen.attributes(base),
    "item": _item,
    "keys": lambda seen, source, base: seen.dictionary(base),
    "cell": lambda seen, source, base: type(base) is types.FunctionType,
    "number": lambda seen, source, base: False,
    "integer": lambda seen, source, base: False,
    "globals": lambda seen, source, base: type(base) is types.FunctionType,
}
"""Kind of step -> whether its result is settled, given that its base is."""

SETTLED: dict[str, Callable[[Observation, Guard, Any], bool]] = {
    "is": lambda seen, guard, value: True,
    "same": Observation.is_same,
    "type": lambda seen, guard, value: seen.class_of(value),
    "equals": Observation.is_plain,
    "length": Observation.is_sized,
    "keys": Observation.is_sized,
    "missing": lambda seen, guard, value: seen.dictionary(value),
    "present": lambda seen, guard, value: seen.dictionary(value),
    "code": Observation.has_code,
    "absent": Observation.lacks_entry,
    "unset": Observation.is_unset,
    "test": Observation.holds_member,
    "tensor": Observation.is_tensor,
}
"""Kind of guard -> whether it is settled on a settled object."""
