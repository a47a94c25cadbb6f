"""Items, iteration, truth and operators on values, as the interpreter needs them."""

from __future__ import annotations

import collections
import functools
import operator
import types
from typing import Any

import numpy as np

from flambeau.capture import modes, trust
from flambeau.capture.attributes import Attributes
from flambeau.capture.breaks import GraphBreak, UserError, foreign
from flambeau.capture.bytecodes import VERSION
from flambeau.capture.interpreter.generators import Generator
from flambeau.capture.scalars import NUMBER_OPERATORS, computed
from flambeau.capture.session import Session
from flambeau.capture.values import (
    BY_IDENTITY,
    DELETED,
    MISSING,
    PLAIN,
    InstanceDict,
    ListShadow,
    is_python_defined,
    static,
)
from flambeau.core.spec import Size

ACTIVE_METHODS = (
    "__eq__ __hash__ __lt__ __gt__ __le__ __ge__ __len__ __iter__ __next__ __getitem__ "
    "__contains__ __bool__ __index__ __int__ __float__ __add__ __radd__ __array__ __length_hint__"
).split()
MOST_KEYS = 64
"""A number that changes is compared with so many keys of a dictionary."""
SEQUENCES = (list, ListShadow, tuple, str, bytes, range, collections.deque)
PLAIN_OBJECTS = (
    *PLAIN,
    slice,
    np.generic,
    np.dtype,
    dict,
    set,
    frozenset,
    *SEQUENCES,
    types.MappingProxyType,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
    zip,
    map,
    filter,
    enumerate,
    reversed,
    BaseException,
    types.TracebackType,
)


def is_active(value: Any) -> bool:
    """Whether C code that handles the object could run Python code of its class."""
    cls = type(value)
    if isinstance(value, (int, float, Size)) or not cls.__flags__ & (
        1 << 9
    ):  # not a heap type: nothing in it is Python code
        return False
    if isinstance(value, (type, types.FunctionType, Generator)):
        return False
    return any(is_python_defined(cls, name) for name in ACTIVE_METHODS)


class Data:
    """The part of the interpreter that works on data."""

    session: Session
    attributes: Attributes

    # What a value is -------------------------------------------------------------------------

    def type_of(self, value: Any) -> type:
        """`type(value)` as the program would see it."""
        kind = type(value)
        if kind is ListShadow:
            return list
        if kind is InstanceDict:
            return dict
        if kind is Generator:
            return types.GeneratorType
        return self.session.scalars.type_of(value)

    def is_plain_object(self, value: Any) -> bool:
        """An object of a built-in type, whose attributes a program cannot change."""
        kind = type(value)
        if self.session.scalars.is_symbolic(value):
            return True
        if kind is Generator or kind in PLAIN_OBJECTS or kind.__name__ == "Size":
            return True
        if isinstance(value, (np.generic, type(iter([])), types.MethodWrapperType)):
            return True
        if kind.__module__ in ("builtins", "_collections_abc", "itertools", "functools"):
            return kind is not object and not isinstance(value, functools.partial)
        return False

    def identical(self, left: Any, right: Any) -> bool:
        """`left is right`; if not, that becomes a guard."""
        if left is right:
            return True
        self.session.tell_apart(left, right)
        return False

    def special(self, owner: Any, name: str) -> Any:
        """The bound special method of an object, None if its class has none."""
        cls = type(owner)
        member = static(cls, name)
        if member is None:
            return None
        if isinstance(member, types.FunctionType):
            return types.MethodType(self.attributes.class_member(cls, name, member), owner)
        if cls is InstanceDict:
            return self.attributes.get(owner, name)
        if isinstance(member, (staticmethod, classmethod)):
            return foreign(member.__get__, owner, cls)
        return foreign(getattr, owner, name)

    def python_special(self, owner: Any, name: str) -> Any:
        """The bound special method if Python code implements it, else None."""
        cls = type(owner)
        if self.session.tensors.is_tensor(owner) or cls is Generator:
            return None
        member = static(cls, name)
        if not isinstance(member, types.FunctionType):
            return None
        return types.MethodType(self.attributes.class_member(cls, name, member), owner)

    def truth(self, value: Any) -> bool:
        """`bool(value)`."""
        if value is True or value is False or value is None:
            return value is True
        if self.session.tensors.is_tensor(value):
            return self.session.tensors.truth(value)
        if isinstance(value, InstanceDict):
            return bool(self.attributes.names(value.owner))
        if self.session.scalars.is_symbolic(value):
            return foreign(bool, value)
        for name in ("__bool__", "__len__"):
            method = self.python_special(value, name)
            if method is not None:
                return self.truth(self.call(method, ()))
        return foreign(bool, self.session.whole(value))

    def settled_key(self, container: Any, key: Any) -> Any:
        """A number that changes becomes the key that it equals, or stays none of the keys."""
        if not self.session.scalars.is_symbolic(key) or len(container) > MOST_KEYS:
            return key
        for known in container:
            if type(known) in (int, float, bool) and self.truth(computed("eq", key, known)):
                return known
        return key.term.hint

    def check_key(self, container: Any, key: Any) -> None:
        """C code will look the key up: among objects it must stay another one, or the same."""
        self.check_hashable(key)
        if type(key) not in PLAIN and self.session.source(key) is not None:
            for other in container:
                if other is not key:
                    self.session.tell_apart(key, other)

    def check_hashable(self, key: Any) -> None:
        """Keys whose hash or equality is Python code would run it natively."""
        if self.session.scalars.is_symbolic(key):
            raise GraphBreak("a number that changes is used as a key")
        if isinstance(key, tuple):
            for element in key:
                self.check_hashable(element)
        elif not self.session.tensors.is_tensor(key) and (
            is_python_defined(type(key), "__hash__") or is_python_defined(type(key), "__eq__")
        ):
            if type(type(key)).__name__ in ("EnumType", "EnumMeta"):
                return
            if trust.is_native_class(type(key)):
                return
            raise GraphBreak(f"{type(key).__name__} is used as a key")

    def check_inert(self, value: Any, depth: int = 0) -> None:
        """Refuse objects whose Python code C code might run."""
        self.session.check_readable(value)
        if depth < 6 and type(value) in (list, tuple, dict, set, ListShadow):
            elements = (*value, *value.values()) if isinstance(value, dict) else value
            for element in elements:
                self.check_inert(element, depth + 1)
        elif isinstance(value, InstanceDict) or (
            (is_active(value) or not self._is_known(value))
            and not self.session.tensors.is_tensor(value)
        ):
            raise GraphBreak(f"{type(value).__name__} is handed to a C function")

    def _is_known(self, value: Any) -> bool:
        """Types whose behaviour in C code depends on nothing that guards do not cover."""
        kind = type(value)
        if kind.__flags__ & (1 << 9) or self.is_plain_object(value) or kind is ListShadow:
            return True
        return isinstance(value, (*BY_IDENTITY, types.FunctionType, types.MethodType, super))

    # Items -----------------------------------------------------------------------------------

    def get_item(self, owner: Any, key: Any) -> Any:
        """`owner[key]`."""
        session = self.session
        if session.tensors.is_tensor(owner):
            return session.tensors.native(operator.getitem, (owner, key), {})
        if isinstance(owner, InstanceDict):
            value = self.attributes.own(owner.owner, key) if isinstance(key, str) else MISSING
            if value is MISSING:
                raise UserError(KeyError(key))
            return value
        if isinstance(owner, type):
            return self._class_item(owner, key)
        method = self.python_special(owner, "__getitem__")
        if method is not None:
            return self.call(method, (key,))
        if isinstance(owner, dict):
            session.check_readable(owner)
            if session.scalars.is_symbolic(key):
                settled = self.settled_key(owner, key)
                if settled in owner or not hasattr(type(owner), "__missing__"):
                    key = settled
            self.check_key(owner, key)
            if key not in owner and is_python_defined(type(owner), "__missing__"):
                raise GraphBreak("__missing__ of a dictionary")
            if isinstance(owner, collections.defaultdict) and key not in owner:
                return self._default_item(owner, key)
        elif not isinstance(owner, SEQUENCES) and not self.is_plain_object(owner):
            raise GraphBreak(f"indexing of {type(owner).__name__}")
        found = foreign(operator.getitem, session.whole(owner), self.index(key))
        return session.note_created(found) if isinstance(key, slice) else found

    def index(self, key: Any) -> Any:
        """A key as C code needs it: symbolic integers become the number they are now."""
        return self.session.scalars.concrete(key)

    def _class_item(self, cls: type, key: Any) -> Any:
        method = static(type(cls), "__getitem__")
        if isinstance(method, types.FunctionType):
            return foreign(operator.getitem, cls, key)
        return foreign(operator.getitem, cls, key)

    def _default_item(self, owner: collections.defaultdict, key: Any) -> Any:
        if owner.default_factory is None:
            raise UserError(KeyError(key))
        owner[key] = value = self.call(owner.default_factory, ())
        return value

    def set_item(self, owner: Any, key: Any, value: Any) -> None:
        """`owner[key] = value`."""
        session = self.session
        if session.tensors.is_tensor(owner):
            session.tensors.native(operator.setitem, (owner, key, value), {})
            return
        if isinstance(owner, InstanceDict):
            self.attributes.set_own(owner.owner, key, value)
            return
        method = self.python_special(owner, "__setitem__")
        if method is not None:
            self.call(method, (key, value))
            return
        self._writable(owner)
        if isinstance(owner, dict):
            self.check_hashable(key)
        foreign(operator.setitem, session.whole(owner), self.index(key), value)

    def delete_item(self, owner: Any, key: Any) -> None:
        """`del owner[key]`."""
        if isinstance(owner, InstanceDict):
            if self.attributes.own(owner.owner, key) is MISSING:
                raise UserError(KeyError(key))
            self.attributes.generic_delete(owner.owner, key)
            return
        method = self.python_special(owner, "__delitem__")
        if method is not None:
            self.call(method, (key,))
            return
        self._writable(owner)
        if isinstance(owner, dict):
            self.check_hashable(key)
        foreign(operator.delitem, self.session.whole(owner), self.index(key))

    def _writable(self, owner: Any) -> None:
        """Only containers that are shadows or were made by the frame may change for real."""
        session = self.session
        if id(owner) in session.originals or session.is_new(owner) or id(owner) in modes.REAL:
            return
        raise GraphBreak(f"{type(owner).__name__} of unknown origin is changed")

    def contains(self, container: Any, value: Any) -> bool:
        """`value in container`."""
        if isinstance(container, InstanceDict):
            return self.attributes.own(container.owner, value) is not MISSING
        method = self.python_special(container, "__contains__")
        if method is not None:
            return self.truth(self.call(method, (value,)))
        if self.python_special(container, "__iter__") is not None or isinstance(
            container, Generator
        ):
            return any(self._equal(item, value) for item in self.listed(container))
        self.session.check_readable(container)
        if isinstance(container, (dict, set, frozenset)):
            value = self.settled_key(container, value)
            self.check_key(container, value)
            return foreign(operator.contains, container, value)
        if isinstance(container, (list, tuple, ListShadow, collections.deque)):
            return any(self._equal(item, value) for item in self.session.whole(container))
        if isinstance(container, type):
            return foreign(operator.contains, container, value)
        self.check_inert(value)
        return foreign(operator.contains, container, value)

    def _equal(self, left: Any, right: Any) -> bool:
        if left is right:
            return True
        return self.truth(self.compare(operator.eq, left, right, "__eq__", "__eq__"))

    # Iteration -------------------------------------------------------------------------------

    def iterator(self, value: Any) -> Any:
        """`iter(value)`."""
        if isinstance(value, Generator):
            return value
        if isinstance(value, InstanceDict):
            return iter(self.attributes.names(value.owner))
        if self.session.tensors.is_tensor(value):
            return iter(list(self.session.tensors.native(iter, (value,), {})))
        if isinstance(value, type):
            method = static(type(value), "__iter__")
            if isinstance(method, types.FunctionType):
                return self.iterator(self.call(method, (value,)))
        method = self.python_special(value, "__iter__")
        if method is not None:
            return self.call(method, ())
        if static(type(value), "__iter__") is None and self.python_special(value, "__getitem__"):
            return self._by_index(value)
        self._own_iterator(value)
        return self.session.note_created(foreign(iter, self.session.whole(value)))

    def _by_index(self, value: Any) -> Any:
        items: list[Any] = []
        while True:
            try:
                items.append(self.get_item(value, len(items)))
            except UserError as error:
                if isinstance(error.value, IndexError):
                    return iter(items)
                raise

    def _own_iterator(self, value: Any) -> None:
        """An iterator that existed before the frame cannot be advanced before the frame runs."""
        if hasattr(value, "__next__") and not self.session.is_new(value):
            if self.session.source(value) is not None:
                kind = type(value).__name__
                raise GraphBreak(f"a {kind} made outside is consumed", "Loop over a list.")
        known = self.is_plain_object(value) or isinstance(value, (*SEQUENCES, dict, set))
        if not known and not self.session.is_new(value):
            raise GraphBreak(f"iteration over {type(value).__name__}")

    def next_of(self, iterator: Any, stop: bool = True) -> Any:
        """The next item; at the end MISSING, or the program's StopIteration if not `stop`."""
        self.session.count_step()
        if isinstance(iterator, Generator):
            item, result = iterator.step(None)
            if item is MISSING and not stop:
                raise UserError(StopIteration(result))
            return item
        method = self.python_special(iterator, "__next__")
        try:
            if method is not None:
                return self.call(method, ())
            self._own_iterator(iterator)
            return foreign(next, iterator)
        except UserError as error:
            if stop and isinstance(error.value, StopIteration):
                return MISSING
            raise

    def listed(self, value: Any, limit: int | None = None) -> list[Any]:
        """A list of the items, at most `limit`."""
        if type(value) in (list, tuple, ListShadow) and limit is None:
            return list(self.session.whole(value))
        iterator, items = self.iterator(value), []
        while limit is None or len(items) < limit:
            item = self.next_of(iterator)
            if item is MISSING:
                break
            items.append(item)
        return items

    def mapping(self, value: Any) -> dict[Any, Any]:
        """The entries of a mapping."""
        if isinstance(value, InstanceDict):
            names = self.attributes.names(value.owner)
            return {n: self.attributes.own(value.owner, n) for n in names}
        self.session.check_readable(value)
        if isinstance(value, dict) and not is_active(value):
            return value
        if not hasattr(type(value), "keys"):
            kind = type(value).__name__
            raise UserError(TypeError(f"argument after ** must be a mapping, not {kind}"))
        keys = self.listed(self.call(self.attributes.get(value, "keys"), ()))
        return {key: self.get_item(value, key) for key in keys}

    def finish_send(self, frame: Any, value: Any) -> None:
        """A delegated generator has returned."""
        if VERSION < (3, 12):
            frame.stack[-1] = value
        else:
            frame.stack.append(value)

    def stop_iteration_error(self, error: BaseException) -> BaseException:
        if isinstance(error, StopIteration):
            made = RuntimeError("generator raised StopIteration")
            made.__cause__ = error
            return made
        return error

    # Operators -------------------------------------------------------------------------------

    def unary(self, word: str, value: Any) -> Any:
        """`-value`, `+value` or `~value`."""
        function = getattr(operator, word)
        if self.session.scalars.is_symbolic(value):
            return foreign(function, value)
        if self.session.tensors.is_tensor(value):
            return self.session.tensors.native(function, (value,), {})
        method = self.python_special(value, f"__{word}__")
        return self.call(method, ()) if method is not None else foreign(function, value)

    def binary(
        self, function: Any, left: Any, right: Any, method: str, reflected: str, inplace: str | None
    ) -> Any:
        """A binary operator, by the methods of both operands in Python's order."""
        tensors = self.session.tensors
        if tensors.is_tensor(left) or tensors.is_tensor(right):
            return tensors.native(function, (left, right), {})
        if type(left) in PLAIN and type(right) in PLAIN:
            return foreign(function, left, right)
        if self.session.scalars.any((left, right)):
            return self._number_operator(function, left, right)
        tries = [(left, right, inplace)] if inplace else []
        pair = [(left, right, method), (right, left, reflected)]
        if type(left) is not type(right) and isinstance(right, type(left)):
            pair.reverse()
        for owner, other, name in (*tries, *pair):
            bound = self.python_special(owner, name)
            if bound is None:
                continue
            value = self.call(bound, (other,))
            if value is not NotImplemented:
                return value
        if inplace and isinstance(left, (list, dict, set, collections.deque)):
            self._writable(left)
            if isinstance(left, (list, collections.deque)) and function is operator.iadd:
                left.extend(self.listed(right))
                return left
        self.check_inert(left)
        self.check_inert(right)
        made = foreign(function, self.session.whole(left), self.session.whole(right))
        return made if type(made) in PLAIN else self.session.note_created(made)

    def _number_operator(self, function: Any, left: Any, right: Any) -> Any:
        """An operator on symbolic numbers; with anything but numbers they must be known."""
        scalars = self.session.scalars
        left, right = self._python_number(left), self._python_number(right)
        name = NUMBER_OPERATORS.get(function.__name__)
        if name is None or not {self.type_of(left), self.type_of(right)} <= {int, float}:
            return foreign(function, scalars.concrete(left), scalars.concrete(right))
        # Not through the operator: a float on the left would read the integer inside.
        return foreign(computed, name, left, right)

    def _python_number(self, value: Any) -> Any:
        """An array scalar that computes as Python's numbers do, as one of them."""
        if isinstance(value, (np.float64, np.integer)):
            self.session.check_readable(value)
            return value.item()
        return value

    def compare(self, function: Any, left: Any, right: Any, method: str, reflected: str) -> Any:
        """A comparison, by the methods of both operands in Python's order."""
        tensors = self.session.tensors
        if tensors.is_tensor(left) or tensors.is_tensor(right):
            if left is None or right is None:
                return foreign(function, left, right)
            return tensors.native(function, (left, right), {})
        if type(left) in PLAIN and type(right) in PLAIN:
            return foreign(function, left, right)
        if self.session.scalars.any((left, right)):
            return self._number_operator(function, left, right)
        pair = [(left, right, method), (right, left, reflected)]
        if type(left) is not type(right) and isinstance(right, type(left)):
            pair.reverse()
        for owner, other, name in pair:
            bound = self.python_special(owner, name)
            if bound is None and name == "__ne__":
                equal = self.python_special(owner, "__eq__")
                value = self.call(equal, (other,)) if equal else NotImplemented
                value = value if value is NotImplemented else not self.truth(value)
            else:
                value = self.call(bound, (other,)) if bound is not None else NotImplemented
            if value is not NotImplemented:
                return value
        self.check_inert(self.session.whole(left))
        self.check_inert(self.session.whole(right))
        if isinstance(left, InstanceDict) or isinstance(right, InstanceDict):
            raise GraphBreak("comparison of an instance dictionary")
        self.identical(left, right)
        return foreign(function, left, right)

    def call(self, function: Any, args: tuple, kwargs: dict | None = None) -> Any:
        raise AssertionError  # the interpreter's own

    # Instance dictionaries -------------------------------------------------------------------

    def dict_method(self, owner: InstanceDict, name: str) -> Any:
        """A method of `vars(object)`."""
        method = getattr(InstanceDictMethods(self, owner.owner), name, None)
        if method is None or name.startswith("_") and not name.startswith("__"):
            raise GraphBreak(f"vars(...).{name}")
        return method


class InstanceDictMethods:
    """What a program may do with an instance dictionary. Called for real by the interpreter."""

    def __init__(self, run: Data, owner: Any):
        self.run, self.owner = run, owner

    def get(self, key: Any, default: Any = None) -> Any:
        value = self.run.attributes.own(self.owner, key)
        return default if value is MISSING else value

    def __getitem__(self, key: Any) -> Any:
        return self.run.get_item(InstanceDict(self.owner), key)

    def __contains__(self, key: Any) -> bool:
        return self.run.attributes.own(self.owner, key) is not MISSING

    def __len__(self) -> int:
        return len(self.run.attributes.names(self.owner))

    def keys(self) -> list[str]:
        return self.run.session.note_created(self.run.attributes.names(self.owner))

    def items(self) -> list[tuple[str, Any]]:
        found = list(self.run.mapping(InstanceDict(self.owner)).items())
        return self.run.session.note_created(found)

    def values(self) -> list[Any]:
        found = list(self.run.mapping(InstanceDict(self.owner)).values())
        return self.run.session.note_created(found)

    def copy(self) -> dict[str, Any]:
        made = dict(self.run.mapping(InstanceDict(self.owner)))
        return self.run.session.note_created(made)

    def update(self, *others: Any, **named: Any) -> None:
        for other in (*others, named):
            for key, value in self.run.mapping(other).items():
                self.run.attributes.set_own(self.owner, key, value)

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self.run.attributes.set_own(self.owner, key, default)
        return self.run.attributes.own(self.owner, key)

    def pop(self, key: str, *default: Any) -> Any:
        value = self.run.attributes.own(self.owner, key)
        if value is MISSING:
            if default:
                return default[0]
            raise KeyError(key)
        if self.run.session.is_new(self.owner):
            self.owner.__dict__.pop(key)
        else:
            self.run.attributes.set_own(self.owner, key, DELETED)
        return value
