"""Native entry points as CPython builtins: a generated METH_FASTCALL function, 45 ns a call.

`trampoline` is IR text to append to the module of the function it calls; `wrap` makes the Python
callable. Parameters are letters: ``p`` an address as int, ``i`` a 64-bit int, ``d`` a double, ``f``
a double passed on as float. Where CPython's C interface is missing, `wrap` gives a ctypes function.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import struct
from collections.abc import Callable
from typing import Any

from flambeau.runtime import jit

_FASTCALL = 0x80
_TYPES = {"p": "ptr", "i": "i64", "d": "double", "f": "float"}
_CTYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "d": ctypes.c_double, "f": ctypes.c_float}
_READ = {
    "p": ("PyLong_AsVoidPtr", "ptr", "icmp eq ptr {}, null"),
    "i": ("PyLong_AsLongLong", "i64", "icmp eq i64 {}, -1"),
    "d": ("PyFloat_AsDouble", "double", "fcmp oeq double {}, -1.0"),
    "f": ("PyFloat_AsDouble", "double", "fcmp oeq double {}, -1.0"),
}
DECLARATIONS = """declare ptr @PyLong_AsVoidPtr(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyErr_NoMemory()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyLong_FromLong(i64)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyErr_Format(ptr, ptr, ...)
declare void @Py_IncRef(ptr)
@_Py_NoneStruct = external global i8
@PyExc_TypeError = external global ptr
"""
READ_WORD = """declare ptr @PyLong_AsVoidPtr(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyErr_Occurred()

; a Python number to the word at %to: 0 an address, 1 an integer, 2 a double; false if it raised
define internal i1 @read_word(ptr %o, i64 %letter, ptr %to) nounwind {
entry:
  switch i64 %letter, label %pointer [ i64 1, label %integer
                                       i64 2, label %double ]
pointer:
  %p = call ptr @PyLong_AsVoidPtr(ptr %o)
  store ptr %p, ptr %to
  %pz = icmp eq ptr %p, null
  br i1 %pz, label %doubt, label %fine
integer:
  %n = call i64 @PyLong_AsLongLong(ptr %o)
  store i64 %n, ptr %to
  %nz = icmp eq i64 %n, -1
  br i1 %nz, label %doubt, label %fine
double:
  %x = call double @PyFloat_AsDouble(ptr %o)
  store double %x, ptr %to
  %xz = fcmp oeq double %x, -1.0
  br i1 %xz, label %doubt, label %fine
doubt:
  %e = call ptr @PyErr_Occurred()
  %none = icmp eq ptr %e, null
  ret i1 %none
fine:
  ret i1 true
}
"""


class _MethodDefinition(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def is_supported() -> bool:
    """Whether generated builtins work here; elsewhere ctypes takes over."""
    return platform.python_implementation() == "CPython" and hasattr(
        ctypes.pythonapi, "PyCFunction_NewEx"
    )


def trampoline(
    name: str, target: str, parameters: str, *, release_gil: bool = False, status: bool = False
) -> str:
    """IR of an exported builtin `name` that converts its arguments and calls `target`.

    `target` takes the letters' types and returns nothing, or with `status` an i64 that is nonzero
    when memory ran out. `release_gil` lets other Python threads run meanwhile: for long kernels.
    Append it once per module after `DECLARATIONS`.
    """
    message = f"{name}() takes {len(parameters)} arguments but %zd were given".encode() + b"\0"
    text = "".join(f"\\{b:02X}" for b in message)
    lines = [f'@{name}.arity = internal constant [{len(message)} x i8] c"{text}"']
    lines += [f"define ptr @{name}(ptr %self, ptr %args, i64 %count) #0 {{", "entry:"]
    lines += [f"  %fits = icmp eq i64 %count, {len(parameters)}"]
    lines += ["  br i1 %fits, label %read0, label %arity"]
    for i, letter in enumerate(parameters):
        lines += _read(i, letter)
    lines += [f"read{len(parameters)}:", *_call(target, parameters, release_gil, status)]
    lines += ["  call void @Py_IncRef(ptr @_Py_NoneStruct)", "  ret ptr @_Py_NoneStruct"]
    lines += ["arity:", "  %kind = load ptr, ptr @PyExc_TypeError"]
    lines += [
        "  %wrong = call ptr (ptr, ptr, ...) @PyErr_Format("
        f"ptr %kind, ptr @{name}.arity, i64 %count)",
        "  ret ptr null",
    ]
    if parameters:
        lines += ["fail:", "  ret ptr null"]
    return "\n".join([*lines, "}"]) + "\n"


def _read(i: int, letter: str) -> list[str]:
    """Convert argument i, or leave with the error that the conversion raised."""
    reader, type, suspect = _READ[letter]
    lines = [f"read{i}:", f"  %a{i} = getelementptr ptr, ptr %args, i64 {i}"]
    lines += [f"  %o{i} = load ptr, ptr %a{i}", f"  %x{i} = call {type} @{reader}(ptr %o{i})"]
    if letter == "f":
        lines += [f"  %f{i} = fptrunc double %x{i} to float"]
    lines += [f"  %s{i} = {suspect.format(f'%x{i}')}"]
    lines += [f"  br i1 %s{i}, label %check{i}, label %read{i + 1}", f"check{i}:"]
    lines += [f"  %e{i} = call ptr @PyErr_Occurred()", f"  %c{i} = icmp eq ptr %e{i}, null"]
    lines += [f"  br i1 %c{i}, label %read{i + 1}, label %fail"]
    return lines


def _call(target: str, parameters: str, release_gil: bool, status: bool) -> list[str]:
    names = [f"%f{i}" if c == "f" else f"%x{i}" for i, c in enumerate(parameters)]
    passed = ", ".join(f"{_TYPES[c]} {n}" for c, n in zip(parameters, names, strict=True))
    call = f"call i64 @{target}({passed})" if status else f"call void @{target}({passed})"
    lines = ["  %thread = call ptr @PyEval_SaveThread()"] if release_gil else []
    lines += [f"  %status = {call}" if status else f"  {call}"]
    if release_gil:
        lines += ["  call void @PyEval_RestoreThread(ptr %thread)"]
    if status:
        lines += ["  %bad = icmp ne i64 %status, 0", "  br i1 %bad, label %memory, label %fine"]
        lines += ["memory:", "  %none = call ptr @PyErr_NoMemory()", "  ret ptr null", "fine:"]
    return lines


def wrap(
    library: jit.Library,
    name: str,
    target: str = "",
    parameters: str = "",
    *,
    status: bool = False,
    owner: object = None,
) -> Callable[..., None]:
    """The builtin at `name`; `owner` is kept alive by it.

    Where builtins are not supported, `target` (which must be exported) is called through ctypes.
    """
    if not is_supported():
        types = [_CTYPES[c] for c in parameters]
        function = library.function(target, ctypes.c_int64 if status else None, *types)
        return _CtypesEntry(function, owner)
    return bound(name, library.address(name), (library, owner))


def bound(
    name: str, address: int, receiver: object, owner: object = None
) -> Callable[..., Any]:
    """The builtin that calls the METH_FASTCALL function at `address` with `receiver` as its `self`;
    it keeps both objects alive."""
    object = ctypes.py_object
    make = ctypes.PYFUNCTYPE(object, ctypes.c_void_p, object, object)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    return make(ctypes.addressof(_definition(name, address)), receiver, owner)


@functools.cache
def _definition(name: str, address: int) -> _MethodDefinition:
    """Kept for ever, as CPython keeps a pointer to it."""
    return _MethodDefinition(name.encode(), address, _FASTCALL, None)


def word_of(number: float, *, double: bool) -> int:
    """A Python number as the 64-bit word that native code reads."""
    return struct.unpack("<q", struct.pack("<d", number))[0] if double else int(number)


class _CtypesEntry:
    """The slower entry; it always releases the GIL."""

    def __init__(self, function: Callable[..., Any], owner: object) -> None:
        self._function = function
        self._owner = owner

    def __call__(self, *arguments: int | float) -> None:
        if self._function(*arguments):
            raise MemoryError


def _define_data() -> None:
    """Tell the linker where CPython's objects are (functions are found by name)."""
    jit.define_symbol("_Py_NoneStruct", id(None))
    kind = ctypes.c_void_p.in_dll(ctypes.pythonapi, "PyExc_TypeError")
    jit.define_symbol("PyExc_TypeError", ctypes.addressof(kind))


jit.provide(("_Py_NoneStruct", "PyExc_TypeError"), _define_data)
