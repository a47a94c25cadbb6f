"""Choosing how scaled_dot_product_attention is computed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from flambeau.core.errors import complaint

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "allowed_backends", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """Ways to compute attention, as PyTorch names them. flambeau's own one serves for all."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


class Allowed(threading.local):
    """The backends that this thread allows, in order of preference."""

    backends: tuple[SDPBackend, ...] = tuple(b for b in SDPBackend if b is not SDPBackend.ERROR)


_allowed = Allowed()


def allowed_backends() -> tuple[SDPBackend, ...]:
    """The backends allowed by the innermost sdpa_kernel block."""
    return _allowed.backends


@contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[dict]:
    """Within the block attention may be computed by these backends only."""
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(chosen, (list, tuple)) or not all(isinstance(b, SDPBackend) for b in chosen):
        raise AssertionError(
            complaint(
                "sdpa_kernel", "one or several of SDPBackend are expected", {"got": repr(backends)}
            )
        )
    before = _allowed.backends
    _allowed.backends = tuple(dict.fromkeys(chosen))
    try:
        yield {}
    finally:
        _allowed.backends = before
