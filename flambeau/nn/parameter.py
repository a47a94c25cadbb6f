"""Tensors that belong to a module: a Parameter is trained, a Buffer is only carried along.

Assigning one to an attribute of a Module registers it there. Uninitialized ones have no shape yet:
a lazy module gives them one (`materialize`) when it sees its first input.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flambeau.core.errors import OpError, ValueRangeError, complaint
from flambeau.tensor import Tensor, empty

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "is_lazy",
]


class Parameter(Tensor):
    """A leaf tensor that `Module.parameters()` yields; it shares memory with `data`."""

    _plain_results = True  # what is computed from it is an ordinary Tensor

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        source = empty(0) if data is None else data
        return Tensor._make_subclass(cls, source, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]
        copied = type(self)(self.detach().clone(), self.requires_grad)
        copied.__dict__.update(self.__dict__)
        memo[id(self)] = copied
        return copied

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return rebuild_parameter, (self.detach(), self.requires_grad, dict(self.__dict__))


def rebuild_parameter(data: Tensor, requires_grad: bool, attributes: dict) -> Parameter:
    """The inverse of pickling a Parameter."""
    parameter = Parameter(data, requires_grad)
    parameter.__dict__.update(attributes)
    return parameter


class Buffer(Tensor):
    """A tensor that follows its module to devices and into `state_dict`, and is not trained."""

    _plain_results = True

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        source = empty(0) if data is None else data
        buffer = Tensor._make_subclass(cls, source, source.requires_grad)
        buffer.persistent = persistent
        return buffer

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return rebuild_buffer, (self.detach(), getattr(self, "persistent", True))

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        if id(self) not in memo:
            copied = rebuild_buffer(self.detach().clone(), getattr(self, "persistent", True))
            memo[id(self)] = copied
        return memo[id(self)]


def rebuild_buffer(data: Tensor, persistent: bool) -> Buffer:
    """The inverse of pickling a Buffer."""
    return Buffer(data, persistent=persistent)


class UninitializedTensor(Tensor):
    """A tensor whose shape is not known yet; only its dtype and device are."""

    _plain_results = True
    _becomes: type
    data: Any

    def materialize(self, shape: tuple[int, ...], device: Any = None, dtype: Any = None) -> None:
        """Give it memory, uninitialised, and turn it into an ordinary parameter or buffer."""
        self.data = empty(
            tuple(shape),
            device=self.data.device if device is None else device,
            dtype=self.data.dtype if dtype is None else dtype,
        )
        self.__class__ = self._becomes

    @property
    def shape(self) -> tuple[int, ...]:
        raise OpError(
            complaint(
                "shape",
                "an uninitialized parameter or buffer has no shape yet",
                hint="Run one forward pass to initialise the lazy module that owns it.",
            )
        )

    def share_memory_(self) -> None:
        raise OpError(
            complaint(
                "share_memory_",
                "an uninitialized parameter or buffer has no memory to share",
                hint="Run one forward pass to initialise the lazy module that owns it.",
            )
        )

    def __iter__(self) -> Iterator:
        raise self._refusal("iter")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return rebuild_uninitialized, (
            type(self),
            self.requires_grad,
            self.data.device,
            self.data.dtype,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            rebuild, arguments = self.__reduce_ex__(2)
            memo[id(self)] = rebuild(*arguments)
        return memo[id(self)]

    @staticmethod
    def _refusal(name: str) -> ValueRangeError:
        return ValueRangeError(
            complaint(
                name,
                "an uninitialized parameter or buffer cannot be computed with",
                hint="Run one forward pass to initialise the lazy module that owns it.",
            )
        )


def rebuild_uninitialized(kind: type, requires_grad: bool, device: Any, dtype: Any) -> Any:
    """The inverse of pickling an uninitialized parameter or buffer."""
    return kind(requires_grad, device=device, dtype=dtype)


class UninitializedParameter(UninitializedTensor, Parameter):
    """A Parameter whose shape is not known yet."""

    _becomes = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        return Tensor._make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(UninitializedTensor):
    """A buffer whose shape is not known yet."""

    _becomes = Buffer

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        data = empty(0, device=device, dtype=dtype)
        buffer = Tensor._make_subclass(cls, data, requires_grad)
        buffer.persistent = persistent
        return buffer


def is_lazy(value: Any) -> bool:
    """Whether value is a parameter or buffer that still lacks a shape."""
    return isinstance(value, UninitializedTensor)
