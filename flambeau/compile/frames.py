"""Functions called from broken frames: the frame hook offers them, and they become sites too."""

from __future__ import annotations

import types
from typing import Any

import bytecode
from bytecode import FreeVar, Instr
from bytecode.flags import CompilerFlags

from flambeau.capture import frame_hook, trust
from flambeau.capture.bytecodes import (
    NULL_AFTER_CALLABLE,
    VERSION,
    UnknownBytecode,
    argument_names,
    assembled,
)
from flambeau.compile import sites


def entry_code(code: types.CodeType, target: Any) -> types.CodeType:
    """Code with the header of `code` whose body is `return target((free cells), *arguments)`."""
    names = argument_names(code)
    callee = [Instr("LOAD_CONST", target), Instr("PUSH_NULL")]
    body = [Instr("COPY_FREE_VARS", len(code.co_freevars))] if code.co_freevars else []
    body.append(Instr("RESUME", 0))
    body += callee if NULL_AFTER_CALLABLE else callee[::-1]
    load = "LOAD_FAST" if NULL_AFTER_CALLABLE else "LOAD_CLOSURE"
    body += [Instr(load, FreeVar(name)) for name in code.co_freevars]
    body.append(Instr("BUILD_TUPLE", len(code.co_freevars)))
    body += [Instr("LOAD_FAST", name) for name in names]
    if VERSION < (3, 12):
        body.append(Instr("PRECALL", len(names) + 1))
    body += [Instr("CALL", len(names) + 1), Instr("RETURN_VALUE")]
    made = bytecode.Bytecode(body)
    made.argnames = list(names)
    made.argcount, made.kwonlyargcount = code.co_argcount, code.co_kwonlyargcount
    made.posonlyargcount = code.co_posonlyargcount
    made.freevars = list(code.co_freevars)
    made.flags = CompilerFlags(code.co_flags)
    made.name, made.filename = code.co_name, code.co_filename
    made.first_lineno = code.co_firstlineno
    return assembled(made, len(names) + len(code.co_freevars) + 8)


class Offered:
    """The callback of a region: a frame's code object, or the one to run in its place."""

    def __init__(self, region: sites.Region):
        self.region = region
        self.replacements: dict[tuple, types.CodeType | None] = {}

    def __call__(
        self, function: types.FunctionType, code: types.CodeType, arguments: tuple
    ) -> types.CodeType | None:
        if getattr(sites.busy, "capturing", False):
            return None
        if not trust.offers_frames(code) or not sites.can_capture(code):
            frame_hook.skip(code)
            return None
        if code in trust.opaque_codes:
            frame_hook.skip(code)
            return None
        key = (code, id(function.__globals__))
        if key not in self.replacements:
            self.replacements[key] = self._replacement(function, code)
        site = self.region.site(code, function.__globals__)
        return None if site.skipped else self.replacements[key]

    def _replacement(
        self, function: types.FunctionType, code: types.CodeType
    ) -> types.CodeType | None:
        site = self.region.site(code, function.__globals__)
        try:
            made = entry_code(code, sites.Continuation(site))
        except UnknownBytecode:
            return None
        frame_hook.skip(made)
        frame_hook.reserve(code, made)
        return made
