"""`torch.mps`: Apple GPUs, of which there are none."""

from flambeau.core.nearest import missing_name
from flambeau.devices.absent import namespace, refused

_NAMES = namespace("mps")
for _name in ("Event", "device_count", "is_available", "manual_seed"):
    globals()[_name] = _NAMES[_name]
for _name in (
    "compile_shader", "current_allocated_memory", "driver_allocated_memory", "empty_cache",
    "get_rng_state", "recommended_max_memory", "seed", "set_per_process_memory_fraction",
    "set_rng_state", "synchronize",
):  # fmt: skip
    globals()[_name] = refused("mps", _name)

__getattr__ = missing_name(__name__)
