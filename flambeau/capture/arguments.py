"""Binding the arguments of a call to the slots of a function, with Python's errors."""

from __future__ import annotations

import types
from typing import Any

from flambeau.capture import trust
from flambeau.capture.breaks import UserError
from flambeau.capture.session import Session

VAR_POSITIONAL, VAR_KEYWORD = 0x04, 0x08


def _error(function: types.FunctionType, text: str) -> UserError:
    return UserError(TypeError(f"{function.__qualname__}() {text}"))


def _defaults(session: Session, function: types.FunctionType) -> tuple:
    values = function.__defaults__ or ()
    source = session.source(function)
    if not values or source is None or trust.is_trusted(function):
        return values
    return session.wrap(values, source.attribute("__defaults__"))


def _keyword_defaults(session: Session, function: types.FunctionType) -> dict:
    values = function.__kwdefaults__ or {}
    source = session.source(function)
    if not values or source is None or trust.is_trusted(function):
        return values
    return session.wrap(values, source.attribute("__kwdefaults__"))


def bound(
    session: Session, function: types.FunctionType, args: tuple, kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Slot name -> value; missing, surplus and doubled arguments raise TypeError."""
    code = function.__code__
    count, only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    slots: dict[str, Any] = dict(zip(names[:count], args))
    at = count + only
    if code.co_flags & VAR_POSITIONAL:
        slots[names[at]] = tuple(args[count:])
        at += 1
    elif len(args) > count:
        raise _error(function, f"takes {count} positional arguments but {len(args)} were given")
    rest: dict[str, Any] = session.note_created({})
    named = names[code.co_posonlyargcount : count + only]
    for name, value in kwargs.items():
        if name not in named:
            rest[name] = value
        elif name in slots:
            raise _error(function, f"got multiple values for argument {name!r}")
        else:
            slots[name] = value
    if code.co_flags & VAR_KEYWORD:
        slots[names[at]] = rest
    elif rest:
        raise _error(function, f"got an unexpected keyword argument {next(iter(rest))!r}")
    _fill_defaults(session, function, slots)
    return slots


def _fill_defaults(session: Session, function: types.FunctionType, slots: dict[str, Any]) -> None:
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    missing = [n for n in positional if n not in slots]
    if missing:
        values = _defaults(session, function)
        for name, value in zip(reversed(positional), reversed(values)):
            slots.setdefault(name, value)
        missing = [n for n in missing if n not in slots]
    only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    if any(n not in slots for n in only):
        values = _keyword_defaults(session, function)
        for name in only:
            if name not in slots and name in values:
                slots[name] = values[name]
        missing += [n for n in only if n not in slots]
    if missing:
        text = ", ".join(map(repr, missing))
        raise _error(function, f"missing {len(missing)} required arguments: {text}")
