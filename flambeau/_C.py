"""`torch._C`: the few names of PyTorch's compiled library that programs touch."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.modes import is_grad_enabled as is_grad_enabled
from flambeau.core.device import device as device
from flambeau.core.dtype import dtype as dtype
from flambeau.core.nearest import missing_name
from flambeau.core.spec import Size as Size
from flambeau.random import Generator as Generator
from flambeau.tensor.layout import layout as layout
from flambeau.tensor.layout import memory_format as memory_format
from flambeau.tensor.overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from flambeau.tensor.overrides import no_torch_function as _disabled_torch_function_impl
from flambeau.tensor.overrides import switch as _switch
from flambeau.tensor.tensor import Tensor as TensorBase

_TensorBase = TensorBase
__all__ = ["_disabled_torch_function_impl"]


def _get_tracing_state() -> Any:
    """The trace that is being made: None, programs run."""
    return None


def _is_torch_function_enabled() -> bool:
    """Are calls of public functions shown to anybody?"""
    return _switch.active


def _log_api_usage_once(event: str) -> None:
    """PyTorch counts uses of its interface; flambeau does not."""


__getattr__ = missing_name(__name__)
