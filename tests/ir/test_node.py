"""Interned nodes: equality is identity, and keys are exact."""

import copy
import gc
import pickle

import pytest

from flambeau.ir import Node, key_of, postorder


def leaf(value):
    return Node.make("const", "float64", (), value)


def test_equal_nodes_are_one_object():
    x = leaf(1.0)
    assert Node.make("add", "float64", (x, x)) is Node.make("add", "float64", (leaf(1.0), x))


@pytest.mark.parametrize("a, b", [(0.0, -0.0), (1, True), (1, 1.0), (0, False), ((0.0,), (-0.0,))])
def test_constants_that_python_calls_equal_stay_apart(a, b):
    assert key_of(a) != key_of(b)
    assert leaf(a) is not leaf(b)


def test_nan_is_one_node():
    assert leaf(float("nan")) is leaf(float("nan"))


def test_nodes_are_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        leaf(1.0).kind = "other"


def test_copies_and_pickles_are_the_same_node():
    x = Node.make("neg", "float64", (leaf(2.5),))
    assert copy.copy(x) is x
    assert copy.deepcopy(x) is x
    assert pickle.loads(pickle.dumps(x)) is x


def test_dead_nodes_are_forgotten():
    from flambeau.ir import node

    before = len(node._interned)
    kept = [leaf(float(k) + 0.123) for k in range(100)]
    assert len(node._interned) >= before + 100
    del kept
    gc.collect()
    assert len(node._interned) <= before + 1


def test_postorder_visits_operands_first_once_and_without_recursion():
    x = leaf(1.0)
    for _ in range(50_000):
        x = Node.make("neg", "float64", (x,))
    seen = list(postorder([x, x]))
    assert len(seen) == 50_001
    assert seen[0] is leaf(1.0) and seen[-1] is x


def test_threads_get_the_same_node():
    from concurrent.futures import ThreadPoolExecutor

    def chain(_):
        x = leaf(0.25)
        for k in range(300):
            x = Node.make("add", "float64", (x, leaf(float(k))))
        return x

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(chain, range(16)))) == 1
