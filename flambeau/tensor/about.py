"""What the package says about itself and about objects, under PyTorch's names."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.device import CPU
from flambeau.core.device import device as Device
from flambeau.core.errors import NoDeviceError, OpError, complaint
from flambeau.core.errors import OutOfMemoryError as OutOfMemoryError
from flambeau.tensor.factories import arange
from flambeau.tensor.tensor import Tensor
from flambeau.tensor.typed import TypedTensor, type_name
from flambeau.version import __version__

has_lapack, has_mkl, has_openmp, has_spectral = True, False, False, True
torch_version = SimpleNamespace(__version__=__version__)
AcceleratorError = NoDeviceError


def typename(obj: Any) -> str:
    """The full name of a type or of an object's type; `torch.FloatTensor` for a tensor."""
    if isinstance(obj, Tensor):
        return type_name(obj)
    itself = isinstance(obj, (type, TypedTensor)) or hasattr(obj, "__qualname__")
    named = obj if itself else type(obj)
    module = getattr(named, "__module__", None) or ""
    name = getattr(named, "__qualname__", str(named))
    return name if module in ("", "builtins") else f"{module}.{name}"


def get_device(input: Tensor) -> int:
    """The index of the tensor's device; -1 for the CPU."""
    return input.get_device()


def get_device_module(device: Any = None) -> Any:
    """`torch.cuda` for a cuda device, `torch.cpu` for the CPU."""
    kind = CPU.type if device is None else Device(device).type
    if kind not in ("cpu", "cuda", "mps", "xpu", "mtia"):
        raise OpError(complaint("get_device_module", "the device must have a module", dict(
            device=device)))
    return importlib.import_module("flambeau." + kind)


def get_file_path(*path_components: str) -> str:
    """A path beside the package."""
    return str(Path(__file__).parents[2].joinpath(*path_components))


def compiled_with_cxx11_abi() -> bool:
    """PyTorch's question to its C++ library; there is none here."""
    return True


def is_distributed(input: Tensor) -> bool:
    """Is it spread over processes? No."""
    return False


def is_vulkan_available() -> bool:
    """Is there a Vulkan device? No."""
    return False


def thread_safe_generator() -> None:
    """A generator of the data loader's worker; None outside of one."""
    return None


def range(start: Any = 0, end: Any = None, step: Any = 1, **options: Any) -> Tensor:
    """start, start + step, .. up to and with end; deprecated for `arange`."""
    if end is None:
        start, end = 0, start
    count = int(np.floor((end - start) / step)) + 1
    kind = options.pop("dtype", None) or dtypes.default_dtype()
    return arange(start, start + (count - 0.5) * step, step, dtype=kind, **options)


def constant_pad_nd(input: Tensor, pad: Any, value: float = 0) -> Tensor:
    """`nn.functional.pad` with a constant."""
    from flambeau.tensor.public import FUNCTIONS

    return FUNCTIONS["nn.functional"]["pad"](input, list(pad), "constant", value)


def _show() -> str:
    return f"flambeau {__version__}: kernels generated through LLVM, NumPy {np.__version__}\n"


def _parallel_info() -> str:
    from flambeau.runtime import pool

    return f"flambeau.runtime.pool: {pool.get_num_threads()} threads\n"


__config__ = SimpleNamespace(show=_show, parallel_info=_parallel_info)
