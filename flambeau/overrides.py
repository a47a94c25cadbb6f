"""`torch.overrides`: for classes and modes that want to see calls of public functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from flambeau.core.errors import ArgumentError, complaint
from flambeau.core.nearest import missing_name
from flambeau.tensor.overrides import (
    DisableTorchFunctionSubclass as DisableTorchFunctionSubclass,
)
from flambeau.tensor.overrides import TorchFunctionMode as TorchFunctionMode
from flambeau.tensor.overrides import interested, modes
from flambeau.tensor.public import FUNCTIONS
from flambeau.tensor.tensor import Tensor

BaseTorchFunctionMode = TorchFunctionMode


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Would any of the arguments, or a mode, override a call with them?"""
    return bool(modes.stack) or (not modes.disabled and bool(interested(tuple(relevant_args))))


def has_torch_function_unary(arg: Any) -> bool:
    """`has_torch_function` of one argument."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` of several arguments."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the innermost mode, or else the first argument that overrides, makes of the call."""
    found = interested(tuple(relevant_args))
    types = tuple(dict.fromkeys(type(v) for v in found))
    before = modes.stack
    if before:
        modes.stack = before[:-1]
        try:
            result = before[-1].__torch_function__(public_api, types, args, kwargs)
        finally:
            modes.stack = before
        if result is not NotImplemented:
            return result
    for v in found:
        result = type(v).__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = getattr(public_api, "__name__", str(public_api))
    must = "no implementation was found for the types that override it"
    raise ArgumentError(complaint(name, must, {"types": [t.__name__ for t in types]}))


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Make a function overridable; `dispatcher(*args)` says which arguments count."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(call, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return call

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """A Tensor, or of a class with `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def is_tensor_method_or_property(func: Callable) -> bool:
    """Is it a method of Tensor?"""
    return getattr(Tensor, getattr(func, "__name__", ""), None) is func or (
        getattr(func, "__name__", "") == "__get__"
    )


def resolve_name(f: Callable) -> str | None:
    """The public name of a function: `torch.add`, `torch.Tensor.add_`; None if it has none."""
    for module, functions in FUNCTIONS.items():
        for name, function in functions.items():
            if function is f:
                return ".".join(filter(None, ("torch", module, name)))
    name = getattr(f, "__name__", "")
    return f"torch.Tensor.{name}" if getattr(Tensor, name, None) is f else None


def get_ignored_functions() -> set[Callable]:
    """Public functions that are never overridden: those of classes and settings."""
    return set()


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """Every function that can be overridden, by the module or class that it belongs to."""
    found: dict[Any, list[Callable]] = {
        ".".join(filter(None, ("torch", module))): list(functions.values())
        for module, functions in FUNCTIONS.items()
    }
    found[Tensor] = [f for f in vars(Tensor).values() if callable(f)]
    return found


__getattr__ = missing_name(__name__)
