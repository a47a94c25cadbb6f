"""What one capture knows: sources, guards, and changes that have not happened yet.

Interpreted code works on real objects. An object that existed before the frame has a *source*;
reading it through the session adds guards. Containers are replaced by *shadows* whose elements have
sources too; attributes and variables that are written go to an overlay. Nothing outside of the
capture changes until the captured program runs and replays the effects.
"""

from __future__ import annotations

import collections
import types
from typing import Any

import numpy as np

from flambeau.capture import modes, trust
from flambeau.capture.breaks import GraphBreak, SkipFrame
from flambeau.capture.guards import Guard, Test
from flambeau.capture.outside import is_one_of_a_kind, is_opaque_class, is_rate, same_value
from flambeau.capture.sources import Source
from flambeau.capture.values import (
    BY_IDENTITY,
    DELETED,
    MISSING,
    PLAIN,
    InstanceDict,
    ListShadow,
)

LARGEST_CONTAINER = 4000
UNGUARDED = (dict, list, set, collections.deque, bytearray, memoryview, np.ndarray)
"""Mutable types; objects of them are read only if they are shadows or made by the frame."""
STEP_LIMIT = 2_000_000


class Session:
    """The state of one capture. `tensors` says what a tensor is and records what is done to it."""

    def __init__(self, tensors: Any):
        self.tensors = tensors
        self.guards: dict[tuple, Guard] = {}
        self.sources: dict[int, Source] = {}
        self.kept: list[Any] = []
        self.shadows: dict[int, Any] = {}
        self.originals: dict[int, Any] = {}
        self.snapshots: dict[int, Any] = {}
        self.attributes: dict[tuple[int, str], Any] = {}
        self.variables: dict[tuple[int, Any], Any] = {}
        self.effects: dict[tuple, tuple] = {}
        self.created: dict[int, int] = {}
        self.new_cells: set[int] = set()
        self.unfilled: dict[int, ListShadow] = {}
        self.constants: dict[int, Source] = {}
        self.opaque: set[int] = set()
        self.told_apart: set[tuple[int, int]] = set()
        self.dynamic: set[str] = set()
        self.all_symbolic = False
        self.pinned: frozenset[str] = frozenset()
        self.scalars: Any = None
        self.steps = 0
        self.root_step = 0
        self.depth = 0
        tensors.attach(self)

    # Sources and guards ----------------------------------------------------------------------

    def guard(self, source: Source | None, kind: str, expected: Any = None) -> None:
        """Require a test to hold; constants need none."""
        if source is not None and source.is_constant and kind != "test":
            return
        made = Guard(source, kind, expected)
        self.guards.setdefault(made.mark, made)

    def test(self, source: Source | None, call: Any, description: str, mark: Any) -> None:
        """Require `call(value)` to hold; `mark` tells equal tests apart from different ones."""
        key = (id(source), "test", mark)
        self.guards.setdefault(key, Guard(source, "test", Test(call, description)))

    def constant(self, value: Any) -> Source:
        """The path to an object that is the same in every call."""
        found = self.constants.get(id(value))
        if found is None:
            found = self.constants[id(value)] = Source(None, "constant", value)
            self.keep(value)
        return found

    def tell_apart(self, left: Any, right: Any) -> None:
        """The frame goes on differently if these two, found at different places, are one."""
        if type(left) is not type(right) or type(left) in PLAIN or self.tensors.is_tensor(left):
            return
        if is_one_of_a_kind(left) or trust.is_native_class(type(left)):
            return
        pair = self.source(left), self.source(right)
        if None in pair or all(s.is_constant for s in pair):  # type: ignore[union-attr]
            return
        first, second = sorted(pair, key=lambda s: s.is_constant)  # type: ignore[union-attr]
        if (id(first), id(second)) not in self.told_apart:
            self.told_apart.add((id(first), id(second)))
            self.guard(first, "distinct", (first, second))

    def keep(self, value: Any) -> Any:
        """Hold a reference, so that the identity stays the object's own."""
        self.kept.append(value)
        return value

    def source(self, value: Any) -> Source | None:
        return self.sources.get(id(value))

    def note(self, value: Any, source: Source) -> None:
        self.sources[id(value)] = source
        self.keep(value)

    def note_created(self, value: Any) -> Any:
        """An object made by the frame, at the current instruction of the outermost frame."""
        self.created[id(value)] = self.root_step
        self.keep(value)
        return value

    # Reading what existed before -------------------------------------------------------------

    def wrap(self, value: Any, source: Source) -> Any:
        """`value` was found at `source`: guard what it is and give what stands for it here."""
        if value is None or value is True or value is False or value is Ellipsis:
            self.guard(source, "is", value)
            return value
        if id(value) in self.created or id(value) in self.originals:
            return value
        if self.tensors.is_tensor(value):
            return self.tensors.wrap(value, source)
        if type(value) in PLAIN:
            return self._plain(value, source)
        known = self.sources.get(id(value))
        if known is not None:
            if known is not source:
                self._same(source, known)
            return self.shadows.get(id(value), value)
        return self._first_sight(value, source)

    def _same(self, source: Source, known: Source) -> None:
        if not source.is_constant:
            self.guard(source, "same", known)
        elif not known.is_constant:
            self.guard(known, "is", source.key)

    def _plain(self, value: Any, source: Source) -> Any:
        name = repr(source) if self.dynamic and type(value) in (int, float) else ""
        if name in self.dynamic and name not in self.pinned:
            return self.scalars.input(value, source)
        if type(value) in (range, types.CodeType):
            self.guard(source, "equals", self.keep(value))
        elif value is NotImplemented:
            self.guard(source, "is", value)
        else:
            self.guard(source, "equals", self.keep(value))
        return value

    def _first_sight(self, value: Any, source: Source) -> Any:
        kind = type(value)
        self.note(value, source)
        if isinstance(value, types.FunctionType):
            self._function(value, source)
        elif kind in READERS:
            return READERS[kind](self, value, source)
        elif isinstance(value, tuple):
            return self._tuple(value, source)
        elif is_one_of_a_kind(value) or trust.is_native_class(kind):
            by_value = kind.__name__ == "device"
            self.guard(source, "equals" if by_value else "is", value)
        elif kind is types.MethodType:
            self.guard(source, "type", kind)
            return self._method(value, source)
        elif isinstance(
            value, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
        ):
            self.guard(source, "type", kind)
        else:
            return self._object(value, source)
        return value

    def _object(self, value: Any, source: Source) -> Any:
        """Attributes are guarded where they are read; what C code may read is guarded here."""
        kind = type(value)
        self.guard(source, "type", kind)
        if source.is_constant or not is_opaque_class(kind):
            return value
        same = same_value(value)
        if same is None:
            self.opaque.add(id(value))
        elif is_rate(value) and repr(source) in self.dynamic - self.pinned:
            return self.scalars.rate(value, source)
        else:
            self.test(source, same, f"== {value!r}", same.mark)
        return value

    def _function(self, value: types.FunctionType, source: Source) -> None:
        if trust.is_trusted(value):
            self.guard(source, "is", value)
            return
        self.guard(source, "code", value.__code__)
        if value.__globals__.get("__name__") is None:
            self.guard(source, "is", value)

    def _method(self, value: types.MethodType, source: Source) -> Any:
        function = self.wrap(value.__func__, source.attribute("__func__"))
        owner = self.wrap(value.__self__, source.attribute("__self__"))
        made = types.MethodType(function, owner)
        self.note(made, source)
        self.shadows[id(value)] = made
        self.originals[id(made)] = value
        return made

    def _sized(self, value: Any, source: Source) -> None:
        self.guard(source, "type", type(value))
        self._check_size(value, source)
        self.guard(source, "length", len(value))

    def _check_size(self, value: Any, source: Source) -> None:
        if len(value) > LARGEST_CONTAINER:
            raise GraphBreak(
                f"{source!r} holds {len(value)} elements",
                "Index it before calling, or keep it in a tensor.",
            )

    def _shadow(self, original: Any, shadow: Any, source: Source) -> Any:
        self.note(shadow, source)
        self.shadows[id(original)] = shadow
        self.originals[id(shadow)] = original
        return shadow

    def _tuple(self, value: tuple, source: Source) -> Any:
        self._sized(value, source)
        elements = [
            self.wrap(tuple.__getitem__(value, k), source.item(k)) for k in range(len(value))
        ]
        if all(a is b for a, b in zip(elements, tuple.__iter__(value))):
            return value
        made = tuple.__new__(type(value), elements)
        if getattr(value, "__dict__", None):
            made.__dict__.update(value.__dict__)
        return self._shadow(value, made, source)

    def _list(self, value: list, source: Source) -> ListShadow:
        self.guard(source, "type", list)
        shadow = self._shadow(value, ListShadow(), source)
        self.unfilled[id(shadow)] = shadow
        return shadow

    def fill(self, shadow: ListShadow) -> ListShadow:
        """Give an untouched list its elements."""
        original, source = self.originals[id(shadow)], self.sources[id(shadow)]
        self._sized(original, source)
        shadow.filled = True
        del self.unfilled[id(shadow)]
        elements = [self.wrap(v, source.item(k)) for k, v in enumerate(original)]
        self.snapshots[id(shadow)] = elements
        shadow[:0] = elements
        return shadow

    def _dict(self, value: dict, source: Source) -> Any:
        self.guard(source, "type", type(value))
        self._check_size(value, source)
        shadow = value.copy() if type(value) is not dict else {}
        shadow.clear()
        self._shadow(value, shadow, source)
        keys = tuple(value)
        plain = all(type(k) in PLAIN or isinstance(k, (type, types.FunctionType)) for k in keys)
        if plain:
            self.guard(source, "keys", self.keep(keys))
        else:
            self.guard(source, "length", len(keys))
        for k, key in enumerate(keys):
            if plain:
                shadow[key] = self.wrap(value[key], source.item(key))
                continue
            where = source.step("keys").item(k)
            shadow[self.wrap(key, where)] = self.wrap(value[key], source.item(where))
        self.snapshots[id(shadow)] = dict(shadow)
        return shadow

    def _slice(self, value: slice, source: Source) -> slice:
        self.guard(source, "type", slice)
        parts = [
            self.wrap(getattr(value, name), source.attribute(name))
            for name in ("start", "stop", "step")
        ]
        return self._shadow(value, slice(*parts), source)

    def _set(self, value: Any, source: Source) -> Any:
        self._sized(value, source)
        if not all(type(v) in PLAIN for v in value):
            raise GraphBreak(f"{source!r} is a set of objects", "Use a list or a dict.")
        self.guard(source, "equals", self.keep(type(value)(value)))
        if type(value) is frozenset:
            return value
        shadow = self._shadow(value, set(value), source)
        self.snapshots[id(shadow)] = set(value)
        return shadow

    def _deque(self, value: collections.deque, source: Source) -> Any:
        self._sized(value, source)
        elements = [self.wrap(v, source.item(k)) for k, v in enumerate(value)]
        shadow = self._shadow(value, collections.deque(elements, value.maxlen), source)
        self.snapshots[id(shadow)] = list(elements)
        return shadow

    def whole(self, value: Any) -> Any:
        """The same value with every untouched list in it filled, before C code sees it."""
        self.check_readable(value)
        if self.unfilled:
            self._fill_inside(value, 0)
        return value

    def check_readable(self, value: Any) -> None:
        """Refuse objects from outside whose contents no guard covers."""
        if id(value) in self.opaque or (
            isinstance(value, UNGUARDED)
            and id(value) not in self.originals
            and id(value) not in self.created
            and id(value) not in modes.REAL
        ):
            raise GraphBreak(f"a {type(value).__name__} from outside is read")

    def _fill_inside(self, value: Any, depth: int) -> None:
        if type(value) is ListShadow and not value.filled:
            self.fill(value)
        if depth > 20 or not isinstance(value, (list, tuple, dict, set, collections.deque)):
            return
        elements = (*value, *value.values()) if isinstance(value, dict) else value
        for element in elements:
            if isinstance(element, (list, tuple, dict, set)):
                self._fill_inside(element, depth + 1)

    # Variables -------------------------------------------------------------------------------

    def read_cell(self, cell: types.CellType, source: Source | None) -> Any:
        """The content of a closure cell, MISSING if it is empty."""
        if id(cell) in self.new_cells:
            try:
                return cell.cell_contents
            except ValueError:
                return MISSING
        changed = self.variables.get((id(cell), None), MISSING)
        if changed is not MISSING:
            return MISSING if changed is DELETED else changed
        if source is not None:
            self.note(cell, source)
        else:
            source = self.sources.get(id(cell)) or self.constant(cell)
            self.sources.setdefault(id(cell), source)
        try:
            content = cell.cell_contents
        except ValueError:
            self.guard(source, "unset", "cell_contents")
            return MISSING
        return self.wrap(content, source.attribute("cell_contents"))

    def write_cell(self, cell: types.CellType, value: Any) -> None:
        if id(cell) in self.new_cells:
            if value is DELETED:
                del cell.cell_contents
            else:
                cell.cell_contents = value
            return
        self.variables[id(cell), None] = value
        self.effect(("cell", id(cell)), ("cell", self.keep(cell), None))

    def new_cell(self, value: Any = MISSING) -> types.CellType:
        cell = types.CellType() if value is MISSING else types.CellType(value)
        self.new_cells.add(id(cell))
        return self.note_created(cell)

    def read_global(self, names: dict, source: Source, name: str) -> Any:
        """A module variable, MISSING if there is none (builtins are not looked at)."""
        changed = self.variables.get((id(names), name), MISSING)
        if changed is not MISSING:
            return MISSING if changed is DELETED else changed
        if name not in names:
            if not names.get("__name__", "").startswith("flambeau"):
                self.guard(source, "missing", name)
            return MISSING
        value = names[name]
        return self.wrap_member(value, source.item(name), names.get("__name__", ""))

    def wrap_member(self, value: Any, source: Source, module: str) -> Any:
        """What a namespace holds; functions, classes and modules of trusted ones are constants."""
        top = module.partition(".")[0]
        trusted = top == "flambeau" or (top in trust.sys.stdlib_module_names and top != "__main__")
        if trusted and isinstance(value, (types.FunctionType, *BY_IDENTITY)):
            source = self.constant(value)
        return self.wrap(value, source)

    def write_global(self, names: dict, name: str, value: Any) -> None:
        self.variables[id(names), name] = value
        self.effect(("global", id(names), name), ("global", self.keep(names), name))

    def effect(self, key: tuple, record: tuple) -> None:
        """Remember a change; a later change of the same thing takes its place in the order."""
        self.effects.pop(key, None)
        self.effects[key] = record

    def call_later(self, function: Any, args: tuple, kwargs: dict) -> None:
        """A call without a result, made when the effects are replayed."""
        self.effect(
            ("call", len(self.effects), self.steps), ("call", (function, args, kwargs), None)
        )

    # Objects made by the frame ---------------------------------------------------------------

    def is_new(self, value: Any) -> bool:
        return id(value) in self.created

    def count_step(self) -> None:
        self.steps += 1
        if self.steps > STEP_LIMIT:
            raise SkipFrame("the frame runs too many instructions to be unrolled")

    def instance_dict(self, owner: Any) -> Any:
        """`vars(owner)`: the dictionary itself where the frame made the owner."""
        if self.is_new(owner):
            return self.note_created(owner.__dict__)
        key = ("vars", id(owner))
        found = self.shadows.get(key)  # type: ignore[call-overload]
        if found is None:
            found = self.shadows[key] = InstanceDict(owner)  # type: ignore[index]
            self.keep(owner)
        return found


READERS = {
    list: Session._list,
    tuple: Session._tuple,
    dict: Session._dict,
    collections.OrderedDict: Session._dict,
    collections.defaultdict: Session._dict,
    collections.Counter: Session._dict,
    set: Session._set,
    frozenset: Session._set,
    collections.deque: Session._deque,
    slice: Session._slice,
}
