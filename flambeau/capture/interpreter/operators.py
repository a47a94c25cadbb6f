"""Operators, comparisons, tests, and pattern matching."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from flambeau.capture.breaks import GraphBreak, UserError, foreign
from flambeau.capture.instructions import Instruction
from flambeau.capture.interpreter.frame import OPERATIONS, Frame, operation

NAMES = "add and floordiv lshift matmul mul mod or pow rshift sub truediv xor".split()


def _function(name: str) -> Any:
    return getattr(operator, name + "_" if name in ("and", "or") else name)


BINARY = [(_function(n), f"__{n}__", f"__r{n}__", None) for n in NAMES]
INPLACE = [(getattr(operator, "i" + n), f"__{n}__", f"__r{n}__", f"__i{n}__") for n in NAMES]
BINARY_OPERATORS = BINARY + INPLACE
"""By the argument of BINARY_OP: function, method, reflected method, in-place method."""

COMPARISONS = {
    "LT": (operator.lt, "__lt__", "__gt__"),
    "LE": (operator.le, "__le__", "__ge__"),
    "EQ": (operator.eq, "__eq__", "__eq__"),
    "NE": (operator.ne, "__ne__", "__ne__"),
    "GT": (operator.gt, "__gt__", "__lt__"),
    "GE": (operator.ge, "__ge__", "__le__"),
}


@operation("BINARY_OP")
def binary_op(frame: Frame, instruction: Instruction) -> None:
    right, left = frame.stack.pop(), frame.stack.pop()
    function, method, reflected, inplace = BINARY_OPERATORS[int(instruction.arg)]
    frame.stack.append(frame.run.binary(function, left, right, method, reflected, inplace))


@operation("COMPARE_OP")
def compare_op(frame: Frame, instruction: Instruction) -> None:
    right, left = frame.stack.pop(), frame.stack.pop()
    name = instruction.arg.name
    function, method, reflected = COMPARISONS[name.removesuffix("_CAST")]
    value = frame.run.compare(function, left, right, method, reflected)
    frame.stack.append(frame.run.truth(value) if name.endswith("_CAST") else value)


@operation("IS_OP")
def is_op(frame: Frame, instruction: Instruction) -> None:
    right, left = frame.stack.pop(), frame.stack.pop()
    frame.stack.append(frame.run.identical(left, right) is not bool(instruction.arg))


@operation("CONTAINS_OP")
def contains_op(frame: Frame, instruction: Instruction) -> None:
    container, value = frame.stack.pop(), frame.stack.pop()
    frame.stack.append(frame.run.contains(container, value) is not bool(instruction.arg))


@operation("UNARY_NOT")
def unary_not(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(not frame.run.truth(frame.stack.pop()))


@operation("TO_BOOL")
def to_bool(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(frame.run.truth(frame.stack.pop()))


def _unary(name: str, word: str) -> None:
    def execute(frame: Frame, instruction: Instruction) -> None:
        frame.stack.append(frame.run.unary(word, frame.stack.pop()))

    OPERATIONS[name] = execute


_unary("UNARY_NEGATIVE", "neg")
_unary("UNARY_POSITIVE", "pos")
_unary("UNARY_INVERT", "invert")


@operation("GET_LEN")
def get_len(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(frame.run.call(len, (frame.stack[-1],)))


@operation("MATCH_SEQUENCE")
def match_sequence(frame: Frame, instruction: Instruction) -> None:
    kind = frame.run.type_of(frame.stack[-1])
    texts = (str, bytes, bytearray)
    frame.stack.append(issubclass(kind, Sequence) and not issubclass(kind, texts))


@operation("MATCH_MAPPING")
def match_mapping(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(issubclass(frame.run.type_of(frame.stack[-1]), Mapping))


@operation("MATCH_KEYS")
def match_keys(frame: Frame, instruction: Instruction) -> None:
    keys, subject = frame.stack[-1], frame.stack[-2]
    if not isinstance(subject, dict):
        raise GraphBreak("a mapping pattern on a user's class")
    found = all(key in subject for key in keys)
    frame.stack.append(tuple(subject[k] for k in keys) if found else None)


@operation("MATCH_CLASS")
def match_class(frame: Frame, instruction: Instruction) -> None:
    subject, cls, names = frame.pops(3)
    frame.stack.append(_class_values(frame.run, subject, cls, names, instruction.arg))


def _class_values(run: Any, subject: Any, cls: type, names: tuple, count: int) -> tuple | None:
    if not run.call(isinstance, (subject, cls)):
        return None
    if count:
        if cls in (bool, bytes, dict, float, int, list, str, tuple, set, frozenset):
            if count != 1:
                raise UserError(TypeError(f"{cls.__name__}() accepts 1 positional sub-pattern"))
            return (subject,)
        match_args = foreign(getattr, cls, "__match_args__", ())
        if count > len(match_args):
            raise UserError(TypeError(f"{cls.__name__}() accepts {len(match_args)} sub-patterns"))
        names = (*match_args[:count], *names)
    values = []
    for name in names:
        try:
            values.append(run.attributes.get(subject, name))
        except UserError as error:
            if isinstance(error.value, AttributeError):
                return None
            raise
    return tuple(values)
