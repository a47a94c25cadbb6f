"""`torch.fx`: graphs of modules by symbolic tracing. flambeau's own graphs come from `compile`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core.absence import refused_names
from flambeau.core.nearest import missing_name

globals().update(
    refused_names(
        "fx",
        """CodeGen Graph GraphModule Interpreter Node Proxy Tracer Transformer replace_pattern
        symbolic_trace""",
        "modules are not traced into fx graphs",
        "Use compile(model), and compile.explain for what it captured.",
    )
)


def wrap(fn_or_name: str | Callable) -> Any:
    """Accepted: nothing is traced symbolically."""
    return fn_or_name


__getattr__ = missing_name(__name__)
