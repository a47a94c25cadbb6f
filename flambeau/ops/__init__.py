"""The registry and all definitions of primitives; also where tools look for `ops.aten`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NAMESPACES: dict[str, Callable[[], Any]] = {}  # name -> how to get it, set by flambeau/__init__


def __getattr__(name: str) -> Any:
    if name in NAMESPACES:
        return NAMESPACES[name]()
    raise AttributeError(f"module 'flambeau.ops' has no attribute {name!r}")
