"""Scalar expressions: dtypes are checked, numbers adopt, nothing promotes by itself."""

import numpy as np
import pytest

from flambeau.core import dtype as dtypes
from flambeau.core.errors import DtypeError, ShapeError
from flambeau.loops.api import Buf, Scalar, binary, cast, const, nest, reduce, unary, where
from flambeau.loops.expr import rounded, wrapped

X = Buf("x", (4,), None, "float32")
IDX = Buf("i", (4,), None, "int64")


def one(body):
    return nest((4,), body).stores[0].value


def test_numbers_take_the_dtype_beside_them():
    value = one(lambda i: X[i] + 1)
    assert value.args[1].attr == 1.0 and value.args[1].dtype is dtypes.float32


def test_constants_are_rounded_to_their_dtype():
    assert const(0.1, "float32").attr == float(np.float32(0.1))
    assert const(300, "uint8").attr == 44
    assert const(-1, "uint64").attr == 2**64 - 1


@pytest.mark.parametrize("value", [0.1, 65519.0, 65520.0, 1e-8, 6e-8, -3.3, 1e39, float("inf")])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_rounding_agrees_with_numpy(value, name):
    d = dtypes.by_name(name)
    with np.errstate(over="ignore"):
        assert rounded(value, d) == float(np.float32(value).astype(d.numpy)) or name == "float16"
        assert rounded(value, d) == float(np.array(value).astype(d.numpy))


def test_wrapped_is_modulo_the_width():
    assert wrapped(200, dtypes.int8) == -56
    assert wrapped(-1, dtypes.uint16) == 65535


def test_mixed_dtypes_are_an_error():
    with pytest.raises(
        DtypeError, match=r"add: 2 operands of one number dtype are needed; got .*float32.*int64"
    ):
        one(lambda i: X[i] + IDX[i])


def test_float_functions_refuse_integers():
    with pytest.raises(DtypeError, match="exp: 1 operands of one floating dtype"):
        one(lambda i: unary("exp", IDX[i]))


def test_comparison_gives_bool_and_where_wants_it():
    assert one(lambda i: X[i] < 0.0).dtype is dtypes.bool
    with pytest.raises(DtypeError, match="where: a bool condition"):
        one(lambda i: where(X[i], X[i], 0.0))


def test_an_expression_has_no_truth_value():
    with pytest.raises(TypeError, match="Use `where"):
        one(lambda i: X[i] if X[i] > 0 else 0.0)


def test_free_iterators_exclude_bound_ones():
    m = Buf("m", (3, 5))
    n = nest((3,), lambda i: reduce("add", (5,), lambda r: m[i + r]))
    assert n.stores[0].value.free == frozenset(n.iters)


def test_broadcasting_reads_size_one_dimensions_at_zero():
    b = Buf("b", (1, 3))
    assert str(nest((2, 3), lambda i: b.at(i))) == "for i0<2, i1<3: out[i0, i1] = b[0, i1]"


def test_the_number_of_indices_is_checked():
    with pytest.raises(ShapeError, match=r"load: one index a dimension.*Use `.at`"):
        nest((2, 3), lambda i: X[i])


def test_scalars_print_by_name():
    assert str(one(lambda i: X[i] * Scalar("alpha", "float32"))) == "x[i0] * alpha"


def test_casts_fold_for_constants_only_where_every_machine_agrees():
    assert cast(const(2.7, "float64"), "int32").attr == 2
    assert cast(const(1e30, "float64"), "int32").kind == "cast"
    assert cast(const(0.1, "float32"), "float64").attr == float(np.float32(0.1))


def test_binary_by_name_equals_the_operator():
    assert one(lambda i: binary("mul", X[i], 2.0)) is one(lambda i: X[i] * 2.0)
