"""Instructions that build and take apart containers and strings."""

from __future__ import annotations

from typing import Any

from flambeau.capture.breaks import GraphBreak, UserError, foreign
from flambeau.capture.instructions import Instruction
from flambeau.capture.interpreter.frame import Frame, operation


@operation("BUILD_LIST")
def build_list(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(frame.run.session.note_created(frame.pops(instruction.arg)))


@operation("BUILD_TUPLE")
def build_tuple(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(tuple(frame.pops(instruction.arg)))


@operation("BUILD_SET")
def build_set(frame: Frame, instruction: Instruction) -> None:
    made = frame.run.session.note_created(set())
    for value in frame.pops(instruction.arg):
        frame.run.check_hashable(value)
        foreign(made.add, value)
    frame.stack.append(made)


@operation("BUILD_MAP")
def build_map(frame: Frame, instruction: Instruction) -> None:
    values = frame.pops(2 * instruction.arg)
    made = frame.run.session.note_created({})
    for key, value in zip(values[::2], values[1::2]):
        frame.run.set_item(made, key, value)
    frame.stack.append(made)


@operation("BUILD_CONST_KEY_MAP")
def build_const_key_map(frame: Frame, instruction: Instruction) -> None:
    keys = frame.stack.pop()
    made = dict(zip(keys, frame.pops(instruction.arg)))
    frame.stack.append(frame.run.session.note_created(made))


@operation("BUILD_SLICE")
def build_slice(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(slice(*frame.pops(instruction.arg)))


@operation("BUILD_STRING")
def build_string(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append("".join(frame.pops(instruction.arg)))


CONVERSIONS = {0: None, 1: str, 2: repr, 3: ascii}


@operation("FORMAT_VALUE")
def format_value(frame: Frame, instruction: Instruction) -> None:
    flags = int(instruction.arg)
    spec = frame.stack.pop() if flags & 4 else ""
    value = frame.stack.pop()
    convert = CONVERSIONS[flags & 3]
    if convert is not None:
        value = frame.run.call(convert, (value,))
    frame.stack.append(frame.run.call(format, (value, spec)))


@operation("CONVERT_VALUE")
def convert_value(frame: Frame, instruction: Instruction) -> None:
    convert = CONVERSIONS[int(instruction.arg)]
    if convert is not None:
        frame.stack.append(frame.run.call(convert, (frame.stack.pop(),)))


@operation("FORMAT_SIMPLE")
def format_simple(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(frame.run.call(format, (frame.stack.pop(), "")))


@operation("FORMAT_WITH_SPEC")
def format_with_spec(frame: Frame, instruction: Instruction) -> None:
    value, spec = frame.pops(2)
    frame.stack.append(frame.run.call(format, (value, spec)))


@operation("LIST_APPEND")
def list_append(frame: Frame, instruction: Instruction) -> None:
    value = frame.stack.pop()
    frame.stack[-instruction.arg].append(value)


@operation("SET_ADD")
def set_add(frame: Frame, instruction: Instruction) -> None:
    value = frame.stack.pop()
    frame.run.check_hashable(value)
    foreign(frame.stack[-instruction.arg].add, value)


@operation("MAP_ADD")
def map_add(frame: Frame, instruction: Instruction) -> None:
    key, value = frame.pops(2)
    frame.run.set_item(frame.stack[-instruction.arg], key, value)


@operation("LIST_EXTEND")
def list_extend(frame: Frame, instruction: Instruction) -> None:
    values = frame.stack.pop()
    target = frame.stack[-instruction.arg]
    target.extend(frame.run.listed(values))


@operation("SET_UPDATE")
def set_update(frame: Frame, instruction: Instruction) -> None:
    values = frame.stack.pop()
    target = frame.stack[-instruction.arg]
    for value in frame.run.listed(values):
        frame.run.check_hashable(value)
        foreign(target.add, value)


@operation("DICT_UPDATE", "DICT_MERGE")
def dict_update(frame: Frame, instruction: Instruction) -> None:
    values = frame.run.mapping(frame.stack.pop())
    target = frame.stack[-instruction.arg]
    for key, value in values.items():
        if instruction.name == "DICT_MERGE" and key in target:
            raise UserError(TypeError(f"got multiple values for keyword argument {key!r}"))
        frame.run.set_item(target, key, value)


@operation("LIST_TO_TUPLE")
def list_to_tuple(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(tuple(frame.run.session.whole(frame.stack.pop())))


@operation("UNPACK_SEQUENCE")
def unpack_sequence(frame: Frame, instruction: Instruction) -> None:
    count = instruction.arg
    values = frame.run.listed(frame.stack.pop(), count + 1)
    if len(values) > count:
        raise UserError(ValueError(f"too many values to unpack (expected {count})"))
    if len(values) < count:
        text = f"not enough values to unpack (expected {count}, got {len(values)})"
        raise UserError(ValueError(text))
    frame.stack.extend(reversed(values))


@operation("UNPACK_EX")
def unpack_ex(frame: Frame, instruction: Instruction) -> None:
    before, after = instruction.arg & 0xFF, instruction.arg >> 8
    values = frame.run.listed(frame.stack.pop())
    if len(values) < before + after:
        text = (
            f"not enough values to unpack (expected at least {before + after}, got {len(values)})"
        )
        raise UserError(ValueError(text))
    end = len(values) - after
    middle = frame.run.session.note_created(values[before:end])
    frame.stack.extend(reversed([*values[:before], middle, *values[end:]]))


INTRINSICS: dict[str, Any] = {
    "INTRINSIC_LIST_TO_TUPLE": lambda run, value: tuple(run.session.whole(value)),
    "INTRINSIC_UNARY_POSITIVE": lambda run, value: run.unary("pos", value),
}


@operation("CALL_INTRINSIC_1")
def call_intrinsic_1(frame: Frame, instruction: Instruction) -> None:
    name = getattr(instruction.arg, "name", str(instruction.arg))
    if name == "INTRINSIC_STOPITERATION_ERROR":
        frame.stack.append(frame.run.stop_iteration_error(frame.stack.pop()))
        return
    if name not in INTRINSICS:
        raise GraphBreak(f"instruction {name}")
    frame.stack.append(INTRINSICS[name](frame.run, frame.stack.pop()))
