"""`torch.cuda.nvtx`: marks for NVIDIA's profiler. There is none, and they do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def range_push(msg: str) -> int:
    """Open a named range; returns its depth."""
    return 0


def range_pop() -> int:
    """Close the innermost range; returns its depth."""
    return 0


def mark(msg: str) -> None:
    """Mark a moment."""


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A named range around a block."""
    yield
