"""Groups of settings that a block can change and put back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any


class Precision(SimpleNamespace):
    """`backends.<library>.<op>.fp32_precision`."""


def module_of(name: str) -> ModuleType:
    """The module in which a `flags()` was called."""
    return sys.modules[name]


@contextmanager
def changed(module: ModuleType, values: dict[str, Any]) -> Iterator[None]:
    """Within the block, the module's settings have these values; None leaves one as it is."""
    values = {name: value for name, value in values.items() if value is not None}
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)
