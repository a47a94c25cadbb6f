"""Instructions that decide what runs next: jumps, loops, calls, exceptions, `with`, generators."""

from __future__ import annotations

import types
from typing import Any

from flambeau.capture.breaks import GraphBreak, UserError, foreign
from flambeau.capture.instructions import Instruction, after_loop
from flambeau.capture.interpreter.frame import (
    OPERATIONS,
    RETURNED,
    YIELDED,
    Frame,
    Operation,
    operation,
)
from flambeau.capture.values import MISSING, NULL, Unseen

# Jumps and loops ---------------------------------------------------------------------------------


@operation("JUMP")
def jump(frame: Frame, instruction: Instruction) -> None:
    frame.pc = instruction.target


def _jump_if(name: str, test: Any) -> None:
    def execute(frame: Frame, instruction: Instruction) -> None:
        if test(frame.run, frame.stack.pop()):
            frame.pc = instruction.target

    OPERATIONS[name] = execute


_jump_if("POP_JUMP_IF_TRUE", lambda run, value: run.truth(value))
_jump_if("POP_JUMP_IF_FALSE", lambda run, value: not run.truth(value))
_jump_if("POP_JUMP_IF_NONE", lambda run, value: value is None)
_jump_if("POP_JUMP_IF_NOT_NONE", lambda run, value: value is not None)


@operation("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def jump_or_pop(frame: Frame, instruction: Instruction) -> None:
    wanted = instruction.name == "JUMP_IF_TRUE_OR_POP"
    if frame.run.truth(frame.stack[-1]) is wanted:
        frame.pc = instruction.target
    else:
        frame.stack.pop()


@operation("GET_ITER")
def get_iter(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(frame.run.iterator(frame.stack.pop()))


@operation("FOR_ITER")
def for_iter(frame: Frame, instruction: Instruction) -> None:
    value = frame.run.next_of(frame.stack[-1])
    if value is MISSING:
        frame.stack.pop()
        frame.pc = after_loop(frame.code, instruction.target)
    else:
        frame.stack.append(value)


@operation("RETURN_VALUE")
def return_value(frame: Frame, instruction: Instruction) -> Any:
    return RETURNED


@operation("RETURN_CONST")
def return_const(frame: Frame, instruction: Instruction) -> Any:
    frame.stack.append(instruction.arg)
    return RETURNED


# Calls -------------------------------------------------------------------------------------------


@operation("KW_NAMES")
def kw_names(frame: Frame, instruction: Instruction) -> None:
    names = instruction.arg
    frame.keyword_names = frame.code.co_consts[names] if isinstance(names, int) else names


@operation("CALL")
def call(frame: Frame, instruction: Instruction) -> None:
    args = frame.pops(instruction.arg)
    names, frame.keyword_names = frame.keyword_names, ()
    _call(frame, args, names)


@operation("CALL_KW")
def call_kw(frame: Frame, instruction: Instruction) -> None:
    names = frame.stack.pop()
    _call(frame, frame.pops(instruction.arg), names)


def _call(frame: Frame, args: list, names: tuple[str, ...]) -> None:
    low, high = frame.pops(2)
    if low is NULL:
        function = high
    elif high is NULL:
        function = low
    else:
        function, args = low, [high, *args]
    positional = len(args) - len(names)
    if function is super and not args:
        frame.stack.append(zero_argument_super(frame))
        return
    keywords = dict(zip(names, args[positional:]))
    frame.stack.append(frame.run.call_from(frame, function, tuple(args[:positional]), keywords))


def zero_argument_super(frame: Frame) -> super:
    cls = frame.read_cell("__class__")
    first = frame.slots[frame.code.co_varnames[0]]
    if type(first) is Unseen:
        first = frame.slots[frame.code.co_varnames[0]] = first.look(frame.run.session)
    if isinstance(first, types.CellType):
        first = frame.run.session.read_cell(first, None)
    return foreign(super, cls, first)


@operation("CALL_FUNCTION_EX")
def call_function_ex(frame: Frame, instruction: Instruction) -> None:
    keywords = frame.run.mapping(frame.stack.pop()) if instruction.arg & 1 else {}
    args = tuple(frame.run.listed(frame.stack.pop()))
    low, high = frame.pops(2)
    function = high if low is NULL else low
    frame.stack.append(frame.run.call_from(frame, function, args, dict(keywords)))


@operation("MAKE_FUNCTION")
def make_function(frame: Frame, instruction: Instruction) -> None:
    code = frame.stack.pop()
    flags = instruction.arg if isinstance(instruction.arg, int) else 0
    parts = {bit: frame.stack.pop() for bit in (8, 4, 2, 1) if flags & bit}
    made = types.FunctionType(
        code, frame.globals, code.co_name, None, parts.get(8) or _no_cells(code)
    )
    made.__qualname__ = code.co_qualname
    made.__module__ = frame.globals.get("__name__")
    for bit, value in parts.items():
        set_function_part(made, bit, value)
    frame.stack.append(frame.run.session.note_created(made))


def _no_cells(code: types.CodeType) -> tuple | None:
    """Placeholder cells until SET_FUNCTION_ATTRIBUTE brings the real ones."""
    return tuple(types.CellType() for _ in code.co_freevars) or None


def set_function_part(made: types.FunctionType, bit: int, value: Any) -> None:
    if bit == 1:
        made.__defaults__ = value
    elif bit == 2:
        made.__kwdefaults__ = value
    elif bit == 4:
        made.__annotations__ = dict(zip(value[::2], value[1::2]))


@operation("SET_FUNCTION_ATTRIBUTE")
def set_function_attribute(frame: Frame, instruction: Instruction) -> None:
    made = frame.stack.pop()
    value = frame.stack.pop()
    bit = int(instruction.arg)
    if bit == 8:
        old = made
        made = types.FunctionType(
            old.__code__, old.__globals__, old.__name__, old.__defaults__, value
        )
        made.__qualname__, made.__module__ = old.__qualname__, old.__module__
        made.__kwdefaults__ = old.__kwdefaults__
        frame.run.session.note_created(made)
    else:
        set_function_part(made, bit, value)
    frame.stack.append(made)


@operation("LOAD_BUILD_CLASS")
def load_build_class(frame: Frame, instruction: Instruction) -> None:
    raise GraphBreak("a class is defined in the function", "Define it at module level.")


# Exceptions --------------------------------------------------------------------------------------


@operation("PUSH_EXC_INFO")
def push_exc_info(frame: Frame, instruction: Instruction) -> None:
    error = frame.stack.pop()
    frame.stack += [frame.handled, error]
    frame.handled = error


@operation("POP_EXCEPT")
def pop_except(frame: Frame, instruction: Instruction) -> None:
    frame.handled = frame.stack.pop()


@operation("CHECK_EXC_MATCH")
def check_exc_match(frame: Frame, instruction: Instruction) -> None:
    kinds = frame.stack.pop()
    frame.stack.append(foreign(isinstance, frame.stack[-1], kinds))


@operation("CHECK_EG_MATCH", "PREP_RERAISE_STAR")
def exception_group(frame: Frame, instruction: Instruction) -> None:
    raise GraphBreak("exception groups")


@operation("RERAISE")
def reraise(frame: Frame, instruction: Instruction) -> None:
    raise UserError(frame.stack.pop())


@operation("RAISE_VARARGS")
def raise_varargs(frame: Frame, instruction: Instruction) -> None:
    cause = frame.stack.pop() if instruction.arg > 1 else MISSING
    if not instruction.arg:
        if frame.handled is None:
            raise UserError(RuntimeError("No active exception to reraise"))
        raise UserError(frame.handled)
    error = frame.stack.pop()
    error = frame.run.call(error, ()) if isinstance(error, type) else error
    if not isinstance(error, BaseException):
        raise UserError(TypeError("exceptions must derive from BaseException"))
    if cause is not MISSING:
        error.__cause__ = frame.run.call(cause, ()) if isinstance(cause, type) else cause
    raise UserError(error)


@operation("LOAD_ASSERTION_ERROR")
def load_assertion_error(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(AssertionError)


# With --------------------------------------------------------------------------------------------


@operation("BEFORE_WITH")
def before_with(frame: Frame, instruction: Instruction) -> None:
    manager = frame.stack.pop()
    enter = frame.run.special(manager, "__enter__")
    leave = frame.run.special(manager, "__exit__")
    if enter is None or leave is None:
        kind = type(manager).__name__
        text = f"{kind!r} object does not support the context manager protocol"
        raise UserError(TypeError(text))
    frame.stack.append(leave)
    frame.stack.append(frame.run.call(enter, ()))


@operation("WITH_EXCEPT_START")
def with_except_start(frame: Frame, instruction: Instruction) -> None:
    error, leave = frame.stack[-1], frame.stack[-4]
    frame.stack.append(frame.run.call(leave, (type(error), error, error.__traceback__)))


# Generators --------------------------------------------------------------------------------------


@operation("YIELD_VALUE")
def yield_value(frame: Frame, instruction: Instruction) -> Any:
    return YIELDED


@operation("GET_YIELD_FROM_ITER")
def get_yield_from_iter(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(frame.run.iterator(frame.stack.pop()))


@operation("SEND")
def send(frame: Frame, instruction: Instruction) -> None:
    value, source = frame.stack.pop(), frame.stack[-1]
    try:
        if value is None:
            item = frame.run.next_of(source, stop=False)
        else:
            item = frame.run.call(frame.run.attributes.get(source, "send"), (value,))
    except UserError as error:
        if not isinstance(error.value, StopIteration):
            raise
        frame.run.finish_send(frame, error.value.value)
        frame.pc = instruction.target
        return
    frame.stack.append(item)


@operation("END_SEND")
def end_send(frame: Frame, instruction: Instruction) -> None:
    value = frame.stack.pop()
    frame.stack[-1] = value


@operation("CLEANUP_THROW")
def cleanup_throw(frame: Frame, instruction: Instruction) -> None:
    error = frame.stack.pop()
    if not isinstance(error, StopIteration):
        raise UserError(error)
    frame.pops(2)
    frame.stack += [None, error.value]


UNSUPPORTED = (
    "GET_AWAITABLE GET_AITER GET_ANEXT END_ASYNC_FOR BEFORE_ASYNC_WITH ASYNC_GEN_WRAP "
    "SETUP_ANNOTATIONS LOAD_NAME STORE_NAME IMPORT_STAR"
).split()


def _unsupported(name: str) -> Operation:
    def execute(frame: Frame, instruction: Instruction) -> None:
        raise GraphBreak(f"instruction {name}")

    return execute


for _name in UNSUPPORTED:
    OPERATIONS[_name] = _unsupported(_name)
