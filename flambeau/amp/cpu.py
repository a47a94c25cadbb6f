"""`torch.cpu.amp`: the older names for the CPU."""

import warnings

from flambeau.amp import autocast_mode, grad_scaler
from flambeau.core.dtype import bfloat16, dtype

__all__ = ["GradScaler", "autocast"]


class autocast(autocast_mode.autocast):
    """Deprecated spelling of `amp.autocast("cpu", ...)`."""

    def __init__(
        self, enabled: bool = True, dtype: dtype = bfloat16, cache_enabled: bool = True
    ) -> None:
        warnings.warn(
            "cpu.amp.autocast is deprecated; use amp.autocast('cpu', ...).",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """Deprecated spelling of `amp.GradScaler("cpu", ...)`."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        warnings.warn(
            "cpu.amp.GradScaler is deprecated; use amp.GradScaler('cpu', ...).",
            FutureWarning,
            stacklevel=2,
        )
        options = (init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        super().__init__("cpu", *options)
