"""What autocast is set to in this thread, per device type, under PyTorch's function names."""

import threading
import warnings
from typing import Any

from flambeau.core.device import TYPES
from flambeau.core.dtype import bfloat16, dtype, float16
from flambeau.core.errors import OpError, ValueRangeError, complaint


class _Settings(threading.local):
    """Per thread: on or off and the dtype for each device type, cached casts, nesting depth."""

    def __init__(self) -> None:
        self.enabled = dict.fromkeys(TYPES, False)
        self.dtypes: dict[str, dtype] = {**dict.fromkeys(TYPES, float16), "cpu": bfloat16}
        self.cache_enabled = True
        self.nesting = 0
        self.cache: dict[int, Any] = {}


settings = _Settings()


def check_device_type(device_type: object) -> str:
    """A device type that flambeau knows; ValueError for no string, RuntimeError for another."""
    if not isinstance(device_type, str):
        facts = {"device_type": repr(device_type)}
        raise ValueRangeError(complaint("autocast", "device_type must be a string", facts))
    if device_type not in TYPES:
        must, facts = f"device_type must be one of {TYPES}", {"device_type": device_type}
        raise OpError(complaint("autocast", must, facts))
    return device_type


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast(device_type)` exists."""
    check_device_type(device_type)
    return True


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether operations on `device_type` (default: cuda) are cast now."""
    return settings.enabled[check_device_type(device_type or "cuda")]


def set_autocast_enabled(device_type: str, enabled: bool | None = None) -> None:
    """Switch casting for a device type on or off."""
    if enabled is None:
        device_type, enabled = "cuda", bool(device_type)
    settings.enabled[check_device_type(device_type)] = enabled


def get_autocast_dtype(device_type: str) -> dtype:
    """The dtype that the lower-precision list is cast to."""
    return settings.dtypes[check_device_type(device_type)]


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the dtype that the lower-precision list is cast to."""
    settings.dtypes[check_device_type(device_type)] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are kept for the rest of a region."""
    return settings.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Keep casts of parameters for the rest of a region, or not."""
    settings.cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Forget casts of parameters."""
    settings.cache.clear()


def autocast_increment_nesting() -> int:
    """Enter a region; the new depth."""
    settings.nesting += 1
    return settings.nesting


def autocast_decrement_nesting() -> int:
    """Leave a region; the new depth."""
    settings.nesting -= 1
    return settings.nesting


def is_autocast_cpu_enabled() -> bool:
    """Deprecated spelling of `is_autocast_enabled("cpu")`."""
    _deprecated("is_autocast_cpu_enabled", 'is_autocast_enabled("cpu")')
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Deprecated spelling of `set_autocast_enabled("cpu", enabled)`."""
    _deprecated("set_autocast_cpu_enabled", 'set_autocast_enabled("cpu", enabled)')
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> dtype:
    """Deprecated spelling of `get_autocast_dtype("cpu")`."""
    _deprecated("get_autocast_cpu_dtype", 'get_autocast_dtype("cpu")')
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """Deprecated spelling of `set_autocast_dtype("cpu", dtype)`."""
    _deprecated("set_autocast_cpu_dtype", 'set_autocast_dtype("cpu", dtype)')
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> dtype:
    """Deprecated spelling of `get_autocast_dtype("cuda")`."""
    _deprecated("get_autocast_gpu_dtype", 'get_autocast_dtype("cuda")')
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: dtype) -> None:
    """Deprecated spelling of `set_autocast_dtype("cuda", dtype)`."""
    _deprecated("set_autocast_gpu_dtype", 'set_autocast_dtype("cuda", dtype)')
    set_autocast_dtype("cuda", dtype)


def _deprecated(old: str, new: str) -> None:
    warnings.warn(f"{old}() is deprecated; use {new}.", DeprecationWarning, stacklevel=3)
