"""The canonical instruction set that the interpreter executes.

`program(code)` turns the listing of a code object into a tuple of `Instruction`, index for index,
so that a place means the same here and where code is assembled. Names that differ between versions
and mean the same are one name; what differs in meaning keeps its own.
"""

from __future__ import annotations

import functools
import types
from typing import Any, NamedTuple

from bytecode import Instr, Label, TryBegin, TryEnd

from flambeau.capture.bytecodes import NULL_AFTER_CALLABLE, listing

NOTHING = frozenset("CACHE COPY_FREE_VARS EXTENDED_ARG NOP PRECALL RESUME RETURN_GENERATOR".split())
"""Without effect on the state that the interpreter models."""

SAME = {
    "JUMP_FORWARD": "JUMP",
    "JUMP_BACKWARD": "JUMP",
    "JUMP_BACKWARD_NO_INTERRUPT": "JUMP",
    "LOAD_CLASSDEREF": "LOAD_DEREF",
    "LOAD_CLOSURE": "LOAD_FAST",
    "LOAD_FAST_CHECK": "LOAD_FAST",
}


class Handler(NamedTuple):
    """Where an exception goes: cut the stack to `depth`, push the place if asked, jump."""

    target: int
    depth: int
    push_lasti: bool


class Instruction:
    """One canonical instruction; `target` is the index that a jump leads to."""

    __slots__ = ("arg", "handler", "line", "name", "target")

    def __init__(self, name: str, arg: Any = None, target: int = -1, line: int | None = None):
        self.name = name
        self.arg = arg
        self.target = target
        self.line = line
        self.handler: Handler | None = None

    def __repr__(self) -> str:
        to = f" -> {self.target}" if self.target >= 0 else ""
        return f"{self.name} {self.arg!r}{to}"


def _name(name: str) -> str:
    if name in NOTHING:
        return "NOP"
    return SAME.get(name, name.replace("_FORWARD_", "_").replace("_BACKWARD_", "_"))


def _arg(instruction: Instr) -> Any:
    """The argument with variables as names and flags that carry no meaning here removed."""
    arg = instruction.arg
    if instruction.name in ("LOAD_ATTR", "LOAD_GLOBAL") and isinstance(arg, tuple):
        return arg[-1]
    if instruction.name == "LOAD_SUPER_ATTR":
        return arg[-1]
    if type(arg).__name__ in ("CellVar", "FreeVar"):
        return arg.name
    return arg


@functools.lru_cache(maxsize=4096)
def program(code: types.CodeType) -> tuple[Instruction, ...]:
    """The canonical instructions of `code`, one for each element of its listing."""
    source = listing(code)
    place = {id(x): k for k, x in enumerate(source) if isinstance(x, Label)}
    result: list[Instruction] = []
    active: list[TryBegin] = []
    line = code.co_firstlineno
    for element in source:
        if isinstance(element, Instr):
            line = element.lineno if isinstance(element.lineno, int) else line
            made = Instruction(_name(element.name), None, -1, line)
            if isinstance(element.arg, Label):
                made.target = place[id(element.arg)]
            else:
                made.arg = _arg(element)
            if active:
                inner = active[-1]
                depth = inner.stack_depth
                assert isinstance(depth, int)
                made.handler = Handler(place[id(inner.target)], depth, inner.push_lasti)
        else:
            made = Instruction("NOP", None, -1, line)
            if isinstance(element, TryBegin):
                active.append(element)
            elif isinstance(element, TryEnd):
                active = [a for a in active if a is not element.entry]
        result.append(made)
    return tuple(result)


def after_loop(code: types.CodeType, target: int) -> int:
    """Where a finished FOR_ITER continues: behind the END_FOR (and POP_TOP) that it skips."""
    instructions = program(code)
    for skipped in ("END_FOR", "POP_TOP")[: 1 + NULL_AFTER_CALLABLE]:
        at = target
        while instructions[at].name == "NOP":
            at += 1
        if instructions[at].name != skipped:
            return target
        target = at + 1
    return target
