"""Golden texts, and the round trip through the parser."""

import pytest

from flambeau.core.errors import ValueRangeError
from flambeau.loops.api import (
    Buf,
    Scalar,
    cast,
    check,
    const,
    guarded,
    nest,
    reduce,
    scan,
    size,
    store,
    unary,
)
from flambeau.loops.parse import parse
from flambeau.loops.text import program_text

X = Buf("x", (3, 5))
IDX = Buf("idx", (4,), "int64")
N = size("n", 1, 100)


def softmax(x):
    k = x.shape[1]

    def body(i):
        top = reduce("max", (k,), lambda r: x[i[:1] + r])
        total = reduce("add", (k,), lambda r: unary("exp", x[i[:1] + r] - top))
        return unary("exp", x[i] - top) / total

    return nest(x.shape, body)


PROGRAMS = dict(
    sum=[nest((3,), lambda i: reduce("add", (5,), lambda r: X[i + r]))],
    softmax=[softmax(X)],
    rows=[softmax(Buf("x", (N, 7)))],
    gather=[nest((4, 5), lambda i: X[check(IDX[i[:1]], 3, "embedding", True), i[1]])],
    scatter=[
        nest(
            (4, 5),
            lambda i: store(X, (check(IDX[i[:1]], 3, "add"), i[1]), const(1, "float32"), "add"),
        )
    ],
    pad=[nest((5, 5), lambda i: guarded((i[0] >= 1) & (i[0] < 4), X, (i[0] - 1, i[1]), -0.5))],
    argmax=[nest((3,), lambda i: reduce("argmax", (5,), lambda r: X[i + r]))],
    cumsum=[nest((3, 5), lambda i: scan("add", i[1], X[i]))],
    scalars=[nest((3, 5), lambda i: X[i] * Scalar("alpha", "float32") + float("inf"))],
    values=[nest((5,), lambda i: cast(i[0] * 3 - 2, "float32") * 0.5)],
    fill=[nest((3,), lambda i: const(True, "bool"))],
    strided=[nest((5, 3), lambda i: Buf("y", (5, 3), (1, 5))[i] - (X[i[::-1]] - 1.0))],
    two=[
        nest((3, 5), lambda i: X[i] + 1.0, out="t"),
        nest((3,), lambda i: reduce("mul", (5,), lambda r: Buf("t", (3, 5))[i + r])),
    ],
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_parsing_the_text_gives_the_nests_back(name):
    text = program_text(PROGRAMS[name])
    assert parse(text) == PROGRAMS[name]
    assert program_text(parse(text)) == text


def test_golden_sum():
    x = Buf("x", (2, 3, 4), None, "float64")
    n = nest((2, 4), lambda i: reduce("add", (3,), lambda r: x[i[0], r[0], i[1]]))
    assert str(n) == "for i0<2, i1<4: out[i0, i1] = add(r0<3: x[i0, r0, i1])"


def test_golden_program_names_what_is_shared():
    y = nest(
        (3, 5), lambda i: (X[i] - unary("exp", X[i] * 0.25)) * (X[i] - unary("exp", X[i] * 0.25))
    )
    assert program_text([y]) == (
        "x: float32[3, 5]\n"
        "out: float32[3, 5]\n"
        "for i0<3, i1<5:\n"
        "  a0 = x[i0, i1] - exp(x[i0, i1] * 0.25)\n"
        "  out[i0, i1] = a0 * a0"
    )


def test_strides_print_when_they_say_something():
    assert str(Buf("y", (5, 3), (1, 5))) == "y: float32[5, 3]{1, 5}"


def test_a_broken_text_names_the_place():
    with pytest.raises(ValueRangeError, match=r"parse: a known name is needed; got line=.*y"):
        parse("x: float32[3]\nfor i0<3: x[i0] = y + 1.0")
