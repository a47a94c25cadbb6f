"""`torch.utils._pytree`: nested containers as leaves and a structure, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core import pytree
from flambeau.core.nearest import missing_name
from flambeau.core.pytree import LEAF as _LEAF
from flambeau.core.pytree import Leaf as LeafSpec
from flambeau.core.pytree import Structure as _Structure
from flambeau.core.pytree import tree_map as tree_map

TreeSpec = _Structure
PyTree = Any
Context = Any


def tree_flatten(tree: Any, is_leaf: Callable | None = None) -> tuple[list[Any], Any]:
    """(leaves, structure)."""
    return pytree.flatten(tree, is_leaf)


def tree_unflatten(leaves: Any, treespec: Any) -> Any:
    """The tree with these leaves."""
    return pytree.unflatten(list(leaves), treespec)


def tree_leaves(tree: Any, is_leaf: Callable | None = None) -> list[Any]:
    """The leaves from left to right."""
    return pytree.flatten(tree, is_leaf)[0]


tree_iter = tree_leaves


def tree_structure(tree: Any, is_leaf: Callable | None = None) -> Any:
    """The structure without the leaves."""
    return pytree.flatten(tree, is_leaf)[1]


def tree_map_(func: Callable, tree: Any, *rests: Any, is_leaf: Callable | None = None) -> Any:
    """Call `func` for each leaf; returns the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(kinds: Any, func: Callable, tree: Any, is_leaf: Callable | None = None) -> Any:
    """The tree with `func` applied to the leaves of these types (or for which `kinds` holds)."""
    chosen = kinds if callable(kinds) and not isinstance(kinds, type) else (
        lambda leaf: isinstance(leaf, kinds)
    )
    return tree_map(lambda x: func(x) if chosen(x) else x, tree, is_leaf=is_leaf)


def tree_all(pred: Callable, tree: Any, is_leaf: Callable | None = None) -> bool:
    """Does it hold for all leaves?"""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable, tree: Any, is_leaf: Callable | None = None) -> bool:
    """Does it hold for a leaf?"""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kinds: Any, pred: Callable, tree: Any) -> bool:
    """Does it hold for all leaves of these types?"""
    return all(pred(x) for x in tree_leaves(tree) if isinstance(x, kinds))


def tree_any_only(kinds: Any, pred: Callable, tree: Any) -> bool:
    """Does it hold for a leaf of these types?"""
    return any(pred(x) for x in tree_leaves(tree) if isinstance(x, kinds))


def register_pytree_node(
    cls: type, flatten_fn: Callable, unflatten_fn: Callable, **names: Any
) -> None:
    """Make a class a container."""
    pytree.register(cls, flatten_fn, unflatten_fn)


def treespec_pprint(treespec: Any) -> str:
    """The structure as text."""
    return repr(treespec)


def treespec_leaf() -> LeafSpec:
    """The structure of a leaf."""
    return _LEAF


__getattr__ = missing_name(__name__)
