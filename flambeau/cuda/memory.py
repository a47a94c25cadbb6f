"""`torch.cuda.memory`: figures of a GPU's allocator, all of them zero without a GPU."""

from __future__ import annotations

from typing import Any

from flambeau.core.errors import OutOfMemoryError as OutOfMemoryError
from flambeau.devices.absent import namespace

_NAMES = namespace("cuda")
for _name in (
    "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_reserved", "memory_snapshot", "memory_stats", "empty_cache",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
):  # fmt: skip
    globals()[_name] = _NAMES[_name]


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The allocator's figures as text."""
    return "No CUDA device: no memory is allocated.\n"


def list_gpu_processes(device: Any = None) -> str:
    """The processes that use the GPU, as text."""
    return "No CUDA device: no processes use it.\n"


def _record_memory_history(*args: Any, **kwargs: Any) -> None:
    """Record allocations: there are none."""
