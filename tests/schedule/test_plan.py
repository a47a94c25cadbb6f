"""Golden trees: which loops there are, in which order, and which is a vector."""

import pytest

from flambeau.loops.api import Buf, check, const, maximum, nest, reduce, scan, store, unary
from flambeau.schedule.fuse import fused
from flambeau.schedule.machine import Machine
from flambeau.schedule.plan import planned

MACHINE = Machine(vector_bytes=64, registers=32, masked_memory=True)


def trees(*nests, outside=None):
    """The text of every kernel."""
    names = outside or tuple({s.buf.name for n in nests for s in n.stores})
    return [str(p) for group in fused(nests, names, MACHINE) for p in planned(list(group), MACHINE)]


def loops(*nests, outside=None):
    """Only the loop headers, one string a kernel."""
    return [
        [line.strip() for line in t.splitlines() if line.strip().startswith("for ")]
        for t in trees(*nests, outside=outside)
    ]


def test_a_dense_tensor_of_any_rank_is_one_loop():
    x, y = Buf("x", (2, 3, 4, 64)), Buf("y", (2, 3, 4, 64))
    assert trees(nest(x.shape, lambda i: x[i] + y[i])) == [
        "for i0<1536 by 64:\n  out[i0] = x@[i0] + y@[i0]"
    ]


def test_permuted_operands_alike_are_one_loop_too():
    strides = (64, 1, 256, 8)
    x = Buf("x", (4, 8, 3, 8), strides)
    out = Buf("out", (4, 8, 3, 8), strides)
    assert loops(nest(x.shape, lambda i: x[i] * 2.0, out=out)) == [["for i2<768 by 64:"]]


def test_a_broadcast_row_keeps_two_loops():
    x, b = Buf("x", (32, 100)), Buf("b", (100,))
    assert loops(nest(x.shape, lambda i: x[i] + b[i[1:]])) == [["for i0<32, i1<100 by 64:"]]


def test_a_transposed_operand_is_read_in_blocks():
    x, y = Buf("x", (64, 64)), Buf("y", (64, 64))
    assert loops(nest(x.shape, lambda i: x[i] + y[i[::-1]])) == [["for i0<64 by 64, i1<64 by 16:"]]


def test_a_reshape_of_a_strided_view_is_split():
    x = Buf("x", (6, 32), (1, 6))
    assert loops(nest((192,), lambda i: x[i[0] // 32, i[0] % 32])) == [
        ["for i0h<6 by 16, i0l<32 by 16:"]
    ]


def test_row_folds_are_vectors_along_the_row():
    x = Buf("x", (32, 256))
    assert loops(nest((32,), lambda i: reduce("add", (256,), lambda r: x[i + r]))) == [
        ["for i0<32:", "for r0<256 by 64:"]
    ]


def test_column_folds_are_vectors_across_the_columns():
    x = Buf("x", (32, 256))
    assert loops(nest((256,), lambda i: reduce("add", (32,), lambda r: x[r + i]))) == [
        ["for i0<256 by 64:", "for r0<32:"]
    ]


def softmax(x, dim):
    n = x.shape[dim]

    def body(i):
        def at(r):
            return x[i[:dim] + r + i[dim + 1 :]]

        top = reduce("max", (n,), at)
        total = reduce("add", (n,), lambda r: unary("exp", at(r) - top))
        return unary("exp", x[i] - top) / total

    return nest(x.shape, body)


def test_softmax_is_three_passes_over_a_row_with_one_exponential():
    (text,) = trees(softmax(Buf("x", (64, 256)), 1))
    assert text == (
        "for i0<64:\n"
        "  for r0<256 by 64:\n"
        "    fold max(r0<256: x@[i0 * 256 + r0])\n"
        "  for r0<256 by 64:\n"
        "    row.r0.256.0.float32[r0] = exp(x@[i0 * 256 + r0] - max(r0<256: x@[i0 * 256 + r0]))\n"
        "    fold add(r0<256: exp(x@[i0 * 256 + r0] - max(r0<256: x@[i0 * 256 + r0])))\n"
        "  for r0<256 by 32:\n"
        "    out[i0 * 256 + r0] = div(row.r0.256.0.float32@[r0], "
        "add(r0<256: exp(x@[i0 * 256 + r0] - max(r0<256: x@[i0 * 256 + r0]))))"
    )


def test_softmax_down_the_columns_is_a_vector_of_columns():
    assert loops(softmax(Buf("x", (32, 256)), 0)) == [
        ["for i0<256 by 64:", "for r0<32:", "for r0<32:", "for r0<32:"]
    ]


def test_independent_folds_of_one_row_share_a_pass():
    x = Buf("x", (64, 256))

    def body(i):
        low = reduce("min", (256,), lambda r: x[i + r])
        return reduce("max", (256,), lambda r: x[i + r]) - low

    assert loops(nest((64,), body)) == [["for i0<64:", "for r0<256 by 64:"]]


def test_a_large_fold_is_cut_for_threads():
    x = Buf("x", (1 << 20,))
    assert loops(nest((), lambda i: reduce("add", (1 << 20,), lambda r: x[r]))) == [
        ["for c<7:", "for r0p<min(149824, c * -149824 + 1048576) by 64:"],
        ["for c<7 by 8:"],
    ]


def test_few_columns_of_many_rows_are_cut_too():
    x = Buf("x", (1 << 17, 16))
    first, second = loops(nest((16,), lambda i: reduce("add", (1 << 17,), lambda r: x[r + i])))
    assert first[0].startswith("for c<") and second == [
        "for i0<16 by 16:",
        f"for {first[0][4:].split(',')[0]}:",
    ]


def test_scans_run_last_and_alone():
    x = Buf("x", (32, 256))
    assert loops(nest(x.shape, lambda i: scan("add", i[0], x[i]))) == [
        ["for i1<256 by 64:", "for i0<32:"]
    ]
    assert loops(nest(x.shape, lambda i: scan("add", i[1], x[i]))) == [
        ["for i0<32:", "for i1<256 by 16:"]
    ]


def test_scattered_rows_are_visited_in_order():
    w, g = Buf("w", (50, 256)), Buf("g", (1000, 256))
    idx = Buf("idx", (1000,), "int64")
    n = nest(g.shape, lambda i: store(w, (check(idx[i[:1]], 50, "embedding"), i[1]), g[i], "add"))
    (plan,) = planned([n], MACHINE)
    assert loops(n) == [["for i1<256 by 64, i0<1000:"]]
    assert [i.attr[0] for i in plan.chunks.iters] == ["i1"]


def test_scatter_to_single_elements_stays_on_one_thread():
    w, g, idx = Buf("w", (50,)), Buf("g", (1000,)), Buf("idx", (1000,), "int64")
    n = nest((1000,), lambda i: store(w, (check(idx[i], 50, "bincount"),), g[i], "add"))
    (plan,) = planned([n], MACHINE)
    assert plan.chunks is None


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_empty_domains_plan(shape):
    x = Buf("x", shape)
    assert trees(nest(shape, lambda i: x[i] + 1.0))


# fusion -------------------------------------------------------------------------------------------


def test_a_pointwise_chain_is_one_kernel():
    x = Buf("x", (1000,))
    a = nest((1000,), lambda i: maximum(x[i], 0.0), out="a")
    b = nest((1000,), lambda i: a[i] * 2.0, out="b")
    c = nest((1000,), lambda i: b[i] + x[i], out="c")
    assert loops(a, b, c, outside=("x", "c")) == [["for i0<1000 by 64:"]]


def test_layer_norm_written_as_five_nests_is_one_kernel():
    x, w = Buf("x", (64, 256)), Buf("w", (256,))
    mean = nest((64,), lambda i: reduce("add", (256,), lambda r: x[i + r]) / 256, out="mean")
    d = nest(x.shape, lambda i: x[i] - mean[i[:1]], out="d")
    var = nest(
        (64,), lambda i: reduce("add", (256,), lambda r: d[i + r] * d[i + r]) / 256, out="var"
    )
    h = nest(x.shape, lambda i: d[i] * unary("rsqrt", var[i[:1]] + 1e-5), out="h")
    y = nest(x.shape, lambda i: h[i] * w[i[1:]], out="y")
    assert loops(mean, d, var, h, y, outside=("x", "w", "y")) == [
        ["for i0<64:", "for r0<256 by 64:", "for r0<256 by 64:", "for r0<256 by 64:"]
    ]


def test_statistics_that_are_wanted_too_join_the_kernel():
    x = Buf("x", (64, 256))
    mean = nest((64,), lambda i: reduce("add", (256,), lambda r: x[i + r]) / 256, out="mean")
    d = nest(x.shape, lambda i: x[i] - mean[i[:1]], out="d")
    (text,) = trees(mean, d, outside=("x", "mean", "d"))
    assert "mean[i0] =" in text and text.count("fold") == 1


def test_two_results_of_one_domain_share_their_loads():
    x = Buf("x", (1000,))
    a = nest((1000,), lambda i: unary("exp", x[i]), out="a")
    b = nest((1000,), lambda i: a[i] + 1.0, out="b")
    (text,) = trees(a, b, outside=("x", "a", "b"))
    assert text.count("for ") == 1 and text.count("exp(x@[i0])") == 2


def test_a_fold_that_threads_must_share_is_not_inlined():
    x = Buf("x", (1 << 20,))
    total = nest((), lambda i: reduce("add", x.shape, lambda r: x[r]), out="total")
    y = nest(x.shape, lambda i: x[i] / total[()], out="y")
    assert len(loops(total, y, outside=("x", "y"))) == 3


def test_a_costly_value_is_not_computed_many_times():
    x = Buf("x", (100,))
    a = nest((100,), lambda i: unary("exp", x[i]), out="a")
    y = nest((1000, 100), lambda i: a[i[1:]] * 2.0, out="y")
    assert len(loops(a, y, outside=("x", "y"))) == 2


def test_a_buffer_written_over_in_between_is_not_inlined():
    x = Buf("x", (1000,))
    a = nest((1000,), lambda i: x[i] + 1.0, out="a")
    change = nest((1000,), lambda i: const(0, "float32"), out=x)
    b = nest((1000,), lambda i: a[i] * 2.0, out="b")
    assert len(loops(a, change, b, outside=("x", "b"))) >= 2


def test_folds_that_do_not_nest_are_kept_apart():
    x = Buf("x", (64, 64))
    rows = nest((64,), lambda i: reduce("add", (64,), lambda r: x[i + r]), out="rows")
    columns = nest((64,), lambda i: reduce("add", (64,), lambda r: x[r + i]), out="columns")
    y = nest(x.shape, lambda i: x[i] - rows[i[:1]] - columns[i[1:]], out="y")
    assert len(loops(rows, columns, y, outside=("x", "y"))) >= 2
