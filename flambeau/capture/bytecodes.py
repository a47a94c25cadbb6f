"""One listing of a code object that can be interpreted, analysed and assembled again.

`listing` decodes a code object of CPython 3.11 to 3.13 into a flat list of `bytecode` instructions
in which every instruction does one thing: method loads are attribute loads that push NULL, the
super-instructions of 3.13 are split, and the depths of the exception table are kept. The index into
this list is how the whole capture layer names a place in a function.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator

import bytecode
from bytecode import Instr, TryBegin

VERSION = sys.version_info[:2]
NULL_AFTER_CALLABLE = VERSION >= (3, 13)
"""3.13 pushes the callable and then NULL or self; earlier versions push NULL first."""

PAIRS = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}


class UnknownBytecode(Exception):
    """The code object cannot be taken apart and put together again with the same meaning."""


def decoded(code: types.CodeType) -> bytecode.Bytecode:
    """The instructions of `code` with the stack depths of its exception table.

    `Bytecode.from_code` forgets the depths, and a plain round trip can then crash the interpreter.
    """
    import dis

    try:
        instructions = bytecode.Bytecode.from_code(code)
    except Exception as error:
        raise UnknownBytecode(f"{code.co_qualname}: {error}") from error
    table = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    begins = [x for x in instructions if isinstance(x, TryBegin)]
    if [e.lasti for e in table] != [b.push_lasti for b in begins]:
        raise UnknownBytecode(f"{code.co_qualname}: its exception table does not survive decoding")
    for entry, begin in zip(table, begins):
        begin.stack_depth = entry.depth
    return instructions


def null_pushed(load: Instr) -> list[Instr]:
    """`load` and a NULL, in the order in which this version's calls expect them."""
    null = Instr("PUSH_NULL", location=load.location)
    if NULL_AFTER_CALLABLE:
        return [load, null]
    return [load, null, Instr("SWAP", 2, location=load.location)]


def _plain(instruction: Instr) -> list[Instr]:
    """The same effect as `instruction`, one thing at a time."""
    name, arg, where = instruction.name, instruction.arg, instruction.location
    if name == "LOAD_METHOD":
        return null_pushed(Instr("LOAD_ATTR", arg, location=where))
    if name == "LOAD_ATTR" and isinstance(arg, tuple) and arg[0]:
        return null_pushed(Instr("LOAD_ATTR", (False, arg[1]), location=where))
    if name == "LOAD_SUPER_ATTR" and arg[0]:
        return null_pushed(Instr("LOAD_SUPER_ATTR", (False, *arg[1:]), location=where))
    if name == "LOAD_GLOBAL" and arg[0]:
        load = Instr("LOAD_GLOBAL", (False, arg[1]), location=where)
        null = Instr("PUSH_NULL", location=where)
        return [load, null] if NULL_AFTER_CALLABLE else [null, load]
    if name in PAIRS:
        # Two indices of four bits: wrong code as soon as a local is renumbered past 15.
        return [Instr(n, a, location=where) for n, a in zip(PAIRS[name], arg)]
    return [instruction]


def _split(instructions: bytecode.Bytecode) -> Iterator[object]:
    for instruction in instructions:
        if isinstance(instruction, Instr):
            yield from _plain(instruction)
        else:
            yield instruction


def fresh_listing(code: types.CodeType) -> bytecode.Bytecode:
    """A listing that the caller may change."""
    instructions = decoded(code)
    instructions[:] = list(_split(instructions))
    return instructions


listing = functools.lru_cache(maxsize=4096)(fresh_listing)
"""The listing of a code object, shared: not to be changed."""


def assembled(instructions: bytecode.Bytecode, stacksize: int) -> types.CodeType:
    """The code object of a listing; the exception table keeps the depths it was given."""
    try:
        return instructions.to_code(stacksize=stacksize, compute_exception_stack_depths=False)
    except Exception as error:
        raise UnknownBytecode(f"{instructions.name}: {error}") from error


def argument_names(code: types.CodeType) -> tuple[str, ...]:
    """Names of the arguments of `code` in the order of their slots, `*args` and `**kwargs` last."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_varnames[:count]
