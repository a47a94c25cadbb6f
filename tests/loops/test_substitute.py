"""Substitution keeps bound iterators apart."""

import numpy as np

from flambeau.loops.api import Buf, nest, reduce
from flambeau.loops.expr import iterator
from flambeau.loops.interpret import interpret
from flambeau.loops.nest import Nest, Store
from flambeau.loops.substitute import substitute
from flambeau.schedule.inline import canonical

X = Buf("x", (3, 3))


def test_a_bound_iterator_of_the_same_name_is_renamed():
    n = nest((3,), lambda i: reduce("add", (3,), lambda r: X[i + r]))
    r0 = iterator("r0", 3)
    moved = substitute(n.stores[0].value, {n.iters[0]: r0})
    assert str(moved) == "add(r1<3: x[r0, r1])"
    assert moved.free == {r0}


def test_shadowed_occurrences_stay():
    r0 = iterator("r0", 3)
    inner = nest((3,), lambda i: reduce("add", (3,), lambda r: X[i + r])).stores[0].value
    assert substitute(inner, {r0: iterator("i9", 3)}) is inner


def test_canonical_numbers_make_equal_folds_one():
    i = iterator("i0", 3)
    a = substitute(
        nest((3,), lambda i: reduce("add", (3,), lambda r: X[i + r])).stores[0].value,
        {iterator("i0", 3): iterator("r0", 3)},
    )
    b = substitute(a, {iterator("r0", 3): i})
    assert (
        canonical(b)
        is nest((3,), lambda i: reduce("add", (3,), lambda r: X[i + r])).stores[0].value
    )


def test_values_do_not_change():
    n = nest(
        (3,),
        lambda i: reduce("add", (3,), lambda r: X[i + r] * reduce("max", (3,), lambda q: X[q + r])),
    )
    out = Nest(n.iters, (Store(n.out, n.iters, canonical(n.stores[0].value)),))
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    assert np.array_equal(interpret(n, {"x": x})["out"], interpret(out, {"x": x})["out"])
