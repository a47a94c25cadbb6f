"""Instructions that move values: the stack, variables, attributes, items."""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

from flambeau.capture.breaks import GraphBreak, UserError, foreign
from flambeau.capture.instructions import Instruction
from flambeau.capture.interpreter.frame import Frame, operation
from flambeau.capture.values import DELETED, MISSING, NULL, Unseen

# The stack ---------------------------------------------------------------------------------------


@operation("NOP", "END_FOR_")
def nop(frame: Frame, instruction: Instruction) -> None:
    pass


@operation("POP_TOP", "END_FOR")
def pop_top(frame: Frame, instruction: Instruction) -> None:
    frame.stack.pop()


@operation("PUSH_NULL")
def push_null(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(NULL)


@operation("COPY")
def copy(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(frame.stack[-instruction.arg])


@operation("SWAP")
def swap(frame: Frame, instruction: Instruction) -> None:
    stack, n = frame.stack, instruction.arg
    stack[-1], stack[-n] = stack[-n], stack[-1]


@operation("LOAD_CONST")
def load_const(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(instruction.arg)


# Local variables ---------------------------------------------------------------------------------


@operation("LOAD_FAST")
def load_fast(frame: Frame, instruction: Instruction) -> None:
    name = instruction.arg
    value = frame.slots.get(name, MISSING)
    if type(value) is Unseen:
        value = frame.slots[name] = value.look(frame.run.session)
    elif value is MISSING:
        value = frame.free.get(name, MISSING)
        if value is MISSING:
            text = f"cannot access local variable {name!r} where it is not associated with a value"
            raise UserError(UnboundLocalError(text))
        frame.cell(name)
    frame.stack.append(value)


@operation("LOAD_FAST_AND_CLEAR")
def load_fast_and_clear(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(frame.slots.pop(instruction.arg, NULL))


@operation("STORE_FAST", "STORE_FAST_MAYBE_NULL")
def store_fast(frame: Frame, instruction: Instruction) -> None:
    value = frame.stack.pop()
    if value is NULL:
        frame.slots.pop(instruction.arg, None)
    else:
        frame.slots[instruction.arg] = value


@operation("DELETE_FAST")
def delete_fast(frame: Frame, instruction: Instruction) -> None:
    name = instruction.arg
    if frame.slots.pop(name, MISSING) is MISSING:
        text = f"cannot access local variable {name!r} where it is not associated with a value"
        raise UserError(UnboundLocalError(text))


# Cells -------------------------------------------------------------------------------------------


@operation("MAKE_CELL")
def make_cell(frame: Frame, instruction: Instruction) -> None:
    name = instruction.arg
    value = frame.slots.pop(name, MISSING)
    if type(value) is Unseen:
        value = value.look(frame.run.session)
    frame.slots[name] = frame.run.session.new_cell(value)


@operation("LOAD_DEREF")
def load_deref(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(frame.read_cell(instruction.arg))


@operation("STORE_DEREF")
def store_deref(frame: Frame, instruction: Instruction) -> None:
    cell, source = frame.cell(instruction.arg)
    session = frame.run.session
    if source is not None:
        session.note(cell, source)
    session.write_cell(cell, frame.stack.pop())


@operation("DELETE_DEREF")
def delete_deref(frame: Frame, instruction: Instruction) -> None:
    frame.read_cell(instruction.arg)
    cell, source = frame.cell(instruction.arg)
    if source is not None:
        frame.run.session.note(cell, source)
    frame.run.session.write_cell(cell, DELETED)


# Globals -----------------------------------------------------------------------------------------


def globals_source(frame: Frame) -> Any:
    """The path to the frame's module variables."""
    session = frame.run.session
    name = frame.globals.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is not None and vars(module) is frame.globals:
        return session.constant(module).step("attribute", "__dict__")
    return session.constant(frame.globals)


@operation("LOAD_GLOBAL")
def load_global(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(global_value(frame, instruction.arg))


def global_value(frame: Frame, name: str) -> Any:
    session = frame.run.session
    value = session.read_global(frame.globals, globals_source(frame), name)
    if value is not MISSING:
        return value
    space = frame.globals.get("__builtins__", builtins)
    space = space if isinstance(space, dict) else vars(space)
    if name not in space:
        raise UserError(NameError(f"name {name!r} is not defined"))
    return space[name]


@operation("STORE_GLOBAL")
def store_global(frame: Frame, instruction: Instruction) -> None:
    frame.run.session.write_global(frame.globals, instruction.arg, frame.stack.pop())


@operation("DELETE_GLOBAL")
def delete_global(frame: Frame, instruction: Instruction) -> None:
    raise GraphBreak("deletion of a module variable")


# Attributes --------------------------------------------------------------------------------------


@operation("LOAD_ATTR")
def load_attr(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(frame.run.attributes.get(frame.stack.pop(), instruction.arg))


@operation("STORE_ATTR")
def store_attr(frame: Frame, instruction: Instruction) -> None:
    owner = frame.stack.pop()
    frame.run.attributes.set(owner, instruction.arg, frame.stack.pop())


@operation("DELETE_ATTR")
def delete_attr(frame: Frame, instruction: Instruction) -> None:
    frame.run.attributes.delete(frame.stack.pop(), instruction.arg)


@operation("LOAD_SUPER_ATTR")
def load_super_attr(frame: Frame, instruction: Instruction) -> None:
    kind, cls, instance = frame.pops(3)
    if kind is not super:
        raise GraphBreak("super is shadowed")
    made = foreign(super, cls, instance)
    frame.stack.append(frame.run.attributes.get(made, instruction.arg))


# Items -------------------------------------------------------------------------------------------


@operation("BINARY_SUBSCR")
def binary_subscr(frame: Frame, instruction: Instruction) -> None:
    key = frame.stack.pop()
    frame.stack.append(frame.run.get_item(frame.stack.pop(), key))


@operation("STORE_SUBSCR")
def store_subscr(frame: Frame, instruction: Instruction) -> None:
    value, owner, key = frame.pops(3)
    frame.run.set_item(owner, key, value)


@operation("DELETE_SUBSCR")
def delete_subscr(frame: Frame, instruction: Instruction) -> None:
    owner, key = frame.pops(2)
    frame.run.delete_item(owner, key)


@operation("BINARY_SLICE")
def binary_slice(frame: Frame, instruction: Instruction) -> None:
    owner, start, stop = frame.pops(3)
    frame.stack.append(frame.run.get_item(owner, slice(start, stop)))


@operation("STORE_SLICE")
def store_slice(frame: Frame, instruction: Instruction) -> None:
    value, owner, start, stop = frame.pops(4)
    frame.run.set_item(owner, slice(start, stop), value)


# Imports -----------------------------------------------------------------------------------------


@operation("IMPORT_NAME")
def import_name(frame: Frame, instruction: Instruction) -> None:
    names = frame.stack.pop()
    level = frame.stack.pop()
    name = instruction.arg
    if level == 0 and name not in sys.modules:
        raise GraphBreak(f"import of {name}, which is not loaded yet")
    module = foreign(__import__, name, frame.globals, None, names, level)
    frame.stack.append(module)


@operation("IMPORT_FROM")
def import_from(frame: Frame, instruction: Instruction) -> None:
    module, name = frame.stack[-1], instruction.arg
    if not hasattr(module, name):
        whole = f"{module.__name__}.{name}"
        if whole not in sys.modules:
            raise UserError(ImportError(f"cannot import name {name!r} from {module.__name__!r}"))
        frame.stack.append(sys.modules[whole])
        return
    assert isinstance(module, types.ModuleType)
    frame.stack.append(frame.run.attributes.get(module, name))
