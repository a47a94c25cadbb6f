"""Process-wide settings of how results are computed: threads, precision, determinism, warnings."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.core.errors import ArgumentError, OpError, complaint

_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = ("default", "warn", "error")


class _Settings:
    """What is set."""

    matmul_precision = "highest"
    deterministic = False
    warn_only = False
    fill_uninitialized_memory = True
    warn_always = False
    interop_threads: int | None = None


settings = _Settings()


def get_num_threads() -> int:
    """How many threads one operation may use."""
    from flambeau.runtime import pool

    return pool.get_num_threads()


def set_num_threads(num: int) -> None:
    """Let one operation use `num` threads, in generated kernels and in BLAS."""
    if isinstance(num, bool) or not isinstance(num, int):
        raise OpError(complaint("set_num_threads", "expects an int", dict(num=num)))
    if num < 1:
        raise OpError(complaint("set_num_threads", "expects a positive integer", dict(num=num)))
    from flambeau.runtime import pool
    from flambeau.runtime.blas_threads import set_blas_threads

    pool.set_num_threads(num)
    set_blas_threads(num)


def get_num_interop_threads() -> int:
    """How many operations may run side by side; kept, and without effect."""
    return settings.interop_threads or get_num_threads()


def set_num_interop_threads(num: int) -> None:
    """Kept, and without effect: operations of one program run one after another."""
    if num < 1:
        raise OpError(complaint("set_num_interop_threads", "expects a positive integer",
                                dict(num=num)))
    settings.interop_threads = num


def get_float32_matmul_precision() -> str:
    """How far float32 matrix products may be rounded inside."""
    return settings.matmul_precision


def set_float32_matmul_precision(precision: str) -> None:
    """"highest", "high" or "medium"; on the CPU products are of the highest always."""
    if precision not in _PRECISIONS:
        raise OpError(complaint("set_float32_matmul_precision", "precision must be 'highest', "
                                "'high' or 'medium'", dict(precision=repr(precision))))
    settings.matmul_precision = precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Kept; on the CPU the same input gives the same bits in any case."""
    settings.deterministic, settings.warn_only = bool(mode), bool(mode and warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` was told."""
    return settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """What `use_deterministic_algorithms` was told about warnings."""
    return settings.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """0 "default", 1 "warn", 2 "error": use_deterministic_algorithms by another name."""
    if not isinstance(debug_mode, (int, str)):
        raise ArgumentError(complaint("set_deterministic_debug_mode", "debug_mode must be str or "
                                      "int", dict(debug_mode=type(debug_mode).__name__)))
    mode: Any = debug_mode
    if isinstance(mode, int) and 0 <= mode < len(_DEBUG_MODES):
        mode = _DEBUG_MODES[mode]
    if mode not in _DEBUG_MODES:
        raise OpError(complaint("set_deterministic_debug_mode", "debug_mode must be 0, 1, 2, "
                                "'default', 'warn' or 'error'", dict(debug_mode=debug_mode)))
    use_deterministic_algorithms(mode != "default", warn_only=mode == "warn")


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, see `set_deterministic_debug_mode`."""
    if not settings.deterministic:
        return 0
    return 1 if settings.warn_only else 2


def set_flush_denormal(mode: bool) -> bool:
    """Denormal numbers are computed with always: True where that is what was asked for."""
    return not mode


def set_warn_always(b: bool) -> None:
    """Warn every time instead of once a place."""
    if not isinstance(b, bool):
        raise ArgumentError(complaint("set_warn_always", "expects a bool",
                                      dict(got=type(b).__name__)))
    settings.warn_always = b
    if b:
        warnings.simplefilter("always", UserWarning)


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was told."""
    return settings.warn_always


def init_num_threads() -> None:
    """Threads are started on first use."""
