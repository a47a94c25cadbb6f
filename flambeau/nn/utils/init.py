"""Making a module without drawing its initial parameters."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from flambeau.core.errors import OpError, complaint
from flambeau.nn.modules.module import Module

__all__ = ["skip_init"]

Made = TypeVar("Made", bound=Module)


def skip_init(module_cls: type[Made], *args: Any, **kwargs: Any) -> Made:
    """module_cls(*args, **kwargs) with uninitialised parameters; it must take `device`."""
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise OpError(complaint("skip_init", "a Module class is expected", {"got": module_cls}))
    if "device" not in inspect.signature(module_cls).parameters:
        raise OpError(
            complaint(
                "skip_init",
                "the module's __init__ must have a device parameter",
                {"module": module_cls.__name__},
            )
        )
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
