"""Built-in functions, done by the interpreter so that they see overlays, shadows and guards."""

from __future__ import annotations

import _thread
import bisect
import builtins
import copy
import functools
import inspect
import operator
import types
from collections.abc import Callable
from typing import Any

from flambeau.capture import trust
from flambeau.capture.breaks import GraphBreak, UserError, foreign
from flambeau.capture.callbacks import for_c_code
from flambeau.capture.interpreter.data import is_active
from flambeau.capture.interpreter.frame import Frame
from flambeau.capture.scalars import computed
from flambeau.capture.values import MISSING, InstanceDict, static

HANDLERS: dict[int, Callable[..., Any]] = {}
FRAME_HANDLERS: dict[int, Callable[..., Any]] = {}


def handles(*functions: Any) -> Callable:
    """Register the interpreter's version of some functions; it is called as (run, *args)."""

    def register(handler: Callable) -> Callable:
        for function in functions:
            HANDLERS[id(function)] = handler
        return handler

    return register


def handles_in_frame(function: Any) -> Callable:
    """The same for functions that look at their caller: (run, frame, args, kwargs)."""

    def register(handler: Callable) -> Callable:
        FRAME_HANDLERS[id(function)] = handler
        return handler

    return register


# Attributes and types ----------------------------------------------------------------------------


@handles(getattr)
def get_attribute(run: Any, owner: Any, name: str, *default: Any) -> Any:
    try:
        return run.attributes.get(owner, name)
    except UserError as error:
        if default and isinstance(error.value, AttributeError):
            return default[0]
        raise


@handles(hasattr)
def has_attribute(run: Any, owner: Any, name: str) -> bool:
    return get_attribute(run, owner, name, MISSING) is not MISSING


@handles(setattr)
def set_attribute(run: Any, owner: Any, name: str, value: Any) -> None:
    run.attributes.set(owner, name, value)


@handles(delattr)
def delete_attribute(run: Any, owner: Any, name: str) -> None:
    run.attributes.delete(owner, name)


@handles(object.__setattr__)
def generic_set(run: Any, owner: Any, name: str, value: Any) -> None:
    if run.session.tensors.is_tensor(owner):
        run.attributes.set(owner, name, value)
    else:
        run.attributes.generic_set(owner, name, value)


@handles(object.__delattr__)
def generic_delete(run: Any, owner: Any, name: str) -> None:
    run.attributes.generic_delete(owner, name)


@handles(object.__getattribute__)
def generic_get(run: Any, owner: Any, name: str) -> Any:
    found = run.attributes.lookup(owner, name)
    if found is MISSING:
        raise UserError(
            AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}")
        )
    return found


@handles(type)
def type_of(run: Any, *args: Any, **kwargs: Any) -> Any:
    if len(args) != 1:
        raise GraphBreak("a class is made in the function")
    return run.type_of(args[0])


@handles(isinstance)
def is_instance(run: Any, value: Any, kinds: Any) -> bool:
    kind = run.type_of(value)
    for one in _flat(kinds):
        if isinstance(one, type) and static(type(one), "__instancecheck__") is not None:
            check = static(type(one), "__instancecheck__")
            if isinstance(check, types.FunctionType) and not trust.is_trusted(check):
                if run.truth(run.call(check, (one, value))):
                    return True
                continue
        if kind is type(value):
            if foreign(isinstance, value, one):
                return True
        elif foreign(issubclass, kind, one):
            return True
    return False


def _flat(kinds: Any) -> list[Any]:
    if isinstance(kinds, tuple):
        return [k for kind in kinds for k in _flat(kind)]
    return [kinds]


@handles(callable)
def is_callable(run: Any, value: Any) -> bool:
    return not isinstance(value, InstanceDict) and callable(value)


@handles_in_frame(id)
def identity_in_library(run: Any, frame: Frame, args: tuple, kwargs: dict) -> int:
    """Library code uses identities as keys that live as long as the call. Which of the tensors
    from outside are one and which are two is guarded already."""
    session = run.session
    told_apart = session.is_new(args[0]) or session.tensors.is_tensor(args[0])
    if trust.is_trusted(frame.function) and told_apart:
        return id(args[0])
    return identity(run, *args)


@handles(id)
def identity(run: Any, value: Any) -> int:
    tensors = run.session.tensors
    real = tensors.original(value) if tensors.is_tensor(value) else value
    if run.session.is_new(value) or (real is value and tensors.is_tensor(value)):
        raise GraphBreak("id() of an object that the frame makes")
    source = run.session.source(value)
    real = run.session.originals.get(id(real), real)
    if source is not None:
        run.session.guard(source, "is", real)
    return id(real)


@handles(hash)
def hash_of(run: Any, value: Any) -> int:
    value = run.index(value)
    method = run.python_special(value, "__hash__")
    if method is not None:
        return run.call(method, ())
    run.check_inert(value)
    if type(value) in (int, str, float, bool, tuple, bytes, type(None)):
        return foreign(hash, value)
    raise GraphBreak("hash() of an object")


@handles(vars)
def variables(run: Any, *args: Any) -> Any:
    if not args:
        raise GraphBreak("vars() without an argument")
    return run.attributes.get(args[0], "__dict__")


@handles(dir, locals, globals, eval, exec, compile, open, input, breakpoint)
def not_captured(run: Any, *args: Any, **kwargs: Any) -> Any:
    raise GraphBreak("a built-in that looks at the running program or the outside world")


# Text --------------------------------------------------------------------------------------------


@handles(repr)
def representation(run: Any, value: Any) -> str:
    return run.text_of(value, repr)


@handles(str)
def string(run: Any, *args: Any, **kwargs: Any) -> str:
    if len(args) != 1 or kwargs:
        return foreign(str, *args, **kwargs)
    return run.text_of(args[0], str)


@handles(ascii)
def ascii_text(run: Any, value: Any) -> str:
    return ascii(run.text_of(value, repr))


@handles(format)
def formatted(run: Any, value: Any, spec: str = "") -> str:
    value, spec = run.index(value), run.index(spec)
    method = run.python_special(value, "__format__")
    if method is not None:
        return run.call(method, (spec,))
    if run.session.tensors.is_tensor(value):
        raise GraphBreak("a tensor is turned into text", "Print it outside.")
    if type(value) in (int, float, str, bool, complex) or type(value).__module__ == "numpy":
        return foreign(format, value, spec)
    if spec == "":
        return run.text_of(value, str)
    run.check_inert(value)
    return foreign(format, run.session.whole(value), spec)


@handles(print)
def print_later(run: Any, *args: Any, **kwargs: Any) -> None:
    """Text that is known now is printed when the captured program runs."""
    if kwargs.get("file") is not None:
        raise GraphBreak("print to a file")
    texts = []
    for value in args:
        if run.session.scalars.is_symbolic(value):
            texts.append(value)
        else:
            texts.append(run.text_of(value, str))
    kwargs = {k: v for k, v in kwargs.items() if k != "file"}
    run.session.call_later(print, tuple(texts), kwargs)


# Sizes and iteration -----------------------------------------------------------------------------


@handles(len)
def length(run: Any, value: Any) -> int:
    method = run.python_special(value, "__len__")
    if method is not None:
        return run.call(method, ())
    if isinstance(value, InstanceDict):
        return len(run.attributes.names(value.owner))
    if run.session.tensors.is_tensor(value):
        return value._spec.shape[0] if value.ndim else foreign(len, value)
    return foreign(len, run.session.whole(value))


@handles(iter)
def iterator(run: Any, value: Any, *sentinel: Any) -> Any:
    if sentinel:
        raise GraphBreak("iter() with a sentinel")
    return run.iterator(value)


@handles(next)
def next_item(run: Any, iterator: Any, *default: Any) -> Any:
    try:
        return run.next_of(iterator, stop=False)
    except UserError as error:
        if default and isinstance(error.value, StopIteration):
            return default[0]
        raise


@handles(list)
def make_list(run: Any, *args: Any) -> list:
    return run.session.note_created(run.listed(args[0]) if args else [])


@handles(tuple)
def make_tuple(run: Any, *args: Any) -> tuple:
    if args and type(args[0]) is tuple:
        return args[0]
    return tuple(run.listed(args[0])) if args else ()


@handles(set)
def make_set(run: Any, *args: Any) -> set:
    items = run.listed(args[0]) if args else []
    for item in items:
        run.check_hashable(item)
    return run.session.note_created(foreign(set, items))


@handles(frozenset)
def make_frozenset(run: Any, *args: Any) -> frozenset:
    items = run.listed(args[0]) if args else []
    for item in items:
        run.check_hashable(item)
    return foreign(frozenset, items)


@handles(dict)
def make_dict(run: Any, *args: Any, **kwargs: Any) -> dict:
    made: dict = run.session.note_created({})
    for argument in args:
        if isinstance(argument, InstanceDict) or hasattr(type(argument), "keys"):
            pairs = list(run.mapping(argument).items())
        else:
            pairs = [run.listed(pair) for pair in run.listed(argument)]
        for key, value in pairs:
            run.set_item(made, key, value)
    made.update(kwargs)
    return made


def _lazily(kind: Any, count: int) -> None:
    """C iterators over interpreted iterables: those become iterators of the interpreter first."""

    @handles(kind)
    def make(run: Any, *args: Any, **kwargs: Any) -> Any:
        parts = [for_c_code(run, a) for a in args[:count]]
        parts += [run.iterator_for_c(a) for a in args[count:]]
        kwargs = {k: run.iterator_for_c(v) if k == "iterable" else v for k, v in kwargs.items()}
        return run.session.note_created(foreign(kind, *parts, **kwargs))


_lazily(zip, 0)
_lazily(map, 1)
_lazily(filter, 1)


@handles(enumerate)
def enumerated(run: Any, iterable: Any, start: int = 0) -> Any:
    return run.session.note_created(enumerate(run.iterator_for_c(iterable), run.index(start)))


@handles(reversed)
def reverse(run: Any, value: Any) -> Any:
    method = run.python_special(value, "__reversed__")
    if method is not None:
        return run.iterator(run.call(method, ()))
    if is_active(value) and not isinstance(value, (list, tuple)):
        size = length(run, value)
        return iter([run.get_item(value, k) for k in range(size - 1, -1, -1)])
    return run.session.note_created(foreign(reversed, run.session.whole(value)))


@handles(sorted)
def sort(run: Any, iterable: Any, *, key: Any = None, reverse: bool = False) -> list:
    items = run.listed(iterable)
    keys = items if key is None else [run.call(key, (item,)) for item in items]
    for value in keys:
        run.check_inert(value)
    order = foreign(sorted, range(len(items)), key=keys.__getitem__, reverse=reverse)
    return run.session.note_created([items[k] for k in order])


def _extreme(function: Any, better: str) -> None:
    @handles(function)
    def find(run: Any, *args: Any, key: Any = None, default: Any = MISSING) -> Any:
        items = run.listed(args[0]) if len(args) == 1 else list(args)
        if not items:
            if default is not MISSING:
                return default
            raise UserError(ValueError(f"{function.__name__}() arg is an empty sequence"))
        if key is None and run.session.scalars.any_unknown(items):
            return functools.reduce(functools.partial(computed, function.__name__), items)
        best = items[0]
        best_key = best if key is None else run.call(key, (best,))
        word, reflected = ("__gt__", "__lt__") if better == "gt" else ("__lt__", "__gt__")
        test = getattr(operator, better)
        for item in items[1:]:
            mine = item if key is None else run.call(key, (item,))
            if run.truth(run.compare(test, mine, best_key, word, reflected)):
                best, best_key = item, mine
        return best


_extreme(max, "gt")
_extreme(min, "lt")


@handles(sum)
def total(run: Any, iterable: Any, start: Any = 0) -> Any:
    items = run.listed(iterable)
    if all(type(item) in (int, float) for item in items) and type(start) in (int, float):
        return foreign(sum, items, start)
    if isinstance(start, (str, bytes)):
        raise UserError(TypeError("sum() can't sum strings [use ''.join(seq) instead]"))
    for item in items:
        start = run.binary(operator.add, start, item, "__add__", "__radd__", None)
    return start


@handles(any)
def any_true(run: Any, iterable: Any) -> bool:
    iterator = run.iterator(iterable)
    while (item := run.next_of(iterator)) is not MISSING:
        if run.truth(item):
            return True
    return False


@handles(all)
def all_true(run: Any, iterable: Any) -> bool:
    iterator = run.iterator(iterable)
    while (item := run.next_of(iterator)) is not MISSING:
        if not run.truth(item):
            return False
    return True


@handles(range)
def make_range(run: Any, *args: Any) -> range:
    return foreign(range, *map(run.index, args))


@handles(functools.reduce)
def reduce(run: Any, function: Any, iterable: Any, *initial: Any) -> Any:
    items = [*initial, *run.listed(iterable)]
    if not items:
        raise UserError(TypeError("reduce() of empty iterable with no initial value"))
    value = items[0]
    for item in items[1:]:
        value = run.call(function, (value, item))
    return value


def _question(function: Any) -> None:
    @handles(function)
    def ask(run: Any, value: Any) -> bool:
        return foreign(function, value)


for _name in "isclass isfunction ismethod ismodule isbuiltin isgeneratorfunction".split():
    _question(getattr(inspect, _name))


def _bisection(function: Any, left: bool) -> None:
    @handles(function)
    def find(run: Any, a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> int:
        items = run.listed(a)
        low, high = run.index(lo), len(items) if hi is None else run.index(hi)
        while low < high:
            middle = (low + high) // 2
            item = items[middle] if key is None else run.call(key, (items[middle],))
            pair = (item, x) if left else (x, item)
            if run.truth(run.compare(operator.lt, *pair, "__lt__", "__gt__")) is left:
                low = middle + 1
            else:
                high = middle
        return low


_bisection(bisect.bisect_left, True)
_bisection(bisect.bisect_right, False)


@handles(bool)
def make_bool(run: Any, *args: Any) -> bool:
    return run.truth(args[0]) if args else False


def _number(kind: type, method: str) -> None:
    @handles(kind)
    def convert(run: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and run.session.tensors.is_tensor(args[0]):
            return run.session.tensors.number(kind, args[0])
        if run.session.scalars.any(args):
            return run.session.scalars.converted(kind, args[0])
        special = run.python_special(args[0], method) if args else None
        if special is not None:
            return run.call(special, ())
        return foreign(kind, *args, **kwargs)


_number(int, "__int__")
_number(float, "__float__")
_number(complex, "__complex__")


@handles(abs)
def absolute(run: Any, value: Any) -> Any:
    if run.session.tensors.is_tensor(value):
        return run.session.tensors.native(abs, (value,), {})
    if run.session.scalars.is_symbolic(value):
        return foreign(abs, value)
    method = run.python_special(value, "__abs__")
    return run.call(method, ()) if method is not None else foreign(abs, value)


def _arithmetic(function: Any, method: str) -> None:
    @handles(function)
    def compute(run: Any, *args: Any, **kwargs: Any) -> Any:
        if any(map(run.session.tensors.is_tensor, args)):
            return run.session.tensors.native(function, args, kwargs)
        if run.session.scalars.any(args):
            return foreign(function, *args, **kwargs)
        special = run.python_special(args[0], method) if args else None
        if special is not None:
            return run.call(special, args[1:])
        return foreign(function, *args, **kwargs)


_arithmetic(divmod, "__divmod__")
_arithmetic(pow, "__pow__")
_arithmetic(round, "__round__")


@handles(_thread.get_ident)
def thread_identity(run: Any) -> int:
    return 0  # only used as a key that tells threads apart


@handles(copy.copy)
def shallow_copy(run: Any, value: Any) -> Any:
    if type(value) in (list, dict, set):
        return run.session.note_created(copy.copy(run.session.whole(value)))
    if type(value) in (int, float, str, bool, tuple, type(None)):
        return value
    return run.inline(copy.copy, (value,), {})


@handles(copy.deepcopy)
def deep_copy(run: Any, value: Any, *rest: Any) -> Any:
    raise GraphBreak("copy.deepcopy", "Copy outside of the compiled function.")


@handles(operator.setitem)
def set_item(run: Any, owner: Any, key: Any, value: Any) -> None:
    run.set_item(owner, key, value)


@handles(operator.getitem)
def get_item(run: Any, owner: Any, key: Any) -> Any:
    return run.get_item(owner, key)


@handles(builtins.__import__)
def import_module(run: Any, *args: Any, **kwargs: Any) -> Any:
    raise GraphBreak("import by name")


@handles_in_frame(super)
def make_super(run: Any, frame: Frame, args: tuple, kwargs: dict) -> super:
    return foreign(super, *args)


@handles_in_frame(locals)
def local_variables(run: Any, frame: Frame, args: tuple, kwargs: dict) -> dict:
    raise GraphBreak("locals()")


@handles_in_frame(globals)
def module_variables(run: Any, frame: Frame, args: tuple, kwargs: dict) -> dict:
    raise GraphBreak("globals()")
