"""Where CPython keeps the parts of a frame, a code object and a thread state.

The frame hook writes to these structures from generated code, so a wrong offset is a crash: a
layout is used only after `matches_this_interpreter` has read known values back through it, and
versions that nobody has tried must pass a trial in a subprocess first (see `frame_hook`).
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, NamedTuple

SPECIAL_SLOTS = 9
"""Pointer-sized slots of a frame before its locals, counted in `co_framesize`."""

TRIED_VERSIONS = frozenset({(3, 11, 7), (3, 12, 1), (3, 13, 0)})
"""Exact releases on which the whole edge suite has run; other patch releases need the trial."""


class Layout(NamedTuple):
    """Byte offsets in a 64-bit release build of CPython."""

    frame_code: int
    frame_function: int
    frame_instruction: int
    frame_stacktop: int
    frame_locals: int
    thread_stack_top: int
    thread_stack_limit: int
    code_flags: int
    code_argcount: int
    code_kwonly: int
    code_stacksize: int
    code_localsplus: int
    code_bytecode: int
    code_framesize: int | None
    instruction_bias: int
    """From the bytecode to the saved instruction pointer of a frame that has not started."""
    thread_c_recursion: int | None
    """3.12 charges the C recursion budget for every frame that the hook runs."""


LAYOUTS = {
    (3, 11): Layout(32, 0, 56, 64, 72, 304, 312, 48, 56, 64, 68, 76, 184, None, -2, None),
    (3, 12): Layout(0, 16, 56, 64, 72, 240, 248, 48, 52, 60, 64, 72, 192, 76, -2, 36),
    (3, 13): Layout(0, 16, 56, 64, 72, 240, 248, 48, 52, 60, 64, 72, 200, 76, 0, None),
}


def layout() -> Layout | None:
    """The layout for this interpreter, or None where there is none that we know."""
    usable = (
        sys.implementation.name == "cpython"
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and sys.platform.startswith("linux")
        and not hasattr(sys, "gettotalrefcount")
        and getattr(sys, "_is_gil_enabled", lambda: True)()
    )
    return LAYOUTS.get(sys.version_info[:2]) if usable else None


def _int32(address: int) -> int:
    return ctypes.c_int32.from_address(address).value


def _pointer(address: int) -> int | None:
    return ctypes.c_void_p.from_address(address).value


def code_int(code: Any, offset: int) -> ctypes.c_int32:
    """The 32-bit field of `code` at `offset`, writable."""
    return ctypes.c_int32.from_address(id(code) + offset)


def _frame_matches(at: Layout) -> bool:
    def probe(first: Any, second: Any, *rest: Any, third: int = 3, **others: Any) -> bool:
        frame = sys._getframe()
        base = _pointer(id(frame) + 24)
        assert base is not None
        code = probe.__code__
        instruction = _pointer(base + at.frame_instruction) or 0
        inside = 0 <= instruction - (id(code) + at.code_bytecode) < len(code.co_code)
        return (
            _pointer(base + at.frame_code) == id(code)
            and _pointer(base + at.frame_function) == id(probe)
            and _pointer(base + at.frame_locals) == id(first)
            and _pointer(base + at.frame_locals + 8) == id(second)
            and inside
        )

    return probe(object(), object())


def _code_matches(at: Layout) -> bool:
    code = _frame_matches.__code__.co_consts
    sample = next(c for c in code if hasattr(c, "co_code"))
    slots = len({*sample.co_varnames, *sample.co_cellvars}) + len(sample.co_freevars)
    raw = ctypes.c_ubyte.from_address(id(sample) + at.code_bytecode).value
    fits = (
        code_int(sample, at.code_flags).value == sample.co_flags
        and code_int(sample, at.code_argcount).value == sample.co_argcount
        and code_int(sample, at.code_kwonly).value == sample.co_kwonlyargcount
        and code_int(sample, at.code_stacksize).value == sample.co_stacksize
        and code_int(sample, at.code_localsplus).value == slots
        and raw == sample.co_code[0]
    )
    if at.code_framesize is not None:
        size = slots + sample.co_stacksize + SPECIAL_SLOTS
        fits = fits and code_int(sample, at.code_framesize).value == size
    return fits


def _thread_matches(at: Layout) -> bool:
    """The running frame must lie below the top of the data stack, and the top below its limit."""
    ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
    thread = ctypes.pythonapi.PyThreadState_Get()

    def probe(first: Any) -> bool:
        base = _pointer(id(sys._getframe()) + 24) or 0
        top = _pointer(thread + at.thread_stack_top) or 0
        limit = _pointer(thread + at.thread_stack_limit) or 0
        end = base + 8 * (SPECIAL_SLOTS + probe.__code__.co_nlocals + probe.__code__.co_stacksize)
        return base < end <= top + 64 and top <= limit and limit - top < (1 << 26)

    return probe(None)


def matches_this_interpreter(at: Layout) -> bool:
    """Whether known values read back through the layout are the expected ones."""
    try:
        return _code_matches(at) and _frame_matches(at) and _thread_matches(at)
    except (AttributeError, StopIteration, ValueError):
        return False
