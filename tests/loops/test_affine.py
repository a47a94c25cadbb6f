"""Index arithmetic: sums, quotients decided by ranges, and exhaustive agreement with Python."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from flambeau.core import dtype as dtypes
from flambeau.loops.affine import affine, bounds
from flambeau.loops.expr import apply, check, const, iterator, size

A, B = iterator("i", 6), iterator("j", 4)


def number(k):
    return const(k, dtypes.int64)


def evaluated(e, i, j):
    match e.kind:
        case "const":
            return e.attr
        case "iter":
            return {"i": i, "j": j}[e.attr[0]]
    x = [evaluated(a, i, j) for a in e.args]
    return {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "neg": lambda a: -a,
        "floordiv": lambda a, b: a // b,
        "mod": lambda a, b: a % b,
        "min": min,
        "max": max,
    }[e.kind](*x)


@st.composite
def indices(draw, depth=4):
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from([A, B, number(draw(st.integers(-9, 9)))]))
    name = draw(st.sampled_from(["add", "sub", "mul", "floordiv", "mod", "min", "max"]))
    left = draw(indices(depth=depth - 1))
    if name in ("floordiv", "mod"):
        return apply(name, left, number(draw(st.integers(1, 7))))
    if name == "mul":
        return apply(name, left, number(draw(st.integers(-4, 4))))
    return apply(name, left, draw(indices(depth=depth - 1)))


@given(indices())
def test_the_affine_form_has_the_same_value_everywhere(e):
    short = affine(e).expression()
    low, high = bounds(e)
    for i, j in itertools.product(range(6), range(4)):
        value = evaluated(e, i, j)
        assert evaluated(short, i, j) == value
        assert low <= value <= high


def test_a_view_of_a_view_is_plain_strides():
    flat = A * 4 + B
    assert affine(flat // 4).terms == {A: 1}
    assert affine(flat % 4).terms == {B: 1}
    assert affine((flat // 4) * 4 + flat % 4).terms == {A: 4, B: 1}


def test_quotients_that_do_not_come_out_stay():
    assert str(affine((A * 4 + B) // 3).expression()) == "floordiv(i * 4 + j, 3)"


def test_symbolic_sizes_are_coefficients():
    n = size("n", 1, 100)
    assert affine(A * n + B).coefficient(A) is n
    assert bounds(A * n) == (0, 500)


def test_a_check_that_ranges_prove_disappears():
    assert affine(check(A, 6, "gather")).terms == {A: 1}
    assert affine(check(A, 5, "gather")).terms != {A: 1}
