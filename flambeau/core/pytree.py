"""Nested containers as a flat list of leaves and a structure.

Lists, tuples, named tuples, dicts and OrderedDicts are containers; everything else is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Leaf:
    """The structure of anything that is no container."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


LEAF = Leaf()


class Structure(NamedTuple):
    """A container's type, its keys (for dicts), and its children's structures."""

    kind: type
    keys: tuple | None
    children: tuple

    def __repr__(self) -> str:
        return f"{self.kind.__name__}({', '.join(map(repr, self.children))})"


def flatten(tree: Any) -> tuple[list[Any], Structure | Leaf]:
    """The leaves from left to right, and what is needed to put them back."""
    leaves: list[Any] = []
    return leaves, _flatten_into(leaves, tree)


def _flatten_into(leaves: list[Any], tree: Any) -> Structure | Leaf:
    keys, values = None, tree
    if isinstance(tree, dict):
        keys, values = tuple(tree), list(tree.values())
    elif not isinstance(tree, list | tuple):
        leaves.append(tree)
        return LEAF
    return Structure(type(tree), keys, tuple(_flatten_into(leaves, x) for x in values))


def unflatten(leaves: list[Any], structure: Structure | Leaf) -> Any:
    """The tree with these leaves."""
    return _unflatten_from(iter(leaves), structure)


def _unflatten_from(leaves: Iterator[Any], structure: Structure | Leaf) -> Any:
    if isinstance(structure, Leaf):
        return next(leaves)
    parts = [_unflatten_from(leaves, child) for child in structure.children]
    kind = structure.kind
    if structure.keys is not None:
        pairs = zip(structure.keys, parts, strict=True)
        return OrderedDict(pairs) if kind is OrderedDict else dict(pairs)
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with `function` applied to each leaf."""
    leaves, structure = flatten(tree)
    return unflatten([function(x) for x in leaves], structure)


def broadcast_prefix(prefix: Any, structure: Structure | Leaf) -> list[Any] | None:
    """One value per leaf from a tree that may end earlier than `structure`; None if it differs."""
    if isinstance(structure, Leaf):
        return None if isinstance(prefix, dict | list | tuple) else [prefix]
    if not isinstance(prefix, dict | list | tuple):
        return [prefix] * _count(structure)
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


def _count(structure: Structure | Leaf) -> int:
    return 1 if isinstance(structure, Leaf) else sum(map(_count, structure.children))
