"""Reverse-mode automatic differentiation: tape, engine, modes, custom functions.

`flambeau.autograd` is also PyTorch's `torch.autograd`; its public names load on first use.
"""

from __future__ import annotations

import importlib

from flambeau.core.nearest import missing_name

_HOMES = {
    "function": ("Function", "once_differentiable", "FunctionCtx"),
    "gradients": ("backward", "grad"),
    "modes": ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "is_grad_enabled"),
    "anomaly": ("detect_anomaly", "set_detect_anomaly"),
    "finite_differences": ("gradcheck", "gradgradcheck", "GradcheckError"),
    "hooks": ("RemovableHandle",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = {"function", "graph", "functional", "profiler"}


_missing = missing_name(__name__)


def __getattr__(name: str):
    if name in _HOME:
        module = importlib.import_module(f"flambeau.autograd.{_HOME[name]}")
        return globals().setdefault(name, getattr(module, name))
    if name == "Variable":
        from flambeau.tensor.tensor import Tensor

        return Tensor
    if name in _MODULES:
        return importlib.import_module(f"flambeau.autograd.{name}")
    return _missing(name)
