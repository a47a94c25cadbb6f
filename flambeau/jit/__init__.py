"""`torch.jit`: scripting and tracing, where what comes back runs as the Python that it is.

TorchScript freezes a program in another language. `flambeau.compile` reads the Python itself, so
`script` and `trace` have nothing to translate: they check what they are given and return a
callable, or a module with the same parameters. Annotations for TorchScript change nothing.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final, TypeVar

from flambeau.core.nearest import missing_name
from flambeau.jit.archives import load, save
from flambeau.jit.modules import (
    CompilationUnit,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    TopLevelTracedModule,
    TracedModule,
    freeze,
    optimize_for_inference,
    run_frozen_optimizations,
    script,
    trace,
    trace_module,
)
from flambeau.jit.tasks import Future, fork, wait

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracedModule",
    "TracerWarning",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "run_frozen_optimizations",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

F = TypeVar("F", bound=Callable)
Error = RuntimeError


class TracerWarning(Warning):
    """PyTorch's warning where tracing loses Python: nothing is lost here."""


def is_scripting() -> bool:
    """Is this TorchScript? No, Python."""
    return False


def is_tracing() -> bool:
    """Is the program being traced? No: it runs."""
    return False


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A method that TorchScript leaves to Python: all are."""
    if callable(drop):
        return drop
    return lambda fn: fn


def unused(fn: F) -> F:
    """A method that TorchScript never calls; unchanged."""
    return fn


def export(fn: F) -> F:
    """A method that TorchScript keeps beside `forward`; unchanged."""
    return fn


script_method = script_if_tracing = interface = unused


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value; its type is TorchScript's concern."""
    return the_value


def Attribute(value: Any, type: Any) -> Any:
    """The value; its type is TorchScript's concern."""
    return value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's isinstance, for container types such as `List[int]` by the container."""
    kinds = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return builtins.isinstance(obj, tuple(getattr(k, "__origin__", k) or k for k in kinds))


class _Accepted:
    """A block or a setting of TorchScript's optimiser, without effect."""

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


optimized_execution = strict_fusion = _Accepted


def set_fusion_strategy(strategy: Any) -> list:
    """Accepted; fusion is flambeau's own."""
    return list(strategy)


def enable_onednn_fusion(enabled: bool) -> None:
    """Accepted; fusion is flambeau's own."""


def onednn_fusion_enabled() -> bool:
    """Does oneDNN fuse? There is none."""
    return False


__getattr__ = missing_name(__name__)
