"""Which classes and functions a file may name, and what it may do with them.

Three rights, from weak to strong. A file may *refer* to a name (keep it as a value), *call* it with
arguments of its own, or make *instances* and set their attributes. What it may call are only
functions written here or in `rebuild.py` for that purpose, and builtin containers.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.device import device
from flambeau.core.errors import ArgumentError, complaint
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from flambeau.random import Generator
from flambeau.serialization import arrays, rebuild
from flambeau.serialization.errors import DamagedFile, RefusedFile
from flambeau.serialization.kinds import BY_NAME as STORAGES
from flambeau.serialization.machine import hashable
from flambeau.tensor.tensor import Tensor

Name = tuple[str, str]

OUR_PACKAGE = "flambeau"
_HARMLESS = [[OUR_PACKAGE, layer] for layer in ("nn", "functional", "tensor")]


def _bytes_from(text: Any, encoding: Any) -> bytes:
    """`_codecs.encode(text, "latin1")`: how protocol 2 writes bytes."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise DamagedFile(complaint("load", "bytes must be latin1 text", dict(encoding=encoding)))
    return text.encode("latin-1")


def _empty_bytes() -> bytes:
    """`bytes()`: how protocol 2 writes no bytes."""
    return b""


def _bytearray_from(data: Any = b"", encoding: Any = None) -> bytearray:
    if isinstance(data, str):
        data = _bytes_from(data, encoding)
    if not isinstance(data, bytes):  # an int would ask for as many bytes as it likes
        raise DamagedFile(complaint("load", "a bytearray must be made of bytes",
                                    dict(got=type(data).__name__)))
    return bytearray(data)


def _sequence_from(kind: type) -> Callable:
    def make(items: Any = ()) -> Any:
        if not isinstance(items, list | tuple):
            raise DamagedFile(complaint("load", f"a {kind.__name__} must be made of a list",
                                        dict(got=type(items).__name__)))
        return kind(map(hashable, items))

    return make


def _ordered_from(items: Any = ()) -> OrderedDict:
    """Protocol 2 fills it afterwards; older ones give a list of pairs."""
    return OrderedDict([tuple(pair) for pair in items])


def _default_dict_from(factory: Any = None) -> defaultdict:
    if factory not in (None, *_FACTORIES):
        raise DamagedFile(complaint("load", "a defaultdict's factory must be a builtin container",
                                    dict(factory=factory)))
    return defaultdict(factory)


def _deque_from(items: Any = (), longest: Any = None) -> deque:
    return deque(_sequence_from(list)(items), longest)


def _counter_from(counts: Any = ()) -> Counter:
    return Counter(dict(counts))


_FACTORIES = (list, dict, set, tuple, int, float, str, bool, OrderedDict)

# name -> (value, what a call of it runs; None: it cannot be called)
_GLOBALS: dict[Name, tuple[Any, Callable | None]] = {
    ("collections", "OrderedDict"): (OrderedDict, _ordered_from),
    ("collections", "defaultdict"): (defaultdict, _default_dict_from),
    ("collections", "deque"): (deque, _deque_from),
    ("collections", "Counter"): (Counter, _counter_from),
    ("_codecs", "encode"): (_bytes_from, _bytes_from),
    ("argparse", "Namespace"): (argparse.Namespace, None),
    ("torch", "Size"): (rebuild.Size, rebuild.size_from),
    ("torch", "device"): (device, device),
    ("torch", "Tensor"): (Tensor, None),
    ("torch._tensor", "Tensor"): (Tensor, None),
    ("torch.nn.parameter", "Parameter"): (Parameter, None),
    ("torch.nn.parameter", "Buffer"): (Buffer, None),
    ("torch.nn.parameter", "UninitializedParameter"): (UninitializedParameter, None),
    ("torch.nn.parameter", "UninitializedBuffer"): (UninitializedBuffer, None),
    ("torch._tensor", "_rebuild_from_type_v2"): (
        rebuild._rebuild_from_type_v2, rebuild._rebuild_from_type_v2),
    ("torch.serialization", "_get_layout"): (rebuild._get_layout, rebuild._get_layout),
    ("torch._C", "Generator"): (Generator, Generator),
    ("numpy", "dtype"): (np.dtype, arrays.dtype_from),
    ("numpy", "ndarray"): (np.ndarray, None),
}
for _function in rebuild._REBUILDERS:
    _GLOBALS["torch._utils", _function.__name__] = (_function, _function)
for _dtype in dtypes.ALL:
    _GLOBALS["torch", _dtype.name] = (_dtype, None)
for _module in ("builtins", "__builtin__"):
    for _kind in (int, float, str, bool, list, dict, tuple):
        _GLOBALS[_module, _kind.__name__] = (_kind, None)
    _GLOBALS[_module, "complex"] = (complex, complex)
    _GLOBALS[_module, "slice"] = (slice, slice)
    _GLOBALS[_module, "range"] = _GLOBALS[_module, "xrange"] = (range, range)
    _GLOBALS[_module, "set"] = (set, _sequence_from(set))
    _GLOBALS[_module, "frozenset"] = (frozenset, _sequence_from(frozenset))
    _GLOBALS[_module, "bytes"] = (bytes, _empty_bytes)
    _GLOBALS[_module, "bytearray"] = (bytearray, _bytearray_from)
for _package in ("numpy.core", "numpy._core"):
    _GLOBALS[f"{_package}.multiarray", "scalar"] = (arrays.scalar_from, arrays.scalar_from)
    _GLOBALS[f"{_package}.multiarray", "_reconstruct"] = (arrays.empty_array, arrays.empty_array)
    _GLOBALS[f"{_package}.numeric", "_frombuffer"] = (
        arrays.array_from_buffer, arrays.array_from_buffer)

_safe: dict[Name, Any] = {}


def name_of(thing: Any) -> Name:
    """(module, qualified name), with our package under PyTorch's name."""
    module = thing.__module__
    if module == OUR_PACKAGE or module.startswith(OUR_PACKAGE + "."):
        module = "torch" + module.removeprefix(OUR_PACKAGE)
    return module, thing.__qualname__


def add_safe_globals(safe_globals: list) -> None:
    """Allow files to name and call these classes and functions: only what does no harm.

    An entry is a class or function, or a pair of one and the full name that files use for it.
    """
    for entry in safe_globals:
        _safe.update([_safe_entry(entry)])


def _safe_entry(entry: Any) -> tuple[Name, Any]:
    if isinstance(entry, tuple):
        if len(entry) != 2 or not isinstance(entry[1], str):
            raise ArgumentError(complaint("add_safe_globals", "a pair must be (class or function, "
                                          "full name)", dict(entry=entry)))
        thing, full = entry
        module, _, name = full.rpartition(".")
        return (module, name), thing
    if not callable(entry):
        raise ArgumentError(complaint("add_safe_globals", "entries must be classes or functions",
                                      dict(entry=entry)))
    return name_of(entry), entry


def get_safe_globals() -> list:
    return list(_safe.values())


def clear_safe_globals() -> None:
    _safe.clear()


@contextmanager
def safe_globals(safe_globals: list) -> Iterator[None]:
    """`add_safe_globals` for the length of a `with` block."""
    before = dict(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe.clear()
        _safe.update(before)


class Allowed:
    """The names that one file may use: see `machine.Names`.

    `modules`: also the Module classes that the program has loaded, as `weights_only=False` asks.
    """

    def __init__(self, modules: bool):
        self.modules = modules
        self.calls: dict[int, Callable] = {}  # id of a granted value -> what a call runs
        self.instances: list[type] = [argparse.Namespace]

    def find(self, module: str, name: str) -> Any:
        kind = STORAGES.get((module, name))
        if kind is not None:
            return kind
        if (module, name) in _safe:
            return self._grant_safe(_safe[module, name])
        if (module, name) in _GLOBALS:
            value, call = _GLOBALS[module, name]
            if call is not None:
                self.calls[id(value)] = call
            return value
        if self.modules:
            found = self._loaded(module, name)
            if found is not None:
                return found
        raise RefusedFile(_refusal(module, name, self.modules))

    def _grant_safe(self, value: Any) -> Any:
        self.calls[id(value)] = value
        if isinstance(value, type):
            self.instances.append(value)
        return value

    def _loaded(self, module: str, name: str) -> Any:
        """A Module class of the program, or a function or class of ours to refer to."""
        value = _look_up(module, name)
        if isinstance(value, type) and issubclass(value, Module):
            self.instances.append(value)
            return value
        layer = getattr(value, "__module__", "").split(".")[:2]
        ours = isinstance(value, type | FunctionType) and layer in _HARMLESS
        return value if ours else None

    def call(self, function: Any, arguments: tuple) -> Any:
        call = self.calls.get(id(function))
        if call is None:
            raise RefusedFile(complaint("load", "a file may call only what it may name for that",
                                        dict(function=function)))
        return call(*arguments)

    def new(self, kind: Any, arguments: tuple, keywords: dict) -> Any:
        if kind is OrderedDict and not arguments:
            return OrderedDict()
        if not isinstance(kind, type) or kind not in self.instances:
            raise RefusedFile(complaint("load", "a file may make instances only of allowed classes",
                                        dict(kind=kind)))
        return kind.__new__(kind, *arguments, **keywords)

    def build(self, target: Any, state: Any) -> None:
        kind = type(target)
        if kind is np.dtype or isinstance(target, np.dtype):
            arrays.set_dtype_state(target, state)
        elif kind is np.ndarray:
            arrays.set_array_state(target, state)
        elif kind is Generator:
            rebuild.set_generator_state(target, state)
        elif kind is OrderedDict:
            target.__dict__.update(_attributes(state))
        elif kind in self.instances:
            _set_state(target, state)
        else:
            raise RefusedFile(complaint("load", "a file may set the state only of allowed classes",
                                        dict(kind=kind.__name__)))


def _attributes(state: Any) -> dict[str, Any]:
    if type(state) is not dict or not all(type(key) is str for key in state):
        raise DamagedFile(complaint("load", "the state of an object must be a dict with str keys",
                                    dict(got=type(state).__name__)))
    return state


def _set_state(target: Any, state: Any) -> None:
    own = getattr(target, "__setstate__", None)
    if own is not None:
        own(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        target.__dict__.update(_attributes(state))
    for name, value in _attributes(slots or {}).items():
        setattr(target, name, value)


def _look_up(module: str, name: str) -> Any:
    """A global of a module that the program has imported already; nothing is imported here."""
    for candidate in (OUR_PACKAGE + module.removeprefix("torch"), module) if (
            module == "torch" or module.startswith("torch.")) else (module,):
        found: Any = sys.modules.get(candidate)
        for part in name.split("."):
            found = getattr(found, part, None) if isinstance(found, ModuleType | type) else None
        if found is not None:
            return found
    if module.startswith("torch.nn.modules."):
        return getattr(sys.modules.get(f"{OUR_PACKAGE}.nn"), name, None)
    return None


def _refusal(module: str, name: str, modules: bool) -> str:
    full = f"{module}.{name}"
    hint = (f"Weights only load failed: Unsupported global: GLOBAL {full} was not an allowed "
            "global by default. If you trust it, allow it with "
            f"torch.serialization.add_safe_globals([{full}]) or the "
            f"torch.serialization.safe_globals([{full}]) context manager. ")
    if modules:
        hint += ("weights_only=False runs no code from the file either: it allows the nn.Module "
                 "classes that the program has imported.")
    else:
        hint += "For a whole nn.Module pass weights_only=False; better, save its state_dict()."
    return complaint("load", "a file may name only classes that hold data",
                     dict(name=repr(full)), hint)

