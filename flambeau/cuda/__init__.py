"""`torch.cuda`: what a script asks before it decides for the CPU."""

from __future__ import annotations

from typing import Any

from flambeau.core.nearest import missing_name
from flambeau.cuda import memory, random
from flambeau.devices.absent import NoDeviceError, namespace, refused, refused_class
from flambeau.devices.absent import refusal as _refusal
from flambeau.tensor.typed import CUDA_TYPES

globals().update(namespace("cuda"))
globals().update(CUDA_TYPES)

OutOfMemoryError = memory.OutOfMemoryError
CudaError = AcceleratorError = NoDeviceError
has_half = True
has_magma = False

for _name in (
    "caching_allocator_alloc", "caching_allocator_delete", "check_error", "cudart",
    "current_blas_handle", "current_solver_handle", "default_stream", "get_allocator_backend",
    "get_sync_debug_mode", "set_sync_debug_mode",
):  # fmt: skip
    globals()[_name] = refused("cuda", _name)
for _name in ("CUDAGraph", "CUDAPluggableAllocator", "ExternalStream", "GreenContext"):
    globals()[_name] = refused_class("cuda", _name)

memory_cached = max_memory_cached = memory.memory_allocated  # type: ignore[attr-defined]
reset_max_memory_allocated = memory.reset_peak_memory_stats  # type: ignore[attr-defined]
reset_max_memory_cached = reset_max_memory_allocated
memory_summary = memory.memory_summary
list_gpu_processes = memory.list_gpu_processes


def ipc_collect() -> None:
    """Free memory shared with other processes: there is none."""


def caching_allocator_enable(value: bool = True) -> None:
    """Switch the device's allocator: there is none."""


def is_tf32_supported() -> bool:
    """Does the GPU compute in TF32? There is none."""
    return False


def _lazy_init() -> None:
    raise _refusal("cuda", "init")


def _lazy_call(callable: Any, **kwargs: Any) -> None:
    """Kept by PyTorch until the device is first used, which never happens."""


_missing = missing_name(__name__)


def __getattr__(name: str) -> Any:
    if name == "amp":
        import importlib

        return importlib.import_module("flambeau.cuda.amp")
    return _missing(name)
