"""The oracle itself against NumPy."""

import numpy as np
import pytest

from flambeau.core.errors import IndexOutOfRange
from flambeau.loops.api import Buf, Scalar, check, guarded, nest, reduce, scan, size, store, unary
from flambeau.loops.interpret import interpret

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 6)).astype(np.float32)
X = Buf("x", (4, 6))


def run(n, **numbers):
    return interpret(n, {"x": A}, **numbers)


@pytest.mark.parametrize(
    "name, reference", [("add", np.sum), ("max", np.max), ("min", np.min), ("mul", np.prod)]
)
def test_folds(name, reference):
    n = nest((4,), lambda i: reduce(name, (6,), lambda r: X[i + r]))
    np.testing.assert_allclose(run(n)["out"], reference(A, 1), rtol=1e-6)


def test_argmax_is_the_first_and_nan_wins():
    x = A.copy()
    x[1, 3] = x[1, 5] = np.nan
    x[2] = 7
    n = nest((4,), lambda i: reduce("argmax", (6,), lambda r: X[i + r])[1])
    assert interpret(n, {"x": x})["out"].tolist() == [A[0].argmax(), 3, 0, A[3].argmax()]


def test_welford_is_mean_and_squared_deviations():
    out = run(nest((4,), lambda i: reduce("welford", (6,), lambda r: X[i + r])))
    np.testing.assert_allclose(out["out0"], A.mean(1), rtol=1e-6)
    np.testing.assert_allclose(out["out1"], A.var(1) * 6, rtol=1e-5)


def test_scans_run_along_their_loop():
    np.testing.assert_allclose(
        run(nest((4, 6), lambda i: scan("add", i[0], X[i])))["out"], A.cumsum(0), rtol=1e-5
    )
    values, at = (
        run(nest((4, 6), lambda i: scan("argmax", i[1], X[i])))[k] for k in ("out0", "out1")
    )
    np.testing.assert_array_equal(values, np.maximum.accumulate(A, 1))
    np.testing.assert_array_equal(np.take_along_axis(A, at, 1), values)


def test_nested_folds():
    n = nest((), lambda i: reduce("add", (4,), lambda r: reduce("max", (6,), lambda q: X[r + q])))
    np.testing.assert_allclose(run(n)["out"], A.max(1).sum(), rtol=1e-6)


def test_guarded_reads_nothing_outside():
    n = nest((6, 6), lambda i: guarded((i[0] >= 1) & (i[0] < 5), X, (i[0] - 1, i[1]), 9.0))
    np.testing.assert_array_equal(run(n)["out"], np.pad(A, ((1, 1), (0, 0)), constant_values=9))


def test_scatter_add_meets_in_order():
    idx, out = Buf("idx", (5,), "int64"), Buf("total", (3,))
    n = nest((5,), lambda i: store(out, (check(idx[i], 3, "scatter"),), X[0, i[0]], "add"))
    total = interpret(n, {"x": A, "idx": np.array([2, 0, 2, 2, 0])})["total"]
    np.testing.assert_allclose(
        total, [A[0, 1] + A[0, 4], 0, A[0, 0] + A[0, 2] + A[0, 3]], rtol=1e-6
    )


def test_indices_out_of_range_raise():
    idx = Buf("idx", (2,), "int64")
    n = nest((2,), lambda i: X[check(idx[i], 4, "embedding"), 0])
    with pytest.raises(
        IndexOutOfRange, match="embedding: index out of range in self; got index=-1, size=4"
    ):
        interpret(n, {"x": A, "idx": np.array([0, -1])})


def test_sizes_and_scalars_come_by_name():
    n = size("n", 1)
    x = Buf("x", (n, 6))
    made = interpret(nest((n, 6), lambda i: x[i] * Scalar("k", "float32")), {"x": A}, n=4, k=2.0)
    np.testing.assert_array_equal(made["out"], A * 2)


def test_float_folds_round_once():
    big = np.full((4, 6), 0.1, np.float32)
    n = nest((), lambda i: reduce("add", (4, 6), lambda r: X[r]))
    assert interpret(n, {"x": big})["out"] == np.float32(np.float32(0.1) * np.float64(24))


def test_sign_of_nan_is_zero():
    n = nest((4, 6), lambda i: unary("sign", X[i]))
    assert interpret(n, {"x": np.full((4, 6), np.nan, np.float32)})["out"].sum() == 0


def test_an_index_inside_and_outside_of_a_fold():
    """A quotient that a fold has needed is used again where the fold's dimensions are gone."""
    x, y = Buf("x", (3, 4)), Buf("y", (3, 2))

    def body(i):
        half = i[1] // 2
        return reduce("add", (4,), lambda r: x[i[0], r[0]] * y[i[0], half]) + y[i[0], half]

    a, b = np.arange(12.0).reshape(3, 4), np.arange(6.0).reshape(3, 2)
    nests = nest((3, 4), body, out=Buf("out", (3, 4)))
    got = interpret(nests, dict(x=a.astype(np.float32), y=b.astype(np.float32)))
    wanted = np.repeat(b, 2, axis=1) * (a.sum(1, keepdims=True) + 1)
    np.testing.assert_allclose(got["out"], wanted)
