"""The text builder: folding, value numbering, loops, and that LLVM accepts it all."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from flambeau.codegen.text import Module, Value, constant, constants, mangled, size_of, vector, zero
from flambeau.runtime import jit, pool

VECTOR = "<8 x float>"


def compiled(module: Module, name: str, result, *parameters):
    return jit.load(module.text()).function(name, result, *parameters)


def lines(module: Module, operation: str) -> int:
    return sum(f" = {operation} " in line for line in module.text().splitlines())


def test_types():
    assert vector(1, "float") == "float" and vector(8, "float") == VECTOR
    assert mangled(VECTOR) == "v8f32" and mangled("i64") == "i64" and mangled("ptr") == "p0"
    assert size_of(VECTOR) == 32 and size_of("bfloat") == 2


@pytest.mark.parametrize("number", [0.1, -0.0, float("inf"), 1e-45, 3.4e38, 1e300])
def test_float_constants_are_exact(number):
    module = Module()
    f = module.function("f", [("ptr", "p")], exported=True)
    with np.errstate(over="ignore"):
        expected = np.array([number], "f4")
    f.store(constant(number, "float"), f.arguments[0])
    f.ret()
    out = np.ones(1, "f4")
    compiled(module, "f", None, ctypes.c_void_p)(out.ctypes.data)
    assert out.tobytes() == expected.tobytes()


def test_bfloat_constants_round_to_even():
    assert constant(1.0 + 2**-8, "bfloat") == "0xR3F80"
    assert constant(1.0 + 3 * 2**-8, "bfloat") == "0xR3F82"
    assert constant(float("nan"), "bfloat") == "0xR7FC0"


def test_index_arithmetic_folds():
    f = Module().function("f", [("i64", "n")])
    (n,) = f.arguments
    assert f.add(2, 3) == 5 and f.mul(4, 5) == 20 and f.udiv(7, 2) == 3 and f.urem(7, 2) == 1
    assert f.add(n, 0) is n and f.mul(n, 1) is n and f.mul(n, 0) == 0 and f.urem(n, 1) == 0
    assert f.minimum(3, 4) == 3 and f.maximum(3, 4) == 4


def test_equal_instructions_are_emitted_once():
    module = Module()
    f = module.function("f", [("i64", "n")])
    (n,) = f.arguments
    assert f.add(n, 1) is f.add(n, 1)
    assert f.add(n, 1) is not f.add(n, 2)
    assert lines(module, "add") == 2


def test_values_of_a_loop_body_do_not_leave_it():
    module = Module()
    f = module.function("f", [("i64", "n")])
    (n,) = f.arguments
    outside = f.mul(n, 3)
    with f.loop(0, n):
        assert f.mul(n, 3) is outside
        inside = f.mul(n, 5)
    assert f.mul(n, 5) is not inside


def test_branches_do_not_share():
    f = Module().function("f", [("i64", "n")])
    (n,) = f.arguments
    with f.either(f.compare("sgt", n, 0)) as branch:
        first = f.mul(n, 5)
        branch.otherwise()
        second = f.mul(n, 5)
    assert first is not second
    assert f.mul(n, 5) not in (first, second)


def sum_of_squares() -> Module:
    module = Module()
    f = module.function("f", [("i64", "low"), ("i64", "high")], "i64", exported=True)
    with f.loop(*f.arguments, carry=[constant(0, "i64")]) as loop:
        square = f.mul(loop.index, loop.index)
        loop.next = [f.add(loop.carried[0], square)]
    f.ret(loop.results[0])
    return module


@pytest.mark.parametrize("low, high", [(0, 0), (5, 3), (0, 1), (2, 10)])
def test_loop_with_carried_value(low, high):
    f = compiled(sum_of_squares(), "f", ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    assert f(low, high) == sum(i * i for i in range(low, high))


@pytest.mark.parametrize("low, high, step", [(0, 12, 4), (3, 3, 1), (5, 2, 1)])
def test_static_loops(low, high, step):
    module = Module()
    f = module.function("f", [], "i64", exported=True)
    with f.loop(low, high, step, carry=[constant(7, "i64")]) as loop:
        loop.next = [f.add(loop.carried[0], loop.index)]
    f.ret(loop.results[0])
    assert compiled(module, "f", ctypes.c_int64)() == 7 + sum(range(low, high, step))


def test_nested_control_flow():
    """The sum of even numbers minus the sum of odd ones, through memory."""
    module = Module()
    f = module.function("f", [("i64", "n")], "i64", exported=True)
    (n,) = f.arguments
    cell = f.alloca("i64")
    f.store(constant(0, "i64"), cell)
    with f.loop(0, n) as loop:
        old = f.load("i64", cell)
        with f.either(f.compare("eq", f.urem(loop.index, 2), 0)) as branch:
            f.store(f.add(old, loop.index), cell)
            branch.otherwise()
            f.store(f.sub(old, loop.index), cell)
        with f.when(f.compare("sgt", loop.index, 5)):
            f.store(constant(100, "i64"), cell)
    f.ret(f.load("i64", cell))
    run = compiled(module, "f", ctypes.c_int64, ctypes.c_int64)
    assert run(6) == 0 - 1 + 2 - 3 + 4 - 5
    assert run(7) == 100


@pytest.mark.parametrize("count", [-3, 0, 3, 8, 20])
@pytest.mark.parametrize("dynamic", [True, False])
def test_masked_memory_touches_only_valid_lanes(count, dynamic):
    module = Module()
    f = module.function("f", [("ptr", "a"), ("ptr", "b"), ("i64", "n")], exported=True)
    a, b, n = f.arguments
    mask = f.lane_mask(n if dynamic else count, 8)
    f.store_masked(f.load_masked(VECTOR, a, mask), b, mask)
    f.ret()
    source, target = np.arange(1, 9, dtype="f4"), np.full(8, -1, "f4")
    run = compiled(module, "f", None, *[ctypes.c_void_p] * 2, ctypes.c_int64)
    run(source.ctypes.data, target.ctypes.data, count)
    valid = min(max(count, 0), 8)
    assert np.array_equal(target, np.r_[source[:valid], np.full(8 - valid, -1)])


def test_tables_and_splats():
    module = Module()
    f = module.function("f", [("i64", "i"), ("ptr", "out")], exported=True)
    i, out = f.arguments
    table = module.table("primes", "float", [2, 3, 5, 7])
    x = f.splat(f.load("float", f.gep(table, i)), 8)
    y = f.fma(x, 2.0, constants(range(8), "float"))
    f.store(f.fsub(y, zero(VECTOR)), out)
    f.ret()
    result = np.zeros(8, "f4")
    compiled(module, "f", None, ctypes.c_int64, ctypes.c_void_p)(2, result.ctypes.data)
    assert np.array_equal(result, 10 + np.arange(8))


def test_calls_declare_their_callee_once():
    module = Module()
    g = module.function("g", [("i64", "x")], "i64")
    g.ret(g.arguments[0])
    f = module.function("f", [("i64", "x")], "i64", exported=True)
    x = f.call("g", "i64", *f.arguments)
    assert x is not f.call("g", "i64", *f.arguments)
    f.ret(f.intrinsic("llvm.abs", "i64", x, Value("false", "i1")))
    assert "declare i64 @g" not in module.text()
    assert module.text().count("declare") == 1
    assert compiled(module, "f", ctypes.c_int64, ctypes.c_int64)(-4) == 4


def test_two_functions_of_one_name():
    module = Module()
    module.function("f", [])
    with pytest.raises(ValueError, match="unique"):
        module.function("f", [])


@pytest.mark.parametrize("count, work", [(1000, 2000), (37, 10), (16, 1), (1000, 10**9), (0, 0)])
def test_little_chunks_run_together_each_once(count, work):
    """`parallel_for` hands out few pieces, whatever the number of chunks."""
    module = Module()
    f = module.function("chunk", [("ptr", "out"), ("i64", "i"), ("i64", "thread")])
    at = f.gep(f.arguments[0], f.arguments[1], "i64")
    f.store(f.binary("add", f.load("i64", at), 1), at)
    f.ret()
    f = module.function("f", [("ptr", "out")], exported=True)
    for _ in range(2):
        f.parallel_for("chunk", f.arguments[0], count, work)
    f.ret()
    text = module.text()
    assert ("chunk_by_" in text) == (count >= 32 and work < 10**6)
    pool.library()
    out = np.zeros(count + 1, "i8")
    compiled(module, "f", None, ctypes.c_void_p)(out.ctypes.data)
    assert (out[:count] == 2).all() and out[count] == 0


@pytest.mark.parametrize("element", ["i16", "i8"])
def test_one_lane_is_stored_alone(element):
    module = Module()
    f = module.function("one", [("ptr", "source"), ("ptr", "target")], exported=True)
    source, target = f.arguments
    wide = f.load("<16 x i32>", source)
    shifted = f.binary("lshr", f.binary("add", wide, wide), 8)
    f.store_lanes(f.cast("trunc", shifted, vector(16, element)), target, 1)
    f.ret()
    x, y = np.full(16, 0x01020304, "i4"), np.full(4, -1, element.replace("i", "int"))
    compiled(module, "one", None, ctypes.c_void_p, ctypes.c_void_p)(x.ctypes.data, y.ctypes.data)
    assert (y[1:] == -1).all() and y[0] != -1
