"""Every rule: it fires where it should, and never changes a bit of a result."""

import numpy as np
import pytest

from flambeau.ir.rewrite import Rewriter
from flambeau.loops import simplify
from flambeau.loops.api import Buf, apply, cast, const, nest, unary, where
from flambeau.loops.interpret import interpret
from flambeau.loops.simplify import RULES, simplified

FLOATS = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.5, 3.0, 1e-40, -7e-39, 3.4e38, 0.1], np.float32
)
X = Buf("x", (12,))
I = Buf("i", (256,), None, "int8")  # noqa: E741
B = Buf("b", (2,), None, "bool")
DATA = dict(x=FLOATS, i=np.arange(-128, 128).astype(np.int8), b=np.array([False, True]))


def number(value):
    return const(value, "float32")


# rule -> (buffer, expressions of its element that it must shorten)
CASES = dict(
    times_one=(X, [lambda x: x * 1.0, lambda x: 1.0 * x, lambda x: x / 1.0]),
    plus_nothing=(X, [lambda x: x - 0.0, lambda x: x + -0.0, lambda x: -0.0 + x]),
    times_zero=(I, [lambda i: i * 0, lambda i: 0 * i]),
    by_power_of_two=(X, [lambda x: x / 4.0, lambda x: x / -0.125, lambda x: x / 2.0**60]),
    undone=(I, [lambda i: unary("neg", -i), lambda i: ~(~i)]),
    sign_dropped=(X, [lambda x: unary("abs", -x), lambda x: unary("abs", unary("abs", x))]),
    there_and_back=(
        I,
        [lambda i: cast(cast(i, "int32"), "int8"), lambda i: cast(cast(i, "int64"), "int8")],
    ),
    decided=(X, [lambda x: where(x < 0.0, x, x), lambda x: where(const(True, "bool"), x, 1.0)]),
    with_constant=(
        B,
        [
            lambda b: b & True,
            lambda b: b | False,
            lambda b: b & b,
            lambda b: b & False,
            lambda b: b | True,
        ],
    ),
    of_itself=(X, [lambda x: apply("max", x, x), lambda x: apply("min", x, x)]),
    small_powers=(X, [lambda x: x**1.0, lambda x: x**2.0]),
    folded=(
        I,
        [
            lambda i: i + (const(100, "int8") + const(100, "int8")),
            lambda i: i * (const(3, "int8") * const(100, "int8")),
        ],
    ),
    constant_cast=(X, []),
)


def test_every_rule_has_a_case():
    assert set(CASES) == {r.name for r in RULES}
    assert all(r.equation for r in RULES)


@pytest.mark.parametrize(
    "name, at", [(n, k) for n, (_, cases) in CASES.items() for k in range(len(cases))]
)
def test_rule_keeps_every_bit(name, at):
    buf, cases = CASES[name]
    before = nest(buf.shape, lambda i: cases[at](buf[i]))
    rewriter = Rewriter(RULES)
    rewriter.one(before.stores[0].value)
    assert rewriter.fired[name] >= 1
    old, new = interpret(before, DATA)["out"], interpret(simplified(before), DATA)["out"]
    fine = np.ones(old.shape, bool) if old.dtype.kind != "f" else ~np.isnan(old)
    assert old[fine].tobytes() == new[fine].tobytes()
    np.testing.assert_array_equal(np.isnan(old), np.isnan(new)) if old.dtype.kind == "f" else None


@pytest.mark.parametrize(
    "body",
    [
        lambda x: x + 0.0,
        lambda x: x * 0.0,
        lambda x: x / 3.0,
        lambda x: x / 2.0**120,
        lambda x: cast(cast(x, "float16"), "float32"),
    ],
)
def test_what_would_change_a_bit_stays(body):
    before = nest(X.shape, lambda i: body(X[i]))
    assert simplified(before) is before


def test_roots_and_reciprocals_are_pytorchs():
    root = simplified(nest(X.shape, lambda i: X[i] ** 0.5)).stores[0].value
    inverse = simplified(nest(X.shape, lambda i: X[i] ** -1.0)).stores[0].value
    assert (root.kind, inverse.kind) == ("sqrt", "div")


def test_is_const_tells_zeros_apart():
    assert simplify.is_const(number(0.0), 0.0) and not simplify.is_const(number(0.0), -0.0)
