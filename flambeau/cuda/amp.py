"""`torch.cuda.amp`: the older spelling of `torch.amp` for the GPU."""

from flambeau.amp.cuda import GradScaler, autocast, custom_bwd, custom_fwd

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
