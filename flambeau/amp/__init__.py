"""Automatic mixed precision: `autocast` picks each function's dtype, `GradScaler` saves float16."""

from flambeau.amp import cpu, cuda
from flambeau.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from flambeau.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "autocast",
    "cpu",
    "cuda",
    "custom_bwd",
    "custom_fwd",
    "is_autocast_available",
]
