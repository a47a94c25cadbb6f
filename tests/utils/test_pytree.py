"""Containers as leaves and structure, and back."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import flambeau as torch
from flambeau.utils import _pytree as pytree

Pair = namedtuple("Pair", "a b")


def test_every_container_comes_back():
    factory = defaultdict(list, x=1)
    tree = {"a": [1, (2, None)], "b": Pair(3, deque([4], maxlen=2)), "c": OrderedDict(y=factory)}
    leaves, structure = pytree.tree_flatten(tree)
    assert leaves == [1, 2, None, 3, 4, 1] and structure.num_leaves == 6
    back = pytree.tree_unflatten(leaves, structure)
    assert back == tree and type(back["c"]) is OrderedDict and back["b"].b.maxlen == 2
    assert back["c"]["y"].default_factory is list


def test_registered_classes_are_containers():
    class Box:
        def __init__(self, inside):
            self.inside = inside

    pytree.register_pytree_node(Box, lambda box: ([box.inside], None), lambda parts, _: Box(*parts))
    mapped = pytree.tree_map(lambda n: n + 1, [Box(1), {"k": Box(2)}])
    assert mapped[0].inside == 2 and mapped[1]["k"].inside == 3


def test_only_some_leaves():
    tree = [torch.ones(1), "a", 2]
    doubled = pytree.tree_map_only(torch.Tensor, lambda t: t * 2, tree)
    assert doubled[0].item() == 2 and doubled[1:] == ["a", 2]
    assert pytree.tree_any(lambda v: v == "a", tree[1:])
    assert pytree.tree_map(lambda a, b: a + b, [1, 2], [3, 4]) == [4, 6]
    assert pytree.tree_leaves([[1], [2]], is_leaf=lambda v: v == [1]) == [[1], 2]
