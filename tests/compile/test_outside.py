"""What a frame reads of an argument is what it holds in that call, whatever class it is of."""

import collections
import datetime
import decimal
import enum
import fractions
import functools
import operator
import pathlib
import types

import numpy as np
import pytest

import flambeau as torch
from flambeau.compile import config

A = torch.ones(2)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Text(str):
    pass


class Count(int):
    pass


class Rate(float):
    pass


class Table(dict):
    pass


class Thing:
    pass


ONE, OTHER = Thing(), Thing()
KNOWN = [ONE]
NUMBERS = {ONE: 1}
Pair = collections.namedtuple("Pair", "left right")


def first(x):
    return x


twin = types.FunctionType(first.__code__, first.__globals__, "twin")

CASES = {
    "array scalar": (lambda v: A * v, [np.float32(2), np.float32(3), np.float64(4)]),
    "array scalar decides": (lambda v: A + 1 if v > 2 else A, [np.int64(2), np.int64(3)]),
    "array scalar as float": (lambda v: A * float(v), [np.float32(2), np.float32(3)]),
    "array scalar zero": (lambda v: A / v, [np.float32(0.0), np.float32(-0.0)]),
    "array bool": (lambda v: A + 1 if v else A, [np.bool_(True), np.bool_(False)]),
    "array date": (lambda v: (A + 1, str(v)), [np.datetime64("2020-01-01"), np.datetime64("2021")]),
    "array scalar inside": (lambda v: A + v[0], [(np.float32(1),), (np.float32(2),)]),
    "array type": (lambda v: A + v.itemsize, [np.dtype("f4"), np.dtype("f8")]),
    "ufunc": (lambda v: A + float(v(1.0)), [np.exp, np.sin]),
    "slice": (lambda v: A[v] + 1, [slice(0, 1), slice(0, 2), slice(1, 2)]),
    "slice parts": (lambda v: A + v.stop, [slice(0, 1), slice(0, 2)]),
    "slice inside": (lambda v: A[v[0]] + 1, [[slice(0, 1)], [slice(0, 2)]]),
    "proxy": (lambda v: A + v["k"], [types.MappingProxyType({"k": k}) for k in (1, 2)]),
    "keys": (lambda v: (A, list(v)), [{1: 2}.keys(), {3: 4}.keys()]),
    "values": (lambda v: A + sum(v), [{1: 2}.values(), {3: 4}.values()]),
    "items": (lambda v: (A, [k for k, _ in v]), [{1: 2}.items(), {3: 4}.items()]),
    "exception": (lambda v: (A, v.args, str(v)), [ValueError(1), ValueError(2)]),
    "decimal": (lambda v: (A * float(v), v + 1), [decimal.Decimal("1"), decimal.Decimal("1.0")]),
    "fraction": (lambda v: A * float(v), [fractions.Fraction(1, 2), fractions.Fraction(1, 3)]),
    "date": (lambda v: A * v.day, [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]),
    "path": (lambda v: (A + 1, v.name), [pathlib.Path("/x/y"), pathlib.Path("/x/z")]),
    "partial": (lambda v: v(A), [functools.partial(torch.mul, other=k) for k in (2, 3)]),
    "partial's function": (lambda v: v(A), [functools.partial(f) for f in (first, torch.neg)]),
    "partial's parts": (lambda v: A + v.args[0], [functools.partial(first, k) for k in (1, 2)]),
    "item getter": (lambda v: A + v((1, 2)), [operator.itemgetter(0), operator.itemgetter(1)]),
    "text of a subclass": (lambda v: (A + len(v), v.upper()), [Text("a"), Text("bc")]),
    "integer of a subclass": (lambda v: (A + v, v + 1), [Count(1), Count(2)]),
    "float of a subclass": (lambda v: (A * v, v + 1), [Rate(1), Rate(2)]),
    "dict of a subclass": (lambda v: (A, sorted(v.items()), "j" in v), [Table(k=1), Table(j=3)]),
    "named tuple": (lambda v: A + v.left, [Pair(1, 2), Pair(2, 2)]),
    "member is": (lambda v: A + 1 if v is Colour.RED else A, [Colour.BLUE, Colour.RED]),
    "member equals": (lambda v: A + 1 if v == Colour.RED else A, [Colour.BLUE, Colour.RED]),
    "member of numbers": (lambda v: A + v, [Level.LOW, Level.HIGH]),
    "object is": (lambda v: A + 1 if v is ONE else A, [OTHER, ONE]),
    "object equals": (lambda v: A + 1 if v == ONE else A, [OTHER, ONE]),
    "object differs": (lambda v: A + 1 if v != ONE else A, [OTHER, ONE]),
    "object in a list": (lambda v: A + 1 if v in KNOWN else A, [OTHER, ONE]),
    "object as a key": (lambda v: A + 1 if v in NUMBERS else A, [OTHER, ONE]),
    "object looked up": (lambda v: A + NUMBERS.get(v, 5), [OTHER, ONE]),
    "function is": (lambda v: A + 1 if v is first else A, [twin, first]),
    "cell": (lambda v: A + v.cell_contents, [types.CellType(1), types.CellType(2)]),
}


@pytest.mark.parametrize("name", CASES)
def test_each_call_sees_its_own_argument(name, monkeypatch):
    monkeypatch.setattr(config, "raise_internal_errors", True)
    function, values = CASES[name]
    compiled = torch.compile(function, backend="eager")
    for value in values + values:
        assert repr(compiled(value)) == repr(function(value))


@pytest.mark.parametrize("name", ["array scalar", "slice", "partial", "object is", "member is"])
def test_equal_arguments_need_no_other_capture(name):
    function, values = CASES[name]
    compiled = torch.compile(function, backend="eager", fullgraph=True)
    compiled(values[0])
    assert torch.compiler.explain_recompile(compiled, values[0]) == []
