"""Compiled nests against the interpreter: every shape of loop, layout and dtype."""

import numpy as np
import pytest

from flambeau.codegen import target as targets
from flambeau.codegen.kernel import compile_kernel
from flambeau.loops.api import (
    Buf,
    Scalar,
    apply,
    cast,
    check,
    const,
    guarded,
    maximum,
    minimum,
    nest,
    reduce,
    scan,
    size,
    store,
    unary,
    where,
)
from flambeau.runtime import pool

X = Buf("x", (37, 129))
LEVELS = ["native", "avx2", "baseline"]
DTYPES = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "uint32",
    "bool",
]


@pytest.fixture(params=LEVELS)
def target(request):
    with targets.restricted(request.param) as chosen:
        yield chosen


def softmax(x, dim):
    n = x.shape[dim]

    def body(i):
        def at(r):
            return x[i[:dim] + r + i[dim + 1 :]]

        top = reduce("max", (n,), at)
        total = reduce("add", (n,), lambda r: unary("exp", at(r) - top))
        return unary("exp", x[i] - top) / total

    return nest(x.shape, body)


def layer_norm(x, w, b):
    n = x.shape[-1]

    def body(i):
        mean = reduce("add", (n,), lambda r: x[i[:-1] + r]) / n
        var = reduce("add", (n,), lambda r: (x[i[:-1] + r] - mean) * (x[i[:-1] + r] - mean)) / n
        return (x[i] - mean) * unary("rsqrt", var + 1e-5) * w[i[-1:]] + b[i[-1:]]

    return nest(x.shape, body)


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 63, 64, 65, 129, 1000])
def test_tails_of_every_length(agree, n, target):
    x, y = Buf("x", (n,)), Buf("y", (n,))
    agree(nest((n,), lambda i: x[i] * 2.0 + y[i]), target=target)


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax(agree, dim, target):
    agree(softmax(X, dim), target=target)


def test_layer_norm(agree, target):
    agree(layer_norm(X, Buf("w", (129,)), Buf("b", (129,))), target=target, scale=4)


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(agree, name, target):
    u, v = Buf("u", (7, 33), None, name), Buf("v", (33, 7), (1, 33), name)
    if name != "bool":
        agree(nest((7, 33), lambda i: u[i] * u[i] - v[i[::-1]]), target=target)
    agree(nest((7,), lambda i: reduce("max", (33,), lambda r: u[i + r])), target=target)
    agree(nest((33,), lambda i: reduce("min", (7,), lambda r: u[r + i])), target=target)
    agree(nest((7, 33), lambda i: where(u[i] < v[i[::-1]], u[i], v[i[::-1]])), target=target)


@pytest.mark.parametrize("source", [*DTYPES, "uint16", "uint64"])
@pytest.mark.parametrize("wanted", [*DTYPES, "uint16", "uint64"])
def test_casts(agree, source, wanted):
    u = Buf("u", (50,), None, source)
    agree(nest((50,), lambda i: cast(u[i], wanted)))


@pytest.mark.parametrize(
    "combine", ["add", "mul", "max", "min", "any", "all", "xor", "argmax", "argmin"]
)
@pytest.mark.parametrize("name", ["float32", "int64", "uint8"])
@pytest.mark.parametrize("dim", [0, 1])
def test_folds(agree, combine, name, dim):
    if combine == "xor" and name == "float32":
        return
    x = Buf("x", (19, 70), None, name)
    n = x.shape[dim]
    agree(
        nest(
            x.shape[1 - dim : 2 - dim] if dim else x.shape[1:],
            lambda i: reduce(combine, (n,), lambda r: x[i + r] if dim else x[r + i]),
        ),
        scale=50,
    )


@pytest.mark.parametrize("combine", ["welford", "logaddexp"])
@pytest.mark.parametrize("dim", [0, 1])
def test_folds_of_several_values(agree, combine, dim, target):
    n = X.shape[dim]
    agree(
        nest(
            (X.shape[1 - dim],),
            lambda i: reduce(combine, (n,), lambda r: X[i + r] if dim else X[r + i]),
        ),
        scale=10,
        target=target,
    )


@pytest.mark.parametrize("combine", ["add", "mul", "max", "min", "argmax", "argmin", "logaddexp"])
@pytest.mark.parametrize("dim", [0, 1])
def test_scans(agree, combine, dim):
    x = Buf("x", (9, 21))
    agree(nest(x.shape, lambda i: scan(combine, i[dim], x[i])), scale=20)


def test_nan_wins_in_extremes(agree):
    given = np.arange(70, dtype=np.float32).reshape(2, 35)
    given[1, 11] = given[1, 30] = np.nan
    x = Buf("x", (2, 35))
    for combine in ("max", "min", "argmax", "argmin"):
        agree(nest((2,), lambda i, c=combine: reduce(c, (35,), lambda r: x[i + r])), dict(x=given))


def test_infinite_rows_of_logaddexp(agree):
    given = np.full((3, 20), -np.inf, np.float32)
    given[1, 3] = 2
    given[2, 5] = np.inf
    x = Buf("x", (3, 20))
    agree(nest((3,), lambda i: reduce("logaddexp", (20,), lambda r: x[i + r])), dict(x=given))


def test_welford_keeps_small_deviations_of_large_values():
    x = Buf("x", (3,), None, "float64")
    k = compile_kernel(nest((), lambda i: reduce("welford", (3,), lambda r: x[r])))
    a, mean, m2 = np.array([1e8, 1e8 + 8, 1e8 + 16]), np.zeros(()), np.zeros(())
    k.entry(a.ctypes.data, mean.ctypes.data, m2.ctypes.data)
    assert (mean, m2) == (1e8 + 8, 128)


@pytest.mark.parametrize("shape", [(32, 48), (37, 129), (5, 4), (64, 64), (100, 3), (130, 70)])
@pytest.mark.parametrize("name", ["float32", "float64", "int8", "bool", "bfloat16"])
def test_transposed_operands(agree, shape, name):
    y = Buf("y", shape, (1, shape[0]), name)
    z = Buf("z", shape, None, name)
    agree(nest(shape, lambda i: apply("max", y[i], z[i])))


@pytest.mark.parametrize("strides", [(258, 2), (1, 40), (0, 1), (1, 0), (0, 0), (129, 1)])
def test_strided_and_broadcast_operands(agree, strides, target):
    y = Buf("y", (37, 129), strides)
    agree(nest(X.shape, lambda i: X[i] - y[i]), target=target)


def test_strided_and_transposed_outputs(agree):
    agree(nest((129, 37), lambda i: X[i[::-1]] * 2.0, out=Buf("o", (129, 37), (1, 129))))
    agree(nest((37, 64), lambda i: X[i] * 2.0, out=Buf("o", (37, 64), (129, 2))))


def test_in_place(agree):
    agree(nest(X.shape, lambda i: X[i] * 0.5 + 1.0, out=X))


def test_two_outputs_that_swap(agree):
    y = Buf("y", (37, 129))
    agree(nest(X.shape, lambda i: (y[i], X[i]), out=(X, y)))


def test_views_of_views(agree):
    y = Buf("y", (37, 129), (1, 37))
    agree(nest((129 * 37,), lambda i: y[i[0] // 129, i[0] % 129]))
    agree(nest((10, 3), lambda i: X[(i[0] * 3 + i[1]) // 7, (i[0] * 3 + i[1]) % 7]))


def test_positions_as_values(agree, target):
    agree(nest((5, 70), lambda i: cast(i[0] * 70 + i[1], "float32") * 0.5), target=target)
    agree(nest((70,), lambda i: i[0] * 1_500_000_000), target=target)


def test_guarded_reads(agree, target):
    inside = nest(
        (41, 133),
        lambda i: guarded(
            (i[0] >= 2) & (i[0] < 39) & (i[1] >= 2) & (i[1] < 131), X, (i[0] - 2, i[1] - 2), 0.5
        ),
    )
    agree(inside, target=target)


def test_guarded_reads_of_an_empty_buffer(agree):
    empty = Buf("e", (0,))
    agree(nest((5,), lambda i: guarded(i[0] < 0, empty, (i[0],), 3.0)))


def test_gather_and_its_errors(agree, target):
    w, idx = Buf("w", (50, 33)), Buf("idx", (10,), None, "int64")
    n = nest((10, 33), lambda i: w[check(idx[i[:1]], 50, "embedding", True), i[1]])
    k = agree(n, dict(idx=np.arange(-5, 5) * 10), target=target)
    arrays = dict(
        w=np.zeros((50, 33), np.float32),
        idx=np.array([0, 1, 50, 2, 3, 4, 5, 6, 7, 8]),
        out=np.zeros((10, 33), np.float32),
    )
    with pytest.raises(
        IndexError, match="embedding: index out of range in self; got index=50, size=50"
    ):
        k.entry(*[arrays[p].ctypes.data for p in k.parameters])
    arrays["idx"][2] = -50
    k.entry(*[arrays[p].ctypes.data for p in k.parameters])


def test_gather_of_single_elements(agree, target):
    idx = Buf("idx", (75,), None, "int64")
    agree(
        nest((75,), lambda i: X[3, check(idx[i], 129, "gather")]),
        dict(idx=np.arange(75) % 100),
        target=target,
    )


@pytest.mark.parametrize("width", [1, 3, 64, 256])
def test_scatter_add_is_the_sum_in_order(agree, width):
    w, g, idx = Buf("w", (20, width)), Buf("g", (300, width)), Buf("idx", (300,), None, "int64")
    clear = nest((20, width), lambda i: const(0, "float32"), out=w)
    add = nest(
        (300, width), lambda i: store(w, (check(idx[i[:1]], 20, "index_add"), i[1]), g[i], "add")
    )
    agree([clear, add], dict(idx=np.arange(300) * 7 % 20), scale=4)


def test_scalars_and_bools(agree):
    alpha, flag = Scalar("alpha", "float32"), Scalar("flag", "bool")
    n = nest(X.shape, lambda i: where(flag, X[i] * alpha, X[i]))
    for on in (False, True):
        agree(n, alpha=2.5, flag=on)


def test_integer_scalars_are_exact(agree):
    x = Buf("x", (20,), None, "int64")
    agree(nest((20,), lambda i: x[i] + Scalar("k", "int64")), k=2**53 + 1)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 1000, 100_003])
def test_sizes_known_at_run_time(agree, n):
    length = size("n", 1)
    x = Buf("x", (length,))
    agree(nest((length,), lambda i: x[i] * 2.0 + 1.0), n=n)


@pytest.mark.parametrize("m, n", [(1, 3), (5, 7), (33, 1000)])
def test_softmax_of_sizes_known_at_run_time(agree, m, n):
    agree(softmax(Buf("x", (size("m", 1), size("n", 1))), 1), m=m, n=n)


def test_scratch_of_a_size_known_at_run_time(agree):
    n = size("n", 1)
    x = Buf("x", (n,))
    a = nest((n,), lambda i: unary("exp", x[i]), out="a")
    y = nest((300, n), lambda i: a[i[1:]] * cast(i[0], "float32"), out="y")
    k = agree([a, y], n=77)
    assert k.parameters == ("x", "y")


@pytest.mark.parametrize("op", ["floordiv", "mod", "truncdiv", "rem"])
@pytest.mark.parametrize("name", ["int8", "int32", "int64", "uint8", "float32", "float64"])
def test_division_of_all_signs_and_by_zero(agree, op, name):
    a, b = Buf("a", (15, 15), None, name), Buf("b", (15, 15), None, name)
    values = np.arange(15) - (7 if name[0] != "u" else 0)
    agree(
        nest(a.shape, lambda i: apply(op, a[i], b[i])), dict(a=values[:, None], b=values[None, :])
    )


def test_the_least_integer_by_minus_one(agree):
    a, b = Buf("a", (4,), None, "int64"), Buf("b", (4,), None, "int64")
    agree(
        nest((4,), lambda i: apply("floordiv", a[i], b[i])),
        dict(a=[-(2**63), -(2**63) + 1, 5, -5], b=[-1, -1, -1, 2]),
    )


@pytest.mark.parametrize("name", ["int8", "int64", "uint8"])
def test_shifts_and_bits(agree, name):
    a, b = Buf("a", (12, 70), None, name), Buf("b", (12, 70), None, name)
    for op in ("shl", "shr", "and", "or", "xor", "mulhi"):
        agree(
            nest(a.shape, lambda i, op=op: apply(op, a[i], b[i])),
            dict(b=np.broadcast_to(np.arange(70) % 9, (12, 70))),
        )


@pytest.mark.parametrize("name", ["int32", "int64", "uint8"])
def test_integer_powers(agree, name):
    a, b = Buf("a", (9, 9), None, name), Buf("b", (9, 9), None, name)
    low = 0 if name[0] == "u" else -4
    values = np.arange(9) + low
    agree(
        nest(a.shape, lambda i: apply("pow", a[i], b[i])),
        dict(a=values[:, None], b=values[None, :]),
    )


def test_predicates_and_signs(agree):
    given = np.tile(
        np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.5, 1e-40], np.float32), 10
    )
    x = Buf("x", (80,))
    for op in (
        "isnan",
        "isinf",
        "isfinite",
        "signbit",
        "sign",
        "floor",
        "ceil",
        "round",
        "trunc",
        "abs",
        "neg",
    ):
        agree(nest((80,), lambda i, op=op: unary(op, x[i])), dict(x=given))
    for op in (maximum, minimum):
        agree(nest((80,), lambda i, op=op: op(x[i], x[79 - i[0]])), dict(x=given))


def test_whole_tensors_and_their_pieces(agree):
    x = Buf("x", (200_003,), None, "float64")
    agree(nest((), lambda i: reduce("add", x.shape, lambda r: x[r])))
    agree(nest((), lambda i: reduce("welford", x.shape, lambda r: x[r])))
    agree(nest((), lambda i: reduce("argmin", x.shape, lambda r: x[r])))
    agree(nest((), lambda i: reduce("logaddexp", x.shape, lambda r: x[r])))
    y = Buf("y", (60_001, 5))
    agree(nest((5,), lambda i: reduce("add", (60_001,), lambda r: y[r + i])), scale=30)
    agree(softmax(Buf("z", (300_000,)), 0))


def test_results_do_not_depend_on_the_number_of_threads():
    x = Buf("x", (1 << 20,))
    kernels = [
        compile_kernel(nest((), lambda i: reduce("add", x.shape, lambda r: unary("sin", x[r])))),
        compile_kernel(softmax(x, 0)),
    ]
    a = np.random.default_rng(0).normal(size=1 << 20).astype(np.float32)
    before = pool.get_num_threads()
    for k in kernels:
        found = []
        for threads in (1, 2):
            pool.set_num_threads(threads)
            out = np.zeros_like(a)
            k.entry(a.ctypes.data, out.ctypes.data)
            found.append(out.tobytes())
        assert found[0] == found[1]
    pool.set_num_threads(before)


def test_fused_and_separate_kernels_give_the_same_bits():
    x = Buf("x", (1000,))
    a = nest((1000,), lambda i: x[i] * 1.1, out="a")
    b = nest((1000,), lambda i: a[i] + x[i], out="b")
    given = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    together, first, second = compile_kernel([a, b]), compile_kernel(a), compile_kernel(b)
    out, mid, again = np.zeros_like(given), np.zeros_like(given), np.zeros_like(given)
    together.entry(given.ctypes.data, out.ctypes.data)
    first.entry(given.ctypes.data, mid.ctypes.data)
    second.entry(mid.ctypes.data, given.ctypes.data, again.ctypes.data)
    assert out.tobytes() == again.tobytes()


def test_the_entry_checks_its_arguments():
    k = compile_kernel(nest((4,), lambda i: Buf("x", (4,))[i]))
    with pytest.raises(TypeError, match="kernel: takes 2 arguments; 1 were given"):
        k.entry(0)
    with pytest.raises(TypeError):
        k.entry("x", 0)


def test_parameters_in_the_callers_order(agree):
    k = agree(nest(X.shape, lambda i: X[i] + 1.0), parameters=("out", "x"))
    assert k.parameters == ("out", "x")


def test_the_source_is_the_fused_nests():
    k = compile_kernel(nest((4,), lambda i: Buf("x", (4,))[i] + 1.0))
    assert k.source == "for i0<4: out[i0] = x[i0] + 1.0"


def test_scratch_with_gaps_has_room_for_them(agree):
    x = Buf("x", (40,))
    a = nest((40,), lambda i: unary("exp", x[i]), out=Buf("a", (40,), (100,)))
    y = nest((30, 40), lambda i: a[i[1:]] * cast(i[0], "float32"), out="y")
    assert len(agree([a, y], parameters=("x", "y")).stages().plans) == 2


def test_equal_nests_share_a_kernel():
    def one():
        return compile_kernel(nest((4,), lambda i: Buf("x", (4,))[i] + 1.0))

    assert one() is one()


def test_a_kept_row_is_not_overwritten_while_it_is_read(agree, target):
    """The tanh that the first nest reads is kept in a row, and so is the exponential."""
    x, z = Buf("x", (37,)), Buf("z", ())
    kept = unary_of("tanh", x)
    first = nest((37,), lambda i: z[()] - kept(i), out="first")

    def softmax(i):
        top = reduce("max", (37,), kept)
        total = reduce("add", (37,), lambda r: unary("exp", kept(r) - top))
        return unary("exp", kept(i) - top) / total

    agree([first, nest((37,), softmax, out="second")], target=target)


def unary_of(name, x):
    return lambda i: unary(name, x[i])
