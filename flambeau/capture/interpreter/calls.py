"""Calls: which callables are interpreted, which run for real, and which end the capture."""

from __future__ import annotations

import collections
import functools
import itertools
import types
from typing import Any

import numpy as np

from flambeau.autograd.node import Node
from flambeau.capture import trust
from flambeau.capture.arguments import bound
from flambeau.capture.attributes import Attributes
from flambeau.capture.breaks import GraphBreak, SkipFrame, UserError, foreign
from flambeau.capture.callbacks import Callback, for_c_code, is_interpreted
from flambeau.capture.interpreter.data import InstanceDictMethods, is_active
from flambeau.capture.interpreter.frame import Frame
from flambeau.capture.interpreter.generators import Generator
from flambeau.capture.session import Session
from flambeau.capture.values import MISSING, InstanceDict, ListShadow, is_python_defined, static

GENERATOR, COROUTINE_LIKE = 0x20, 0x80 | 0x200
DEEPEST = 120
"""Nested interpreted calls; deeper recursion runs as plain Python."""

PURE_MODULES = frozenset(
    "math cmath _operator operator itertools _collections _functools builtins _bisect _string "
    "_struct _sre unicodedata _heapq".split()
)
STORES = {
    list: ("append", "insert", "extend", "clear", "pop", "reverse", "copy", "__len__"),
    dict: (
        "get setdefault pop update items keys values copy clear popitem move_to_end __len__ "
        "__contains__ __getitem__ __setitem__ __iter__"
    ).split(),
    collections.deque: (
        "append appendleft extend extendleft pop popleft clear copy rotate __len__".split()
    ),
    set: ("add", "discard", "remove", "clear", "copy", "pop", "update"),
}
"""Methods that only move references, by the type of the receiver."""
KEYED = ("get", "setdefault", "pop", "__contains__", "__getitem__", "__setitem__", "add", "discard")
RECEIVERS = (
    list,
    tuple,
    dict,
    set,
    frozenset,
    collections.deque,
    str,
    bytes,
    int,
    float,
    complex,
    bool,
    range,
    slice,
    type(None),
    Generator,
    np.generic,
    BaseException,
)
SAFE_TYPES = (
    *(int, float, bool, complex, str, bytes, slice, range, object, bytearray),
    *(collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter),
    *(itertools.chain, itertools.product, itertools.repeat, itertools.islice, itertools.cycle),
    *(itertools.count, itertools.zip_longest, itertools.combinations, itertools.permutations),
    *(itertools.accumulate, itertools.starmap, itertools.takewhile, itertools.dropwhile),
    *(itertools.groupby, itertools.pairwise, itertools.compress, itertools.filterfalse),
    functools.partial,
    types.SimpleNamespace,
    types.MappingProxyType,
    types.MethodType,
    np.dtype,
)
WITH_CALLBACKS = {
    *(itertools.accumulate, itertools.starmap, itertools.takewhile, itertools.dropwhile),
    *(itertools.groupby, itertools.filterfalse, map, filter),
}


class Calls:
    """The part of the interpreter that calls."""

    session: Session
    attributes: Attributes
    handlers: dict[int, Any]

    def call_from(self, frame: Frame, function: Any, args: tuple, kwargs: dict) -> Any:
        """A call written in a frame: some built-ins look at their caller."""
        handler = self.frame_handlers.get(id(function))
        if handler is not None:
            return handler(self, frame, args, kwargs)
        return self.call(function, args, kwargs)

    def call(self, function: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Call anything."""
        kwargs = kwargs or {}
        handler = self.handlers.get(id(function))
        if handler is not None:
            return handler(self, *args, **kwargs)
        if isinstance(function, types.FunctionType):
            return self.call_function(function, args, kwargs)
        if isinstance(function, types.MethodType):
            return self._call_method(function, args, kwargs)
        if isinstance(function, type):
            return self.construct(function, args, kwargs)
        if isinstance(function, functools.partial):
            part = functools.partial(self.attributes.get, function)
            merged = {**part("keywords"), **kwargs}
            return self.call(part("func"), (*part("args"), *args), merged)
        if isinstance(
            function,
            (
                types.BuiltinFunctionType,
                types.MethodDescriptorType,
                types.WrapperDescriptorType,
                types.MethodWrapperType,
                types.ClassMethodDescriptorType,
            ),
        ):
            return self.call_builtin(function, args, kwargs)
        if isinstance(function, np.ufunc):
            return self._call_ufunc(function, args, kwargs)
        return self._call_object(function, args, kwargs)

    def _call_method(self, method: types.MethodType, args: tuple, kwargs: dict) -> Any:
        owner = method.__self__
        if isinstance(owner, (InstanceDictMethods, Generator)):
            return foreign(method, *args, **kwargs)
        return self.call(method.__func__, (owner, *args), kwargs)

    def _call_object(self, function: Any, args: tuple, kwargs: dict) -> Any:
        cls = type(function)
        if getattr(cls, "inlined", False) is True:
            return self.call(function.function, args, kwargs)
        if cls is functools._lru_cache_wrapper:
            return self.call(function.__wrapped__, args, kwargs)
        member = static(cls, "__call__")
        if member is None:
            raise UserError(TypeError(f"{cls.__name__!r} object is not callable"))
        if isinstance(member, types.FunctionType):
            member = self.attributes.class_member(cls, "__call__", member)
            return self.call(member, (function, *args), kwargs)
        if callable(function) and hasattr(cls, "__wrapped_call__"):
            return foreign(function, *args, **kwargs)
        raise GraphBreak(f"call of a {cls.__name__} object")

    # Python functions ------------------------------------------------------------------------

    def call_function(self, function: types.FunctionType, args: tuple, kwargs: dict) -> Any:
        """Interpret a function, or run it for real if it belongs to the tensor library."""
        handler = self.code_handlers.get(function.__code__)
        if handler is not None:
            return handler(self, *args, **kwargs)
        if trust.is_opaque(function):
            name = f"{trust.module_name(function)}.{function.__qualname__}"
            raise GraphBreak(f"call of {name}", "Move it out of the compiled function.")
        if trust.is_native(function) and not self._has_interpreted(function, args, kwargs):
            return self.session.tensors.native(function, args, kwargs)
        return self.inline(function, args, kwargs)

    def _has_interpreted(self, function: types.FunctionType, args: tuple, kwargs: dict) -> bool:
        """Whether a library function would run functions of the user's."""
        for value in (*args, *kwargs.values()):
            if isinstance(value, (types.FunctionType, types.MethodType)) or (
                is_active_callable(value) and not self.session.tensors.is_tensor(value)
            ):
                return True
        for cell in function.__closure__ or ():
            try:
                held = cell.cell_contents
            except ValueError:
                continue
            if isinstance(held, types.FunctionType) and not trust.is_native(held):
                return True
        return False

    def inline(self, function: types.FunctionType, args: tuple, kwargs: dict) -> Any:
        """Interpret a call."""
        code = function.__code__
        if code.co_flags & COROUTINE_LIKE:
            raise GraphBreak(f"call of the coroutine function {function.__qualname__}")
        slots = bound(self.session, function, args, kwargs)
        source = self.session.source(function)
        if source is None and not self.session.is_new(function):
            source = self.session.constant(function)
        frame = Frame(self, function, code, slots, source)
        if code.co_flags & GENERATOR:
            return self.session.note_created(Generator(frame))
        if self.session.depth > DEEPEST:
            raise SkipFrame(f"{function.__qualname__} recurses deeply")
        self.session.depth += 1
        try:
            return frame.execute()
        finally:
            self.session.depth -= 1

    # Classes ---------------------------------------------------------------------------------

    def construct(self, cls: type, args: tuple, kwargs: dict) -> Any:
        """`cls(...)` as `type.__call__` does it."""
        meta_call = static(type(cls), "__call__")
        if isinstance(meta_call, types.FunctionType):
            if type(cls).__name__ in ("EnumType", "EnumMeta"):
                return foreign(cls, *args, **kwargs)
            return self.call(meta_call, (cls, *args), kwargs)
        return self.construct_plainly(cls, args, kwargs)

    def construct_plainly(self, cls: type, args: tuple, kwargs: dict) -> Any:
        """`type.__call__(cls, ...)`."""
        if cls in SAFE_TYPES:
            return self._construct_builtin(cls, args, kwargs)
        if self.session.tensors.is_tensor_class(cls):
            return self.session.tensors.construct(cls, args, kwargs)
        if trust.is_native_class(cls) and not any(map(is_active_callable, args)):
            return self.session.tensors.native(cls, args, kwargs)
        made = self._allocated(cls, args, kwargs)
        if not isinstance(made, cls):
            return made
        init = static(cls, "__init__")
        if isinstance(init, types.FunctionType):
            init = self.attributes.class_member(cls, "__init__", init)
            self.call(init, (made, *args), kwargs)
        if isinstance(made, Node):
            # The engine runs for real, and calls back here for the user's backward.
            made.__dict__["gradients"] = Callback(self, types.MethodType(cls.gradients, made))
        return made

    def _allocated(self, cls: type, args: tuple, kwargs: dict) -> Any:
        new = static(cls, "__new__")
        if isinstance(new, staticmethod) and isinstance(new.__func__, types.FunctionType):
            new = self.attributes.class_member(cls, "__new__", new)
            return self.call(new.__func__, (cls, *args), kwargs)
        if new is object.__new__:
            if static(cls, "__init__") is object.__init__ and (args or kwargs):
                raise UserError(TypeError(f"{cls.__name__}() takes no arguments"))
            return self.session.note_created(foreign(object.__new__, cls))
        if issubclass(cls, BaseException):
            return self.session.note_created(foreign(new, cls, *args))
        if isinstance(new, types.FunctionType):
            return self.call(new, (cls, *args), kwargs)
        if new in (dict.__new__, list.__new__, set.__new__, collections.OrderedDict.__new__):
            made = self.session.note_created(foreign(new, cls))
            if not isinstance(static(cls, "__init__"), types.FunctionType):
                self._container_special(made, "__init__", (*args, *([kwargs] if kwargs else [])))
            return made
        raise GraphBreak(f"a {cls.__name__} object is made", "Make it outside.")

    def _construct_builtin(self, cls: type, args: tuple, kwargs: dict) -> Any:
        args = tuple(map(self.session.whole, args))
        if cls in (functools.partial, types.MethodType, types.SimpleNamespace, object):
            return self.session.note_created(foreign(cls, *args, **kwargs))
        if cls in WITH_CALLBACKS:
            args = tuple(for_c_code(self, a) for a in args)
        if cls is collections.defaultdict and args:
            args = (args[0], *map(self.mapping_or_list, args[1:]))
        elif cls in (collections.OrderedDict, collections.Counter):
            args = tuple(map(self.mapping_or_list, args))
        else:
            args = tuple(map(self.iterable_for_c, args))
        for value in (*args, *kwargs.values()):
            self.check_inert(value)
        if any(map(self.session.tensors.is_tensor, args)):
            if cls in (int, float, bool, complex):
                return self.session.tensors.number(cls, args[0])
            if cls in (str, bytes):
                raise GraphBreak("a tensor is turned into text", "Print it outside.")
        made = foreign(cls, *args, **kwargs)
        return (
            made
            if cls in (int, float, bool, complex, str, bytes)
            else (self.session.note_created(made))
        )

    def mapping_or_list(self, value: Any) -> Any:
        found = dict(self.mapping(value)) if hasattr(type(value), "keys") else self.listed(value)
        return self.session.note_created(found)

    def iterable_for_c(self, value: Any) -> Any:
        """User-defined iterables become lists before C code sees them."""
        if isinstance(value, InstanceDict):
            return self.mapping(value)
        if self.session.tensors.is_tensor(value) or isinstance(value, (type, Generator)):
            return value
        if (
            is_active(value)
            and static(type(value), "__iter__") is not None
            and (not isinstance(value, (str, bytes, tuple, dict)))
        ):
            return self.listed(value)
        return value

    # C functions -----------------------------------------------------------------------------

    def call_builtin(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """A C function runs for real if it is known to touch nothing but its arguments."""
        tensors = self.session.tensors
        owner = getattr(function, "__self__", None)
        if owner is None or isinstance(owner, types.ModuleType):
            return self._call_descriptor_or_module(function, owner, args, kwargs)
        if isinstance(owner, type):
            return self._call_class_function(function, owner, args, kwargs)
        if tensors.is_tensor(owner):
            return tensors.native(function, args, kwargs)
        return self._call_bound(function, owner, args, kwargs)

    def _call_descriptor_or_module(
        self, function: Any, module: Any, args: tuple, kwargs: dict
    ) -> Any:
        objclass = getattr(function, "__objclass__", None)
        if objclass is not None and args:
            if self.session.tensors.is_tensor(args[0]):
                return self.session.tensors.native(function, args, kwargs)
            if isinstance(args[0], InstanceDict):
                return self.call(self.attributes.get(args[0], function.__name__), args[1:], kwargs)
            method = foreign(function.__get__, args[0], type(args[0]))
            return self._call_bound(method, args[0], args[1:], kwargs)
        name = getattr(function, "__module__", None) or getattr(module, "__name__", "")
        if name not in PURE_MODULES:
            raise GraphBreak(f"call of the C function {name}.{function.__name__}")
        args = tuple(self.iterable_for_c(self.session.whole(a)) for a in args)
        for value in (*args, *kwargs.values()):
            self.check_inert(value)
        if any(is_interpreted(a) for a in args):
            args = tuple(for_c_code(self, a) for a in args)
        scalars = self.session.scalars
        if scalars.any(args):
            return scalars.call(function, args, kwargs)
        return self._result(foreign(function, *args, **kwargs))

    def _call_class_function(self, function: Any, cls: type, args: tuple, kwargs: dict) -> Any:
        """`tuple.__new__`, `dict.fromkeys`, `object.__new__` and the like."""
        if function.__name__ == "__new__" and args and isinstance(args[0], type):
            rest = tuple(self.listed(a) if not isinstance(a, str) else a for a in args[1:])
            if function.__self__ in (tuple, object, str, int, float, list, dict):
                made = foreign(function, args[0], *rest, **kwargs)
                return self.session.note_created(made)
        if cls in RECEIVERS or cls is itertools.chain:
            args = tuple(map(self.iterable_for_c, map(self.session.whole, args)))
            for value in args:
                self.check_inert(value)
            return self._result(foreign(function, *args, **kwargs))
        if cls is type and function.__name__ == "__call__":
            return self.construct_plainly(args[0], args[1:], kwargs)
        raise GraphBreak(f"call of {cls.__name__}.{function.__name__}")

    def _call_bound(self, function: Any, owner: Any, args: tuple, kwargs: dict) -> Any:
        name = function.__name__
        if isinstance(owner, type) and name == "__call__":
            return self.construct_plainly(owner, args, kwargs)
        if static(object, name) is static(type(owner), name):
            return self._call_object_method(owner, name, args, kwargs)
        special = self._container_special(owner, name, args)
        if special is not None:
            return special[0]
        if not isinstance(owner, RECEIVERS) and not self.is_plain_object(owner):
            raise GraphBreak(f"call of the C method {type(owner).__name__}.{name}")
        return self._call_receiver(function, owner, name, args, kwargs)

    def _call_receiver(
        self, function: Any, owner: Any, name: str, args: tuple, kwargs: dict
    ) -> Any:
        if self.session.scalars.is_symbolic(owner):
            return foreign(function, *args, **kwargs)
        if isinstance(owner, ListShadow) and not owner.filled and name in ("append", "extend"):
            values = args if name == "append" else self.listed(*args)
            return list.extend(owner, values)
        self.session.check_readable(owner)
        kind = next((k for k in STORES if isinstance(owner, k)), None)
        if kind is not None and name in STORES[kind]:
            if kind is not list and args and (kind is set or name in KEYED):
                if name in ("get", "__contains__"):
                    args = (self.settled_key(owner, args[0]), *args[1:])
                self.check_key(owner, args[0])
            if name in ("extend", "update", "extendleft"):
                args = tuple(
                    self.mapping_or_list(a) if kind is dict else self.listed(a) for a in args
                )
        else:
            args = tuple(self.iterable_for_c(self.session.whole(a)) for a in args)
            self.check_inert(self.session.whole(owner))
            for value in args:
                self.check_inert(value)
            kwargs = {k: for_c_code(self, v) for k, v in kwargs.items()}
        if isinstance(owner, (list, dict, set, collections.deque)) and name not in READING:
            self._writable(owner)
        self._own_iterator_if(owner, name)
        return self._result(foreign(function, *args, **kwargs))

    def _own_iterator_if(self, owner: Any, name: str) -> None:
        if name == "__next__":
            self._own_iterator(owner)

    def _result(self, value: Any) -> Any:
        """What C code returns: containers and iterators are the frame's own from now on."""
        if id(value) in self.session.sources or id(value) in self.session.created:
            return value
        if isinstance(value, (list, dict, set, collections.deque)) or hasattr(value, "__next__"):
            return self.session.note_created(value)
        return value

    def _call_object_method(self, owner: Any, name: str, args: tuple, kwargs: dict) -> Any:
        """Methods that a class inherits from `object`."""
        if name == "__setattr__":
            return self.attributes.generic_set(owner, *args)
        if name == "__delattr__":
            return self.attributes.generic_delete(owner, *args)
        if name == "__getattribute__":
            found = self.attributes.lookup(owner, *args)

            if found is MISSING:
                raise UserError(AttributeError(args[0]))
            return found
        if name in ("__init__", "__init_subclass__"):
            return None
        if name in ("__eq__", "__ne__", "__hash__", "__class__", "__sizeof__"):
            return foreign(getattr(owner, name), *args)
        if name in ("__repr__", "__str__", "__format__"):
            return self.text_of(owner) if name != "__format__" else format(self.text_of(owner))
        raise GraphBreak(f"call of object.{name}")

    def _container_special(self, owner: Any, name: str, args: tuple) -> tuple | None:
        """Special methods called by name go the way of their operators."""
        if not isinstance(owner, (list, dict, set, tuple, collections.deque)):
            return None
        if name == "__init__":
            if id(owner) in self.session.created and args:
                values = (
                    self.mapping_or_list(args[0])
                    if isinstance(owner, dict)
                    else (self.listed(args[0]))
                )
                if isinstance(owner, dict):
                    for key, value in dict(values).items():
                        dict.__setitem__(owner, key, value)
                elif isinstance(owner, list):
                    owner[:] = values
            return (None,)
        if name in ("__getitem__", "__setitem__", "__delitem__") and type(owner) in (
            list,
            dict,
            tuple,
            ListShadow,
        ):
            run = {
                "__getitem__": self.get_item,
                "__setitem__": self.set_item,
                "__delitem__": self.delete_item,
            }
            return (run[name](owner, *args),)
        return None

    def _call_ufunc(self, function: np.ufunc, args: tuple, kwargs: dict) -> Any:
        if any(self.session.tensors.is_tensor(a) for a in args):
            raise GraphBreak(f"numpy.{function.__name__} on a tensor", "Use the tensor function.")
        if kwargs or not all(isinstance(a, (int, float, complex, np.generic)) for a in args):
            raise GraphBreak(f"call of numpy.{function.__name__}")
        return foreign(function, *map(self.index, args))


READING = (
    "get items keys values copy index count __len__ __contains__ __getitem__ __iter__ union "
    "intersection difference issubset issuperset isdisjoint symmetric_difference __reversed__ "
    "__eq__ __ne__ __add__ __mul__ __or__ __and__ __sub__ __repr__ __str__ __lt__ __gt__"
).split()


def is_active_callable(value: Any) -> bool:
    """An object of a class whose `__call__` is Python code of the user's."""
    cls = type(value)
    if isinstance(value, type):
        return is_user_class(value)
    return is_python_defined(cls, "__call__") and not trust.is_native_class(cls)


def is_user_class(cls: type) -> bool:
    return bool(cls.__flags__ & (1 << 9)) and not trust.is_trusted_class(cls)
