"""Matrix products against float64 NumPy."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from flambeau.codegen import target, templates
from flambeau.codegen.templates.epilogue import AddMatrix, Pointwise, relu
from flambeau.codegen.templates.tail import Tail
from flambeau.codegen.text import Function, Value
from flambeau.loops.api import Buf, nest, unary
from flambeau.runtime import pool
from tests.codegen.templates.conftest import Guarded, relative

SHAPES = [
    (1, 1, 1),
    (64, 256, 784),
    (37, 45, 61),
    (100, 130, 1700),
    (1, 100, 50),
    (3, 10, 1),
    (130, 97, 533),
    (50, 1, 100),
    (6, 9, 1030),
]


def product(a: np.ndarray, b: np.ndarray, trans_a: bool, trans_b: bool) -> np.ndarray:
    x, y = a.astype("f8"), b.astype("f8")
    return (x.T if trans_a else x) @ (y.T if trans_b else y)


def operands(rng, m, n, k, trans_a, trans_b, dtype="float32"):
    a = rng.standard_normal((k, m) if trans_a else (m, k)).astype(dtype)
    b = rng.standard_normal((n, k) if trans_b else (k, n)).astype(dtype)
    return a, b


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("trans", [(False, False), (True, False), (False, True), (True, True)])
def test_product_of_every_orientation(rng, shape, trans):
    m, n, k = shape
    a, b = operands(rng, m, n, k, *trans)
    c = Guarded((m, n))
    templates.gemm(m, n, k, "float32", *trans)(a.ctypes.data, b.ctypes.data, c.address)
    assert relative(c.check(), product(a, b, *trans)) < 3e-6


@pytest.mark.parametrize("dtype, bound", [("float32", 3e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("shape", [(37, 45, 61), (3, 50, 33), (20, 9, 700)])
def test_every_level_of_features(level, rng, dtype, bound, shape):
    m, n, k = shape
    a, b = operands(rng, m, n, k, False, True, dtype)
    c = Guarded((m, n), dtype)
    templates.gemm(m, n, k, dtype, trans_b=True)(a.ctypes.data, b.ctypes.data, c.address)
    assert relative(c.check(), product(a, b, False, True)) < bound


@pytest.mark.parametrize("k", [40, 1500])
def test_alpha_beta_and_bias_with_relu(rng, k):
    m, n = 33, 70
    a, b = operands(rng, m, n, k, False, False)
    bias = rng.standard_normal(n).astype("float32")
    old = rng.standard_normal((m, n)).astype("float32")
    c = Guarded((m, n))
    c.array[...] = old
    program = templates.gemm(m, n, k, alpha=0.5, beta=2.0, epilogue="bias_relu")
    program(a.ctypes.data, b.ctypes.data, c.address, bias.ctypes.data)
    expected = np.maximum(0.5 * product(a, b, False, False) + 2.0 * old + bias, 0)
    assert relative(c.check(), expected) < 3e-6


def test_beta_zero_ignores_what_is_there(rng):
    a, b = operands(rng, 20, 40, 1500, False, False)
    c = Guarded((20, 40))  # full of NaN
    templates.gemm(20, 40, 1500)(a.ctypes.data, b.ctypes.data, c.address)
    assert np.isfinite(c.check()).all()


def test_relu_keeps_nan(rng):
    a, b = operands(rng, 8, 40, 16, False, False)
    a[3, 2] = np.nan
    c = Guarded((8, 40))
    templates.gemm(8, 40, 16, epilogue="relu")(a.ctypes.data, b.ctypes.data, c.address)
    assert np.isnan(c.check()[3]).all()
    assert np.isfinite(np.delete(c.array, 3, 0)).all()


def test_epilogue_of_ones_own_and_residual(rng):
    def doubled(f: Function, x: Value) -> Value:
        return f.fadd(relu(f, x), relu(f, x))

    m, n, k = 30, 37, 20
    a, b = operands(rng, m, n, k, False, False)
    residual = rng.standard_normal((m, 50)).astype("float32")
    bias = rng.standard_normal(n).astype("float32")
    c = Guarded((m, n))
    epilogue = AddMatrix(50, Pointwise("bias_doubled", doubled, bias=True))
    program = templates.gemm(m, n, k, epilogue=epilogue)
    program(a.ctypes.data, b.ctypes.data, c.address, residual.ctypes.data, bias.ctypes.data)
    expected = 2 * np.maximum(product(a, b, False, False) + residual[:, :n] + bias, 0)
    assert relative(c.check(), expected) < 3e-6


def test_leading_dimensions(rng):
    m, n, k = 30, 37, 20
    a, b = operands(rng, m, 50, k, False, False)
    c = Guarded((m, 45))
    c.array[...] = 1
    program = templates.gemm(m, n, k, lda=k, ldb=50, ldc=45)
    program(a.ctypes.data, b.ctypes.data, c.address)
    assert relative(c.check()[:, :n], product(a, b, False, False)[:, :n]) < 3e-6
    assert (c.array[:, n:] == 1).all()


def test_batch_with_broadcast(rng):
    a = rng.standard_normal((3, 5, 7, 20)).astype("float32")
    b = rng.standard_normal((5, 20, 9)).astype("float32")
    c = Guarded((3, 5, 7, 9))
    program = templates.gemm(
        7, 9, 20, batch=(3, 5), batch_a=(700, 140), batch_b=(0, 180), batch_c=(315, 63)
    )
    program(a.ctypes.data, b.ctypes.data, c.address)
    assert relative(c.check(), a.astype("f8") @ b.astype("f8")) < 3e-6


def test_few_large_products(rng):
    a = rng.standard_normal((1, 200, 300)).astype("float32")
    b = rng.standard_normal((1, 300, 250)).astype("float32")
    c = Guarded((1, 200, 250))
    program = templates.gemm(200, 250, 300, batch=(1,), batch_a=(0,), batch_b=(0,), batch_c=(0,))
    program(a.ctypes.data, b.ctypes.data, c.address)
    assert relative(c.check(), a.astype("f8") @ b.astype("f8")) < 3e-6


@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3), (5, 3, 0)])
def test_empty_sizes(rng, shape):
    m, n, k = shape
    a, b = operands(rng, m, n, k, False, False)
    c = Guarded((m, n))
    templates.gemm(m, n, k)(a.ctypes.data, b.ctypes.data, c.address)
    assert (c.check() == 0).all()


def test_same_bits_for_any_number_of_threads(rng):
    a, b = operands(rng, 150, 200, 1200, False, True)
    before, results = pool.get_num_threads(), []
    try:
        for threads in (1, 2):
            pool.set_num_threads(threads)
            c = Guarded((150, 200))
            program = templates.gemm(150, 200, 1200, trans_b=True)
            program(a.ctypes.data, b.ctypes.data, c.address)
            results.append(c.check().copy())
    finally:
        pool.set_num_threads(before)
    assert np.array_equal(*results)


@pytest.mark.parametrize("batch", [(), (1,), (2,)])
def test_columns_of_pages_are_packed_in_blocks_of_rows(level, rng, batch):
    """Rows of the stored A are whole pages apart, k and rows take several blocks."""
    m, n, k = 1024, 70, 1100
    a = rng.standard_normal((*batch, k, m), "f4")
    b = rng.standard_normal((*batch, k, n), "f4")
    before, results = pool.get_num_threads(), []
    steps = dict(batch_a=(k * m,), batch_b=(k * n,), batch_c=(m * n,)) if batch else {}
    try:
        for threads in (1, 2):
            pool.set_num_threads(threads)
            c = Guarded((*batch, m, n))
            program = templates.gemm(m, n, k, trans_a=True, batch=batch, **steps)
            program(a.ctypes.data, b.ctypes.data, c.address)
            results.append(c.check().copy())
    finally:
        pool.set_num_threads(before)
    assert relative(results[0], np.swapaxes(a, -1, -2).astype("f8") @ b.astype("f8")) < 3e-6
    assert np.array_equal(*results)


def test_one_callable_per_signature():
    assert templates.gemm(5, 6, 7) is templates.gemm(5, 6, 7)
    with target.restricted("baseline"):
        assert templates.gemm(5, 6, 7) is not templates.gemm(5, 6, 8)


def test_wrong_arguments_raise(rng):
    program = templates.gemm(5, 6, 7)
    with pytest.raises(TypeError, match="takes 3 arguments but 1 were given"):
        program(1)
    with pytest.raises(TypeError):
        program("a", "b", "c")


BFLOAT = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture(params=["tiles", "dot", "widened"])
def bfloat_target(request):
    """bfloat16 with everything this machine has, without tiles, and without dot products."""
    chosen = target.host()
    if request.param != "tiles":
        chosen = replace(chosen, bfloat16_tiles=False)
    if request.param == "widened":
        chosen = replace(chosen, bfloat16_dot=False)
    target._chosen.append(chosen)
    yield chosen
    target._chosen.pop()


def test_bfloat16_at_every_level(level, rng):
    a, b = operands(rng, 33, 21, 50, False, True, BFLOAT)
    a[3, 4] = np.nan
    c = Guarded((33, 21), BFLOAT)
    templates.gemm(33, 21, 50, "bfloat16", False, True)(a.ctypes.data, b.ctypes.data, c.address)
    got = c.check().astype("f8")
    assert np.isnan(got[3]).all()
    expected = product(a, b, False, True)
    assert relative(np.delete(got, 3, 0), np.delete(expected, 3, 0)) < 5e-3


@pytest.mark.parametrize("trans", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("shape", [(64, 64, 64), (45, 37, 61), (5, 9, 33), (1, 1, 1)])
def test_bfloat16(bfloat_target, rng, shape, trans):
    m, n, k = shape
    a, b = operands(rng, m, n, k, *trans, BFLOAT)
    c = Guarded((m, n), BFLOAT)
    templates.gemm(m, n, k, "bfloat16", *trans)(a.ctypes.data, b.ctypes.data, c.address)
    assert relative(c.check().astype("f8"), product(a, b, *trans)) < 5e-3


def test_bfloat16_with_float32_result(bfloat_target, rng):
    m, n, k = 33, 70, 130
    a, b = operands(rng, m, n, k, False, True, BFLOAT)
    bias, old = rng.standard_normal(n, "f4"), rng.standard_normal((m, n), "f4")
    c = Guarded((m, n))
    c.array[...] = old
    program = templates.gemm(
        m, n, k, "bfloat16", False, True, alpha=0.5, beta=2.0, epilogue="bias_relu",
        out_dtype="float32",
    )  # fmt: skip
    program(a.ctypes.data, b.ctypes.data, c.address, bias.ctypes.data)
    expected = np.maximum(0.5 * product(a, b, False, True) + 2.0 * old + bias, 0)
    assert relative(c.check(), expected) < 3e-6


def test_bfloat16_batch_and_bias(bfloat_target, rng):
    a = rng.standard_normal((5, 30, 40)).astype(BFLOAT)
    b = rng.standard_normal((40, 20)).astype(BFLOAT)
    bias = rng.standard_normal(20).astype(BFLOAT)
    c = Guarded((5, 30, 20), BFLOAT)
    program = templates.gemm(
        30, 20, 40, "bfloat16", batch=(5,), batch_a=(1200,), batch_b=(0,), batch_c=(600,),
        epilogue="bias",
    )  # fmt: skip
    program(a.ctypes.data, b.ctypes.data, c.address, bias.ctypes.data)
    expected = a.astype("f8") @ b.astype("f8") + bias.astype("f8")
    assert relative(c.check().astype("f8"), expected) < 5e-3


def tail_of(m, n, body, buffers, dtype="float32"):
    """The tail that stores body(product, *buffers) to c, each buffer (m, n) or (n,)."""
    c, made = (Buf(name, (m, n), None, dtype) for name in ("c", "product"))
    others = [Buf(name, shape, None, dtype) for name, shape in buffers.items()]
    return Tail(nest((m, n), lambda i: body(made[i], *[b.at(i) for b in others]), out=c),
                tuple(buffers))


@pytest.mark.parametrize("m, n, k", [(37, 45, 61), (3, 50, 33), (20, 9, 1700), (1, 100, 50)])
@pytest.mark.parametrize("dtype, bound", [("float32", 3e-6), ("float64", 1e-13)])
def test_a_tail_works_on_stored_tiles(level, rng, m, n, k, dtype, bound):
    a, b = operands(rng, m, n, k, False, True, dtype)
    bias = rng.standard_normal(n).astype(dtype)
    other = rng.standard_normal((m, n)).astype(dtype)
    tail = tail_of(m, n, lambda c, p0, p1: unary("tanh", c + p0) * p1,
                   {"p0": (n,), "p1": (m, n)}, dtype)
    c = Guarded((m, n), dtype)
    program = templates.gemm(m, n, k, dtype, trans_b=True, tail=tail)
    program(*(x.ctypes.data for x in (a, b)), c.address, bias.ctypes.data, other.ctypes.data)
    expected = np.tanh(product(a, b, False, True) + bias) * other
    assert relative(c.check(), expected) < bound * 10


def test_a_tail_may_store_several_results(rng):
    m, n, k = 33, 70, 600
    a, b = operands(rng, m, n, k, False, False)
    c, other = Guarded((m, n)), Guarded((m, n))
    x, y, z = (Buf(name, (m, n)) for name in ("product", "c", "p0"))
    made = nest((m, n), lambda i: (x[i] + 1.0, x[i] * 2.0), out=(y, z))
    program = templates.gemm(m, n, k, tail=Tail(made, ("p0",)))
    program(a.ctypes.data, b.ctypes.data, c.address, other.address)
    expected = product(a, b, False, False)
    assert relative(c.check(), expected + 1) < 3e-6
    assert relative(other.check(), expected * 2) < 3e-6
