"""Interned, immutable nodes.

Two structurally equal nodes are the same object, so `is` is equality, a node is its own cache key
and common subexpressions are shared without a pass.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

_lock = threading.RLock()
_interned: weakref.WeakValueDictionary[tuple, Node] = weakref.WeakValueDictionary()


class Node:
    """One value: `kind` names the operation, `args` its operands, `attr` a hashable payload.

    The meaning of `kind`, `dtype` and `attr` is fixed by the level that makes the node
    (`flambeau.loops.expr` for scalar expressions). Subclasses add nothing to the identity.
    """

    __slots__ = ("kind", "dtype", "args", "attr", "__weakref__")

    kind: str
    dtype: Any
    args: tuple
    attr: Any

    @classmethod
    def make(cls, kind: str, dtype: Any, args: tuple = (), attr: Any = None):
        """The only constructor: the existing node when an equal one is alive."""
        key = (cls, kind, dtype, args, key_of(attr))
        found = _interned.get(key)
        return found if found is not None else cls._new(key, attr)

    @classmethod
    def _new(cls, key: tuple, attr: Any):
        """A node for `key`, unless another thread was faster."""
        with _lock:
            found = _interned.get(key)
            if found is not None:
                return found
            made = object.__new__(cls)
            for name, value in zip(("kind", "dtype", "args", "attr"), (*key[1:4], attr)):
                object.__setattr__(made, name, value)
            made.prepare()
            _interned[key] = made
            return made

    def prepare(self) -> None:
        """Called once on a new node, for subclasses that derive a slot from the others."""

    def with_args(self, args: tuple):
        """The same operation on other operands."""
        return self if args == self.args else self.make(self.kind, self.dtype, args, self.attr)

    def __setattr__(self, name: str, value: Any):
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}")

    def __reduce__(self):
        return type(self).make, (self.kind, self.dtype, self.args, self.attr)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo: dict):
        return self


def key_of(attr: Any) -> Any:
    """A key that tells 0.0 from -0.0, 1 from True and 1 from 1.0, which Python's `==` does not."""
    if attr is None or type(attr) is str:
        return attr
    if isinstance(attr, float):
        return (float, attr.hex())
    if isinstance(attr, complex):
        return (complex, attr.real.hex(), attr.imag.hex())
    if isinstance(attr, tuple):
        return tuple(map(key_of, attr))
    return (type(attr), attr)


def postorder(roots: Iterable[Node]) -> Iterator[Node]:
    """Every node under `roots` once, operands before users. Iterative: depth is unbounded."""
    seen: set[Node] = set()
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((arg, False) for arg in reversed(node.args) if arg not in seen)


@lru_cache(maxsize=256)
def nodes(roots: tuple) -> tuple:
    """`postorder` as a tuple, remembered: passes ask for the same roots again and again."""
    return tuple(postorder(roots))


def _renew_lock() -> None:
    """A thread that is not there after a fork may have held it."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)
