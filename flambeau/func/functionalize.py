"""`functionalize`, for code written for PyTorch: the compiler removes mutations by itself."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flambeau.core.errors import OpError, complaint


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """`func` with the same results; run eagerly, mutations are made as they are written."""
    if remove not in ("mutations", "mutations_and_views"):
        must = "remove must be 'mutations' or 'mutations_and_views'"
        raise OpError(complaint("functionalize", must, {"remove": remove}))

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped
