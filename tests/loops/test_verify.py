"""The verifier accepts what lowerings make and names what is broken."""

import pytest

from flambeau.core import dtype as dtypes
from flambeau.loops.api import Buf, nest, reduce
from flambeau.loops.expr import Expr, const, iterator
from flambeau.loops.nest import Nest, Store
from flambeau.loops.verify import BrokenNest, verify

X = Buf("x", (3, 5))
GOOD = nest((3,), lambda i: reduce("add", (5,), lambda r: X[i + r]))


def test_a_good_nest_passes():
    verify([GOOD])


def test_an_unbound_iterator_is_named():
    with pytest.raises(BrokenNest, match=r"\['i0'\] are not bound"):
        verify([Nest((), GOOD.stores)])


def test_a_store_of_another_dtype():
    wrong = Store(Buf("out", (3,), None, "int32"), GOOD.iters, GOOD.stores[0].value)
    with pytest.raises(BrokenNest, match="stores float32"):
        verify([Nest(GOOD.iters, (wrong,))])


def test_operands_of_two_dtypes():
    mixed = Expr.make("add", dtypes.float32, (X[0, 0], const(1, "int64")))
    with pytest.raises(BrokenNest, match="add has operands"):
        verify([Nest(GOOD.iters, (Store(GOOD.out, GOOD.iters, mixed),))])


def test_an_index_that_runs_out():
    i = iterator("i0", 4)
    with pytest.raises(BrokenNest, match="runs past dimension 3"):
        verify([Nest((i,), (Store(Buf("o", (4,)), (i,), X[i, 0]),))])
