"""Where a value came from: a path from the arguments of a call to an object.

Paths are interned below their roots, so two equal paths are one object. `value` walks a path for
real; guards and replay code turn it into Python text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Source:
    """One step from a base object.

    kinds: local(name), function(), constant(object), attribute(name), entry(name: instance
    dictionary), item(key), keys(), cell(index), globals(), number() and integer(): the
    element of a tensor or array scalar
    """

    __slots__ = ("base", "children", "key", "kind")

    def __init__(self, base: Source | None, kind: str, key: Any = None):
        self.base, self.kind, self.key = base, kind, key
        self.children: dict = {}

    def step(self, kind: str, key: Any = None) -> Source:
        """The interned path one step further."""
        mark = (kind, type(key), key if isinstance(key, (str, int, float, bool)) else id(key))
        found = self.children.get(mark)
        if found is None:
            found = self.children[mark] = Source(self, kind, key)
        return found

    def attribute(self, name: str) -> Source:
        return self.step("attribute", name)

    def entry(self, name: str) -> Source:
        return self.step("entry", name)

    def item(self, key: Any) -> Source:
        return self.step("item", key)

    @property
    def is_constant(self) -> bool:
        """Whether the same object is found in every call."""
        return self.kind == "constant"

    def root_local(self) -> str | None:
        """Name of the argument that the path starts from, if any."""
        at: Source = self
        while at.base is not None:
            at = at.base
        return at.key if at.kind == "local" else None

    def __repr__(self) -> str:
        return TEXT[self.kind](self.base, self.key)

    def value(self, arguments: dict[str, Any], function: Any) -> Any:
        """The object at the end of the path, in a call with these arguments."""
        if self.base is None:
            roots = {"local": lambda: arguments[self.key], "function": lambda: function}
            return roots.get(self.kind, lambda: self.key)()
        key = self.key
        if isinstance(key, Source):
            key = key.value(arguments, function)
        return WALK[self.kind](self.base.value(arguments, function), key)


def _constant_text(base: Any, key: Any) -> str:
    if isinstance(key, dict):
        return f"<variables of {key.get('__name__', '?')}>"
    name = getattr(key, "__qualname__", None) or getattr(key, "__name__", None)
    return name if isinstance(name, str) else f"<{type(key).__name__}>"


TEXT: dict[str, Callable[[Any, Any], str]] = {
    "local": lambda base, key: str(key),
    "function": lambda base, key: "<function>",
    "constant": _constant_text,
    "attribute": lambda base, key: f"{base!r}.{key}",
    "entry": lambda base, key: f"{base!r}.{key}",
    "item": lambda base, key: f"{base!r}[{key!r}]",
    "keys": lambda base, key: f"tuple({base!r})",
    "cell": lambda base, key: f"{base!r}.__closure__[{key}]",
    "number": lambda base, key: f"{base!r}.item()",
    "integer": lambda base, key: f"{base!r}.item()",
    "globals": lambda base, key: f"{base!r}.__globals__",
}
"""How a path reads in messages."""

WALK: dict[str, Callable[[Any, Any], Any]] = {
    "attribute": getattr,
    "entry": lambda base, key: base.__dict__[key],
    "item": lambda base, key: base[key],
    "keys": lambda base, key: tuple(base),
    "cell": lambda base, key: base.__closure__[key],
    "number": lambda base, key: base.item(),
    "integer": lambda base, key: base.item(),
    "globals": lambda base, key: base.__globals__,
}

EXPRESSION = {
    "attribute": "{base}.{key}",
    "entry": "{base}.__dict__[{key!r}]",
    "item": "{base}[{key}]",
    "keys": "tuple({base})",
    "cell": "{base}.__closure__[{key}]",
    "number": "{base}.item()",
    "integer": "{base}.item()",
    "globals": "{base}.__globals__",
}
"""Python text of one step; `{key}` of an item is a literal or the name of a constant."""
