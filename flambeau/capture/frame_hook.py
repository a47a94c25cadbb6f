"""The frame evaluation hook: which code object runs when a Python function is entered.

    with enabled(callback):     # this thread only; installed only while some thread is inside
        model(x)                # callback(function, code, arguments) -> code object or None

The generated machine code is never freed, because CPython may still be inside it, and it is
uninstalled at exit, before the interpreter takes itself apart. Where the layout of CPython is not
the one we know, `available()` is False, and functions called from broken frames stay plain Python.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

from flambeau.capture import frame_layout
from flambeau.capture.frame_hook_ir import FUNCTIONS, hook_ir
from flambeau.capture.frame_layout import code_int
from flambeau.runtime import jit

Callback = Callable[[types.FunctionType, types.CodeType, tuple], "types.CodeType | None"]
Lookup = Callable[..., "types.CodeType | None"]

_api = ctypes.pythonapi
_NAMES = (
    ("_PyCode_GetExtra", "_PyCode_SetExtra", "_PyEval_RequestCodeExtraIndex")
    if sys.version_info < (3, 12)
    else (
        "PyUnstable_Code_GetExtra",
        "PyUnstable_Code_SetExtra",
        "PyUnstable_Eval_RequestCodeExtraIndex",
    )
)
UNMARKED = object()
"""What `mark` gives for a code object that the hook has not been told about."""

_TRIAL = """
from flambeau.capture import frame_hook
def old(x, *rest, key=3): return x
def new(x, *rest, key=3):
    a = b = c = x
    def inner(): return a, key
    try: raise KeyError(x)
    except KeyError: b = inner()
    return b, rest, [c for c in rest]
swap = lambda f, code, args: new.__code__ if code is old.__code__ else None
with frame_hook.enabled(swap):
    for _ in range(2000): assert old(1, 2) == ((1, 3), (2,), [2])
def deep(n, *pad): return n if n == 0 else deep(n - 1, *pad)
grow = lambda f, code, args: code.replace(co_stacksize=300) if code is deep.__code__ else None
for pad in range(8):
    with frame_hook.enabled(grow): assert deep(100, *range(pad)) == 0
"""


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


METH_O = 0x08


class _Hook:
    """The compiled hook and what must live as long as the process."""

    def __init__(self, at: frame_layout.Layout) -> None:
        self.layout = at
        self.key = (ctypes.c_ubyte * 64)()  # Py_tss_t: all zero is Py_tss_NEEDS_INIT
        self.misfits = ctypes.c_int64()
        self.active = ctypes.c_int64()
        self._declare()
        if _api.PyThread_tss_create(ctypes.byref(self.key)) != 0:
            raise OSError("the frame hook got no thread-specific storage")
        self.index = self._request(_address("Py_DecRef"))
        with jit.alone():
            self.engine, hook_address, activate_address = self._compile()
        self.hook_address = hook_address
        self.definition = _MethodDef(b"activate", activate_address, METH_O, None)
        make = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
        )(("PyCFunction_NewEx", _api))
        self.activate = make(ctypes.addressof(self.definition), None, None)

    def _declare(self) -> None:
        pointer = ctypes.c_void_p
        _api.PyThread_tss_create.argtypes = [pointer]
        _api.PyInterpreterState_Get.restype = pointer
        self._get = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_ssize_t, pointer)(
            (_NAMES[0], _api)
        )
        self._put = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_ssize_t, pointer)(
            (_NAMES[1], _api)
        )
        self._request = ctypes.PYFUNCTYPE(ctypes.c_ssize_t, pointer)((_NAMES[2], _api))
        self._hold = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", _api))
        self._set_evaluator = ctypes.PYFUNCTYPE(None, pointer, pointer)(
            ("_PyInterpreterState_SetEvalFrameFunc", _api)
        )

    def _compile(self) -> tuple[Any, int, int]:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        addresses = {name: _address(name) for name in FUNCTIONS}
        self.interpreter = _api.PyInterpreterState_Get()
        addresses |= {
            "get_extra": _address(_NAMES[0]),
            "none": id(None),
            "code_type": id(types.CodeType),
            "key": ctypes.addressof(self.key),
            "misfit_counter": ctypes.addressof(self.misfits),
            "active_counter": ctypes.addressof(self.active),
            "interpreter": self.interpreter,
        }
        module = llvm.parse_assembly(hook_ir(self.layout, addresses, self.index))
        module.verify()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        self._hold(engine)  # immortal: CPython may be inside the code until the process ends
        address = engine.get_function_address
        return engine, address("hook"), address("activate")

    def mark(self, code: types.CodeType) -> Any:
        """The lookup of a code object, None where its frames are left alone, or `UNMARKED`."""
        slot = ctypes.c_void_p()
        self._get(code, self.index, ctypes.addressof(slot))
        return ctypes.cast(slot, ctypes.py_object).value if slot.value else UNMARKED

    def set_mark(self, code: types.CodeType, mark: Lookup | None) -> None:
        """`None` leaves the frames of `code` alone for good; a callable is asked at each entry."""
        self._hold(mark)
        self._put(code, self.index, id(mark))

    def reserve(self, original: types.CodeType, replacement: types.CodeType) -> None:
        """Make later frames of `original` large enough for `replacement`.

        A frame at the end of a chunk of CPython's data stack cannot be enlarged in place and would
        run uncompiled.
        """
        at = self.layout
        if at.code_framesize is not None:
            have, need = (code_int(c, at.code_framesize) for c in (original, replacement))
            have.value = max(have.value, need.value)
            return
        need_total = sum(
            code_int(replacement, offset).value
            for offset in (at.code_localsplus, at.code_stacksize)
        )
        stack = code_int(original, at.code_stacksize)
        stack.value = max(stack.value, need_total - code_int(original, at.code_localsplus).value)

    def uninstall(self) -> None:
        self._set_evaluator(self.interpreter, _address("_PyEval_EvalFrameDefault"))


def _address(name: str) -> int:
    address = ctypes.cast(getattr(_api, name), ctypes.c_void_p).value
    assert address is not None
    return address


def _trial_passes() -> bool:
    """Whether swapping frames works in a process of its own, where a crash harms nobody."""
    environment = dict(os.environ, FLAMBEAU_FRAME_HOOK="force")
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment["PYTHONPATH"] = os.pathsep.join(
        p for p in (root, environment.get("PYTHONPATH")) if p
    )
    done = subprocess.run(
        [sys.executable, "-c", _TRIAL], env=environment, capture_output=True, timeout=60
    )
    return done.returncode == 0


@functools.cache
def hook() -> _Hook | None:
    """The hook of this process, compiled on first use, or None where it is not safe."""
    choice = os.environ.get("FLAMBEAU_FRAME_HOOK", "")
    at = frame_layout.layout()
    if choice == "0" or at is None or not frame_layout.matches_this_interpreter(at):
        return None
    tried = sys.version_info[:3] in frame_layout.TRIED_VERSIONS or choice == "force"
    if not tried and not _trial_passes():
        return None
    made = _Hook(at)
    for function in (enabled.__enter__, enabled.__exit__, enabled.__init__):
        made.set_mark(function.__code__, None)
    atexit.register(made.uninstall)
    return made


def available() -> bool:
    """Whether frames can be swapped at entry in this process."""
    return hook() is not None


class enabled:
    """Within the block, functions entered on this thread are offered to `callback`."""

    __slots__ = ("callback", "previous")

    def __init__(self, callback: Callback | None) -> None:
        self.callback = callback
        self.previous: Any = None
        hook()

    def __enter__(self) -> enabled:
        made = hook()
        if made is not None:
            self.previous = made.activate(self.callback)
        return self

    def __exit__(self, *exception: Any) -> None:
        made = hook()
        if made is not None:
            made.activate(self.previous)


def skip(code: types.CodeType) -> None:
    """Leave the frames of `code` alone for good."""
    made = hook()
    if made is not None:
        made.set_mark(code, None)


def set_lookup(code: types.CodeType, lookup: Lookup) -> None:
    """Ask `lookup(function, *raw_arguments)` at each entry of `code`."""
    made = hook()
    if made is not None:
        made.set_mark(code, lookup)


def reserve(original: types.CodeType, replacement: types.CodeType) -> None:
    """See `_Hook.reserve`; nothing to do without a hook."""
    made = hook()
    if made is not None:
        made.reserve(original, replacement)
