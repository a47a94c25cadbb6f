"""Calling a module with other parameters and buffers than its own, under the older name."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.nn.modules.module import Module
from flambeau.tensor import Tensor

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The same as func.functional_call."""
    from flambeau.func.modules import functional_call as call  # func itself needs nn

    warnings.warn(
        "nn.utils.stateless.functional_call is deprecated; use func.functional_call",
        FutureWarning,
        stacklevel=2,
    )
    return call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
