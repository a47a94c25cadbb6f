"""Decoding and assembling keep the meaning, where a plain round trip of the library does not."""

import argparse
import dis
import inspect
import textwrap
import types

import pytest

from flambeau.capture.bytecodes import VERSION, assembled, fresh_listing
from flambeau.capture.instructions import program


def round_trip(function):
    code = function.__code__
    made = assembled(fresh_listing(code), code.co_stacksize + 1)
    return types.FunctionType(
        made, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )


def nested_handlers(fail):
    log = []
    try:
        try:
            try:
                if fail:
                    raise KeyError("a")
            except KeyError as error:
                log.append(error.args)
                raise ValueError("b") from error
            finally:
                log.append("inner")
        except ValueError as error:
            log.append((type(error.__cause__).__name__, str(error)))
            with open("/dev/null") as handle:
                log.append(handle.closed)
        else:
            log.append("fine")
    finally:
        log.append("outer")
    return log


@pytest.mark.parametrize("fail", [True, False])
def test_exception_depths_survive(fail):
    assert round_trip(nested_handlers)(fail) == nested_handlers(fail)


def test_depths_are_those_of_the_original_table():
    code = nested_handlers.__code__
    made = assembled(fresh_listing(code), code.co_stacksize)
    before = [(e.depth, e.lasti) for e in dis._parse_exception_table(code)]
    assert [(e.depth, e.lasti) for e in dis._parse_exception_table(made)] == before


def test_more_than_fifteen_locals_can_be_put_in_front():
    names = [chr(ord("a") + k) for k in range(15)]
    source = f"def f({', '.join(names)}):\n  q = a\n  r = b\n  s = c\n  return q, r, s, (a, b)\n"
    space = {}
    exec(source, space)
    listing = fresh_listing(space["f"].__code__)
    listing.argnames = [f"z{k}" for k in range(16)] + listing.argnames
    listing.argcount += 16
    moved = types.FunctionType(assembled(listing, 40), {})
    assert moved(*range(16), *range(100, 115)) == (100, 101, 102, (100, 101))


def functions_of_the_library():
    for module in (argparse, textwrap, inspect):
        for value in vars(module).values():
            members = vars(value).values() if inspect.isclass(value) else [value]
            yield from (m for m in members if inspect.isfunction(m))


def test_library_functions_round_trip_and_decode():
    count = 0
    for function in functions_of_the_library():
        if function.__code__.co_flags & 0x20:
            continue
        code = function.__code__
        made = assembled(fresh_listing(code), code.co_stacksize)
        assert made.co_freevars == code.co_freevars
        assert made.co_varnames[: code.co_argcount] == code.co_varnames[: code.co_argcount]
        assert len(dis._parse_exception_table(made)) == len(dis._parse_exception_table(code))
        names = {instruction.name for instruction in program(code)}
        assert not any(n.startswith(("LOAD_METHOD", "POP_JUMP_FORWARD")) for n in names)
        count += 1
    assert count > 150


def test_text_wrapping_still_works_after_a_round_trip():
    wrap = round_trip(textwrap.TextWrapper._split_chunks)
    wrapper = textwrap.TextWrapper(width=10)
    assert wrap(wrapper, "one two three") == wrapper._split_chunks("one two three")


def test_method_loads_are_plain():
    def f(x):
        return x.strip().split(",")

    names = [i.name for i in program(f.__code__)]
    assert names.count("LOAD_ATTR") == 2 and names.count("PUSH_NULL") == 2
    assert ("SWAP" in names) == (VERSION < (3, 13))
