"""`autocast`: a region in which functions choose their precision, by the lists in `policies`."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

from flambeau.amp.casting import CastingMode
from flambeau.amp.casting import cast_inputs as cast_to
from flambeau.amp.settings import (
    check_device_type,
    clear_autocast_cache,
    is_autocast_available,
    settings,
)
from flambeau.core.dtype import bfloat16, dtype, float16
from flambeau.core.errors import complaint
from flambeau.tensor.overrides import modes

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


class autocast:
    """As a context manager or decorator: matrix products and convolutions in `dtype`.

    dtype: bfloat16 (the default on cpu) or float16; enabled=False switches an outer region off;
    cache_enabled: cast each parameter once in the outermost region, not once a use.
    """

    def __init__(
        self,
        device_type: str,
        dtype: dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.device = check_device_type(device_type)
        self.fast_dtype = settings.dtypes[device_type] if dtype is None else dtype
        self._cache_enabled = settings.cache_enabled if cache_enabled is None else cache_enabled
        self._enabled = enabled and self._supported()
        self._before: list[tuple] = []

    def _supported(self) -> bool:
        """Whether the device is there and knows the dtype; a warning if not."""
        if self.device != "cpu":
            warnings.warn(
                f"autocast: device {self.device!r} is not available; the region is disabled. "
                "Use 'cpu'.",
                UserWarning,
                stacklevel=3,
            )
            return False
        if self.fast_dtype not in (bfloat16, float16):
            facts = {"dtype": self.fast_dtype}
            must = "on cpu, dtype must be bfloat16 or float16"
            warnings.warn(
                complaint("autocast", must, facts, "The region is disabled."), stacklevel=3
            )
            return False
        return True

    def __enter__(self) -> "autocast":
        kind = self.device
        entered = any(isinstance(mode, CastingMode) for mode in modes.stack)
        mode = CastingMode() if self._enabled and not entered else None
        self._before.append(
            (settings.enabled[kind], settings.dtypes[kind], settings.cache_enabled, mode)
        )
        settings.enabled[kind] = self._enabled
        settings.dtypes[kind] = self.fast_dtype
        settings.cache_enabled = self._cache_enabled
        settings.nesting += 1
        if mode is not None:
            mode.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        kind = self.device
        enabled, fast, caching, mode = self._before.pop()
        if mode is not None:
            mode.__exit__(*exception)
        settings.nesting -= 1
        if settings.nesting == 0:
            clear_autocast_cache()
        settings.enabled[kind] = enabled
        settings.dtypes[kind] = fast
        settings.cache_enabled = caching

    def __call__(self, func: Callable) -> Callable:
        """`func` run inside such a region."""

        @functools.wraps(func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return inside


def custom_fwd(
    fwd: Callable | None = None, *, device_type: str, cast_inputs: dtype | None = None
) -> Callable:
    """Decorates the `forward` of an autograd Function.

    Its `backward`, decorated with `custom_bwd`, then runs in forward's autocast state. With
    `cast_inputs`, inside a region floating inputs are cast to it and autocast is off in forward.
    """
    check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        context, enabled = args[0], settings.enabled[device_type]
        context._dtype = settings.dtypes[device_type]
        if cast_inputs is None:
            context._fwd_used_autocast = enabled
            return fwd(*args, **kwargs)
        context._fwd_used_autocast = False
        if not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            args, kwargs = cast_to((args, kwargs), device_type, cast_inputs)
            return fwd(*args, **kwargs)

    return decorate_fwd


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """Decorates the `backward` of an autograd Function whose forward has `custom_fwd`."""
    check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        used, fast = args[0]._fwd_used_autocast, args[0]._dtype
        with autocast(device_type, enabled=used, dtype=fast):
            return bwd(*args, **kwargs)

    return decorate_bwd
