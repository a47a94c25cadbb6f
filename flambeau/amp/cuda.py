"""`torch.cuda.amp`: the older names for the GPU."""

import warnings
from collections.abc import Callable

from flambeau.amp import autocast_mode, grad_scaler
from flambeau.core.dtype import dtype, float16

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(autocast_mode.autocast):
    """Deprecated spelling of `amp.autocast("cuda", ...)`."""

    def __init__(
        self, enabled: bool = True, dtype: dtype = float16, cache_enabled: bool = True
    ) -> None:
        warnings.warn(
            "cuda.amp.autocast is deprecated; use amp.autocast('cuda', ...).",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """Deprecated spelling of `amp.GradScaler("cuda", ...)`."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        warnings.warn(
            "cuda.amp.GradScaler is deprecated; use amp.GradScaler('cuda', ...).",
            FutureWarning,
            stacklevel=2,
        )
        options = (init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        super().__init__("cuda", *options)


def custom_fwd(fwd: Callable | None = None, *, cast_inputs: dtype | None = None) -> Callable:
    """Deprecated spelling of `amp.custom_fwd(device_type="cuda")`."""
    _deprecated("custom_fwd")
    return autocast_mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable | None = None) -> Callable:
    """Deprecated spelling of `amp.custom_bwd(device_type="cuda")`."""
    _deprecated("custom_bwd")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")


def _deprecated(name: str) -> None:
    warnings.warn(
        f"cuda.amp.{name} is deprecated; use amp.{name} with device_type='cuda'.",
        FutureWarning,
        stacklevel=3,
    )
