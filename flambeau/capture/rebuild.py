"""From the state at the end of a capture to Python text that makes it real.

Values that existed before are read by their paths, tensors come from the graph, and everything that
the frame made is made again, each object once. What cannot be made again (a suspended generator, an
open handle) raises `Unrebuildable`, and the capture then stops before the object is created.
"""

from __future__ import annotations

import collections
import functools
import gc
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau.capture import trust
from flambeau.capture.breaks import NeedGradients
from flambeau.capture.callbacks import Callback
from flambeau.capture.guards import Wanted, Writer
from flambeau.capture.interpreter.generators import Generator
from flambeau.capture.interpreter.run import Items
from flambeau.capture.session import Session
from flambeau.capture.values import (
    BY_IDENTITY,
    NULL,
    PLAIN,
    UNREAD,
    InstanceDict,
    ListShadow,
    Unseen,
    static,
)


class Unrebuildable(BaseException):
    """The value cannot be made by code."""

    def __init__(self, value: Any, why: str = ""):
        super().__init__(why or f"a {type(value).__name__} object cannot be made again")
        self.value = value


PENDING = "<being built>"


class Builder:
    """Writes expressions for values. `reads` is written before the graph runs, `body` after."""

    def __init__(self, session: Session, reads: Wanted, tensor: Callable, number: Callable):
        self.session, self.reads = session, reads
        self.body = Writer()
        self.body.names, self.body.constants = reads.names, reads.constants
        self.tensor, self.number = tensor, number
        self.memo: dict[int, str] = {}
        self.tasks: list[Callable[[], None]] = []

    def constant(self, value: Any) -> str:
        return self.reads.constant(value)

    def finish(self) -> None:
        """Fill the objects that had to exist before their contents."""
        while self.tasks:
            self.tasks.pop(0)()

    def expression(self, value: Any) -> str:
        """Text that gives the value in the running program."""
        if type(value) is Unseen:
            return self.reads.path(value.source)
        if value is None or isinstance(value, bool) or value is Ellipsis:
            return repr(value)
        if value is NULL:
            raise Unrebuildable(value)
        if value is UNREAD:
            raise NeedGradients
        known = self.memo.get(id(value))
        if known is PENDING:
            raise Unrebuildable(value, "a structure that contains itself")
        if known is not None:
            return known
        session = self.session
        if session.scalars is not None and session.scalars.is_symbolic(value):
            return self.number(value)
        if session.tensors.is_tensor(value):
            return self.tensor(value)
        source = session.sources.get(id(value))
        if source is not None:
            return self.reads.path(source)
        bound = isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType))
        if not bound and (type(value) in PLAIN or isinstance(value, BY_IDENTITY)):
            return self._held(value)
        return self._made(value)

    def _held(self, value: Any) -> str:
        if isinstance(value, type) and self.session.is_new(value):
            raise Unrebuildable(value)
        return self.constant(value)

    def _made(self, value: Any) -> str:
        self.memo[id(value)] = PENDING
        try:
            maker = MAKERS.get(type(value)) or _maker(self, value)
            name = maker(self, value)
        except BaseException:
            del self.memo[id(value)]
            raise
        self.memo[id(value)] = name
        return name

    def name(self, value: Any, text: str) -> str:
        """Bind an expression to a variable that stands for the object from here on."""
        name = self.body.fresh(text, "n")
        self.memo[id(value)] = name
        return name

    def joined(self, values: Any) -> str:
        return ", ".join(self.expression(v) for v in values)

    # Containers ------------------------------------------------------------------------------

    def make_list(self, value: list) -> str:
        return self.name(value, f"[{self.joined(value)}]")

    def make_tuple(self, value: tuple) -> str:
        parts = [self.expression(v) for v in tuple.__iter__(value)]
        text = "(" + "".join(p + ", " for p in parts) + ")"
        return text if type(value) is tuple else self.name(value, self._subclass(value, text))

    def _subclass(self, value: tuple, text: str) -> str:
        return f"{self.constant(tuple.__new__)}({self.constant(type(value))}, {text})"

    def entries(self, value: dict) -> str:
        pairs = [f"{self.expression(k)}: {self.expression(v)}" for k, v in dict.items(value)]
        return "{" + ", ".join(pairs) + "}"

    def make_dict(self, value: dict) -> str:
        return self.name(value, self.entries(value))

    def make_ordered(self, value: Any) -> str:
        name = self.name(value, f"{self.constant(type(value))}({self.entries(value)})")
        self.tasks.append(lambda: self._attributes(name, value))
        return name

    def make_default(self, value: collections.defaultdict) -> str:
        factory = self.expression(value.default_factory)
        kind = self.constant(collections.defaultdict)
        return self.name(value, f"{kind}({factory}, {self.entries(value)})")

    def make_set(self, value: Any) -> str:
        return self.name(value, f"{self.constant(type(value))}([{self.joined(value)}])")

    def make_deque(self, value: collections.deque) -> str:
        kind = self.constant(collections.deque)
        return self.name(value, f"{kind}([{self.joined(value)}], {value.maxlen})")

    def make_slice(self, value: slice) -> str:
        return f"slice({self.joined((value.start, value.stop, value.step))})"

    # Functions -------------------------------------------------------------------------------

    def make_cell(self, value: types.CellType) -> str:
        if id(value) not in self.session.new_cells:
            return self.constant(value)
        name = self.name(value, f"{self.constant(types.CellType)}()")

        def fill() -> None:
            try:
                content = value.cell_contents
            except ValueError:
                return
            self.body.line(f"{name}.cell_contents = {self.expression(content)}")

        self.tasks.append(fill)
        return name

    def make_function(self, value: types.FunctionType) -> str:
        if not self.session.is_new(value):
            return self.constant(value)
        cells = value.__closure__
        closure = "None" if cells is None else f"({self.joined(cells)},)"
        kind, code = self.constant(types.FunctionType), self.constant(value.__code__)
        space = self.constant(value.__globals__)
        head = f"{kind}({code}, {space}, {value.__name__!r}, None, {closure})"
        name = self.name(value, head)
        self.body.line(f"{name}.__qualname__ = {value.__qualname__!r}")

        def fill() -> None:
            for part in ("__defaults__", "__kwdefaults__", "__annotations__"):
                held = getattr(value, part)
                if held:
                    self.body.line(f"{name}.{part} = {self.expression(held)}")
            if value.__module__ != value.__globals__.get("__name__"):
                self.body.line(f"{name}.__module__ = {value.__module__!r}")
            if value.__doc__ != (value.__code__.co_consts or (None,))[0]:
                self.body.line(f"{name}.__doc__ = {value.__doc__!r}")
            for key, held in value.__dict__.items():
                self.body.line(f"{name}.__dict__[{key!r}] = {self.expression(held)}")

        self.tasks.append(fill)
        return name

    def make_method(self, value: types.MethodType) -> str:
        kind = self.constant(types.MethodType)
        parts = self.joined((value.__func__, value.__self__))
        return self.name(value, f"{kind}({parts})")

    def make_builtin_method(self, value: Any) -> str:
        owner = value.__self__
        if owner is None or isinstance(owner, (type, types.ModuleType)):
            return self.constant(value)
        return f"{self.expression(owner)}.{value.__name__}"

    def make_dict_view(self, value: Any) -> str:
        (owner,) = (v for v in gc.get_referents(value) if isinstance(v, dict))
        names = {"dict_keys": "keys", "dict_values": "values", "dict_items": "items"}
        return f"{self.expression(owner)}.{names[type(value).__name__.removeprefix('o')]}()"

    def make_partial(self, value: functools.partial) -> str:
        kind = self.constant(functools.partial)
        args = "".join(", " + self.expression(a) for a in value.args)
        text = f"{kind}({self.expression(value.func)}{args}, **{self.entries(value.keywords)})"
        return self.name(value, text)

    def make_super(self, value: super) -> str:
        return f"super({self.joined((value.__thisclass__, value.__self__))})"

    def make_callback(self, value: Callback) -> str:
        return self.expression(value.function)

    def make_items(self, value: Items) -> str:
        return self.expression(value.iterator)

    def make_vars(self, value: InstanceDict) -> str:
        return f"{self.expression(value.owner)}.__dict__"

    # Objects ---------------------------------------------------------------------------------

    def make_exception(self, value: BaseException) -> str:
        kind = self.constant(type(value))
        name = self.name(value, f"{kind}.__new__({kind}, {self.joined(value.args)})")
        self.body.line(f"{name}.args = ({''.join(self.expression(a) + ', ' for a in value.args)})")
        self.tasks.append(lambda: self._attributes(name, value))
        return name

    def make_iterator(self, value: Any) -> str:
        """Built-in iterators say how to make them again."""
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                reduced = value.__reduce__()
            except TypeError:
                raise Unrebuildable(value) from None
        if not isinstance(reduced, tuple):
            raise Unrebuildable(value)
        head = f"{self.expression(reduced[0])}({self.joined(reduced[1])})"
        name = self.name(value, head)
        if len(reduced) > 2 and reduced[2] is not None:
            self.body.line(f"{name}.__setstate__({self.expression(reduced[2])})")
        return name

    def make_object(self, value: Any) -> str:
        cls = type(value)
        if isinstance(value, (np.generic, np.dtype)):
            return self.constant(value)
        if not self.session.is_new(value):
            raise Unrebuildable(value, f"a {cls.__name__} object of unknown origin")
        if static(cls, "__new__") is not object.__new__ and not _plain_layout(cls):
            raise Unrebuildable(value)
        if isinstance(value, dict):
            kind = self.constant(dict if not hasattr(value, "move_to_end") else type(value))
            name = self.name(value, f"{self.constant(cls)}.__new__({self.constant(cls)})")
            self.tasks.append(
                lambda: self.body.line(f"{kind}.update({name}, {self.entries(value)})")
            )
        elif isinstance(value, list):
            name = self.name(value, f"{self.constant(cls)}.__new__({self.constant(cls)})")
            self.tasks.append(
                lambda: self.body.line(f"list.extend({name}, [{self.joined(list(value))}])")
            )
        else:
            new = self.constant(object.__new__)
            name = self.name(value, f"{new}({self.constant(cls)})")
        self.tasks.append(lambda: self._attributes(name, value))
        return name

    def _attributes(self, name: str, value: Any) -> None:
        own = getattr(value, "__dict__", None)
        if own:
            self.body.line(f"{name}.__dict__.update({self.entries(own)})")
        put = self.constant(object.__setattr__)
        for base in type(value).__mro__:
            for slot, member in list(base.__dict__.items()):
                if isinstance(member, types.MemberDescriptorType) and base is not BaseException:
                    try:
                        held = member.__get__(value)
                    except AttributeError:
                        continue
                    self.body.line(f"{put}({name}, {slot!r}, {self.expression(held)})")


def _plain_layout(cls: type) -> bool:
    """A class whose objects are an object, a dict or a list with attributes."""
    new = static(cls, "__new__")
    if new in (dict.__new__, list.__new__, collections.OrderedDict.__new__):
        return True
    python = isinstance(new, staticmethod)
    return python and not issubclass(cls, (tuple, str, int, float, bytes, type))


def _refuse(builder: Builder, value: Any) -> str:
    raise Unrebuildable(value)


def _shadow(builder: Builder, value: Any) -> str:
    raise AssertionError("a shadow has a source")


MAKERS: dict[type, Callable[[Builder, Any], str]] = {
    list: Builder.make_list,
    ListShadow: _shadow,
    tuple: Builder.make_tuple,
    dict: Builder.make_dict,
    collections.OrderedDict: Builder.make_ordered,
    collections.Counter: Builder.make_ordered,
    collections.defaultdict: Builder.make_default,
    collections.deque: Builder.make_deque,
    set: Builder.make_set,
    frozenset: Builder.make_set,
    slice: Builder.make_slice,
    types.CellType: Builder.make_cell,
    types.FunctionType: Builder.make_function,
    types.MethodType: Builder.make_method,
    types.BuiltinFunctionType: Builder.make_builtin_method,
    types.MethodWrapperType: Builder.make_builtin_method,
    functools.partial: Builder.make_partial,
    super: Builder.make_super,
    type({}.keys()): Builder.make_dict_view,
    type({}.values()): Builder.make_dict_view,
    type({}.items()): Builder.make_dict_view,
    type(collections.OrderedDict().keys()): Builder.make_dict_view,
    type(collections.OrderedDict().values()): Builder.make_dict_view,
    type(collections.OrderedDict().items()): Builder.make_dict_view,
    Callback: Builder.make_callback,
    Items: Builder.make_items,
    InstanceDict: Builder.make_vars,
    Generator: _refuse,
    types.TracebackType: _refuse,
}


def _maker(builder: Builder, value: Any) -> Callable[[Builder, Any], str]:
    if isinstance(value, tuple):
        return Builder.make_tuple
    if isinstance(value, BaseException):
        return Builder.make_exception
    if type(value).__module__ in ("builtins", "itertools") and hasattr(value, "__next__"):
        return Builder.make_iterator
    if trust.is_native_class(type(value)) and not builder.session.is_new(value):
        return lambda b, v: b.constant(v)
    return Builder.make_object
