"""Nested containers as a flat list of leaves and a structure.

Lists, tuples, named tuples, dicts, OrderedDicts, and classes that `register` names are containers;
everything else, None too, is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Leaf:
    """The structure of anything that is no container."""

    __slots__ = ()
    num_leaves = 1

    def __repr__(self) -> str:
        return "*"


LEAF = Leaf()


class Structure(NamedTuple):
    """A container's type, what else rebuilds it (keys of a dict), and its children's structures."""

    kind: type
    keys: Any
    children: tuple

    @property
    def num_leaves(self) -> int:
        """How many leaves are below it."""
        return sum(child.num_leaves for child in self.children)

    def __repr__(self) -> str:
        return f"{self.kind.__name__}({', '.join(map(repr, self.children))})"


# class -> (object -> (children, context), (children, context) -> object)
_REGISTERED: dict[type, tuple[Callable, Callable]] = {
    defaultdict: (
        lambda d: (list(d.values()), (d.default_factory, tuple(d))),
        lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
    ),
    deque: (lambda d: (list(d), d.maxlen), lambda values, maxlen: deque(values, maxlen)),
}


def register(kind: type, flatten_fn: Callable, unflatten_fn: Callable) -> None:
    """Make a class a container: flatten_fn(object) gives (children, context), and
    unflatten_fn(children, context) an object."""
    _REGISTERED[kind] = flatten_fn, unflatten_fn


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None
            ) -> tuple[list[Any], Structure | Leaf]:
    """The leaves from left to right, and what is needed to put them back."""
    leaves: list[Any] = []
    return leaves, _flatten_into(leaves, tree, is_leaf)


def _flatten_into(leaves: list[Any], tree: Any, is_leaf: Any = None) -> Structure | Leaf:
    keys, values = None, tree
    if is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return LEAF
    if type(tree) in _REGISTERED:
        values, keys = _REGISTERED[type(tree)][0](tree)
    elif isinstance(tree, dict):
        keys, values = tuple(tree), list(tree.values())
    elif not isinstance(tree, list | tuple):
        leaves.append(tree)
        return LEAF
    return Structure(type(tree), keys, tuple(_flatten_into(leaves, x, is_leaf) for x in values))


def unflatten(leaves: list[Any], structure: Structure | Leaf) -> Any:
    """The tree with these leaves."""
    return _unflatten_from(iter(leaves), structure)


def _unflatten_from(leaves: Iterator[Any], structure: Structure | Leaf) -> Any:
    if isinstance(structure, Leaf):
        return next(leaves)
    parts = [_unflatten_from(leaves, child) for child in structure.children]
    kind = structure.kind
    if kind in _REGISTERED:
        return _REGISTERED[kind][1](parts, structure.keys)
    if structure.keys is not None:
        pairs = zip(structure.keys, parts, strict=True)
        return OrderedDict(pairs) if kind is OrderedDict else dict(pairs)
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def tree_map(function: Callable[..., Any], tree: Any, *others: Any,
             is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree with `function` applied to each leaf, and to the leaves there of other trees."""
    leaves, structure = flatten(tree, is_leaf)
    columns = [leaves, *(flatten(other, is_leaf)[0] for other in others)]
    return unflatten([function(*row) for row in zip(*columns, strict=True)], structure)


def broadcast_prefix(prefix: Any, structure: Structure | Leaf) -> list[Any] | None:
    """One value per leaf from a tree that may end earlier than `structure`; None if it differs."""
    if isinstance(structure, Leaf):
        return None if isinstance(prefix, dict | list | tuple) else [prefix]
    if not isinstance(prefix, dict | list | tuple):
        return [prefix] * structure.num_leaves
    if structure.keys is not None:
        if not isinstance(prefix, dict) or set(prefix) != set(structure.keys):
            return None
        parts = [prefix[key] for key in structure.keys]
    elif isinstance(prefix, dict) or len(prefix) != len(structure.children):
        return None
    else:
        parts = list(prefix)
    out: list[Any] = []
    for part, child in zip(parts, structure.children, strict=True):
        values = broadcast_prefix(part, child)
        if values is None:
            return None
        out += values
    return out
