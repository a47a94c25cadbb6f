"""PyTorch's `torch.utils`: places for public names whose code lives in other packages."""

from __future__ import annotations

import importlib
from typing import Any

from flambeau.core.nearest import missing_name

_MODULES = frozenset(("_pytree", "checkpoint", "data", "dlpack", "hooks", "tensorboard"))
_missing = missing_name(__name__)


def set_module(obj: Any, mod: str) -> None:
    """Say that a class or function belongs to the module of this name."""
    obj.__module__ = mod


def swap_tensors(t1: Any, t2: Any) -> None:
    """Each tensor shows what the other did: memory, layout and attributes."""
    names = ["_array", "_spec", "_storage", "_offset", "_requires_grad", "_node", "_output_nr"]
    names += ["_grad", "_base", "_extra", "__class__"]
    ours = [getattr(t1, name) for name in names]
    for name, value in zip(names, ours):
        setattr(t1, name, getattr(t2, name))
        setattr(t2, name, value)
    first, second = dict(t1.__dict__), dict(t2.__dict__)
    t1.__dict__.clear(), t2.__dict__.clear()
    t1.__dict__.update(second), t2.__dict__.update(first)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"flambeau.utils.{name}")
    return _missing(name)
