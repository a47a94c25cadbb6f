"""`jit.fork` and `jit.wait`: a task that is done when it comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.futures import Future


def fork(func: Callable, *args: Any, **kwargs: Any) -> Future:
    """Run at once; the result is in the future."""
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """The result of a forked task."""
    return future.wait()
