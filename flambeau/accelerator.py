"""`torch.accelerator`: the accelerator of this machine, whatever its kind; here there is none."""

from __future__ import annotations

from flambeau.core.device import device
from flambeau.core.nearest import missing_name
from flambeau.devices.absent import refused


def is_available() -> bool:
    """Is there an accelerator? No."""
    return False


def device_count() -> int:
    """How many there are: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> device | None:
    """The accelerator's device; None where there is none."""
    return None


for _name in (
    "current_device_idx", "current_device_index", "current_stream", "device_index", "empty_cache",
    "empty_host_cache", "get_device_capability", "get_memory_info", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx",
    "set_device_index", "set_stream", "synchronize",
):  # fmt: skip
    globals()[_name] = refused("accelerator", _name)

__getattr__ = missing_name(__name__)
