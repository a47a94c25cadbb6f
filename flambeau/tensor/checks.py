"""`torch._check` and its like: raise unless something holds, with a message made only then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core.errors import ArgumentError, FlambeauError, complaint
from flambeau.tensor.tensor import Tensor


def _check_with(error_type: type[Exception], cond: Any,
                message: Callable[[], str] | None = None) -> None:
    """Raise `error_type` unless cond."""
    if not isinstance(cond, (bool, int)):
        raise ArgumentError(complaint("_check", "cond must be a bool", dict(
            cond=type(cond).__name__)))
    if cond:
        return
    if message is not None and not callable(message):
        raise ArgumentError(complaint("_check", "message must be a callable", dict(
            message=type(message).__name__)))
    text = complaint("_check", "expected cond to be True", dict(cond=cond))
    raise error_type(text if message is None else str(message()))


def _named(error_type: type[Exception]) -> type[Exception]:
    """The builtin error as one of ours as well."""
    return type(f"Failed{error_type.__name__}", (FlambeauError, error_type), {})


_RUNTIME, _VALUE, _INDEX, _TYPE, _UNIMPLEMENTED = map(
    _named, (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError))


def _check(cond: Any, message: Callable[[], str] | None = None) -> None:
    """RuntimeError unless cond."""
    _check_with(_RUNTIME, cond, message)


def _check_value(cond: Any, message: Callable[[], str] | None = None) -> None:
    """ValueError unless cond."""
    _check_with(_VALUE, cond, message)


def _check_index(cond: Any, message: Callable[[], str] | None = None) -> None:
    """IndexError unless cond."""
    _check_with(_INDEX, cond, message)


def _check_type(cond: Any, message: Callable[[], str] | None = None) -> None:
    """TypeError unless cond."""
    _check_with(_TYPE, cond, message)


def _check_not_implemented(cond: Any, message: Callable[[], str] | None = None) -> None:
    """NotImplementedError unless cond."""
    _check_with(_UNIMPLEMENTED, cond, message)


def _check_is_size(i: int, message: Callable[[], str] | None = None, *, max: Any = None) -> None:
    """RuntimeError unless i is a size."""
    _check_with(_RUNTIME, i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any,
                           message: Callable[[], str] | None = None) -> None:
    """Raise `error_type` unless all elements of the boolean tensor hold."""
    if not isinstance(cond, Tensor):
        raise ArgumentError(complaint("_check_tensor_all", "cond must be a tensor", dict(
            cond=type(cond).__name__)))
    if str(cond.dtype) != "torch.bool":
        raise ArgumentError(complaint("_check_tensor_all", "cond must have dtype torch.bool",
                                      dict(dtype=cond.dtype)))
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: Callable[[], str] | None = None) -> None:
    """RuntimeError unless all elements of the boolean tensor hold."""
    _check_tensor_all_with(_RUNTIME, cond, message)
