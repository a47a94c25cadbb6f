"""Moving a module's parameters and buffers to another device, dtype or memory format, in place.

A parameter keeps its identity, so that an optimizer built before the move still updates it. Only
a parameter on the meta device, which has no data to replace, becomes a new object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import core
from flambeau.autograd.modes import no_grad
from flambeau.core.errors import ArgumentError, UnsupportedError, complaint
from flambeau.nn.modules.traversal import Traversal
from flambeau.nn.parameter import Parameter, is_lazy
from flambeau.tensor import Tensor, empty_like


class Conversion(Traversal):
    """The part of Module that converts its tensors."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Replace every parameter, its gradient, and every buffer by fn of it."""
        if recurse:
            for child in self.children():
                child._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                self._parameters[name] = converted_parameter(parameter, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        self._touch()
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """to(device, dtype, non_blocking), to(dtype), to(tensor), to(memory_format=...).

        dtype applies to floating-point and complex tensors only. Returns this module.
        """
        device, dtype, non_blocking, memory_format = parsed_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise ArgumentError(
                complaint(
                    "Module.to",
                    "a floating-point or complex dtype is expected",
                    {"dtype": dtype},
                )
            )

        def convert(tensor: Tensor) -> Tensor:
            wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            check_has_data(tensor, device)
            if memory_format is not None and tensor.dim() in (4, 5):
                return tensor.to(device, wanted, non_blocking, memory_format=memory_format)
            return tensor.to(device, wanted, non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """Give every tensor uninitialised memory on a device."""
        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def cpu(self) -> Any:
        """Move everything to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Any:
        """Move everything to a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def type(self, dst_type: Any) -> Any:
        """Cast every tensor, integers too, to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def _cast_floating(self, dtype: Any) -> Any:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Any:
        """Cast the floating-point tensors to float32."""
        return self._cast_floating(core.dtype.float32)

    def double(self) -> Any:
        """Cast the floating-point tensors to float64."""
        return self._cast_floating(core.dtype.float64)

    def half(self) -> Any:
        """Cast the floating-point tensors to float16."""
        return self._cast_floating(core.dtype.float16)

    def bfloat16(self) -> Any:
        """Cast the floating-point tensors to bfloat16."""
        return self._cast_floating(core.dtype.bfloat16)

    def share_memory(self) -> Any:
        """Move everything to memory that child processes share."""
        return self._apply(lambda t: t.share_memory_())


def converted_parameter(parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> Parameter:
    """The parameter with fn applied to its data and gradient: the same object where possible."""
    with no_grad():
        data = fn(parameter)
        gradient = None if parameter.grad is None else fn(parameter.grad)
    if is_lazy(parameter) or data.device.type == parameter.device.type:
        parameter.data = data
    else:
        parameter = Parameter(data, parameter.requires_grad)
    if gradient is not None:
        parameter.grad = gradient.requires_grad_(parameter.grad.requires_grad)
    return parameter


def parsed_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """(device, dtype, non_blocking, memory_format) of the three ways to call `to`."""
    memory_format = kwargs.pop("memory_format", None)
    names = ["device", "dtype", "non_blocking"]
    if args and isinstance(args[0], Tensor) or "tensor" in kwargs:
        other = args[0] if args else kwargs.pop("tensor")
        args = (other.device, other.dtype, *args[1:])
    elif args and isinstance(args[0], core.dtype.dtype):
        names = names[1:]
    given = dict(zip(names, args, strict=False))
    given.update(kwargs)
    unknown = set(given) - {"device", "dtype", "non_blocking", "copy"}
    if unknown or len(args) > len(names) + 1:
        raise ArgumentError(
            complaint(
                "Module.to",
                "to(device, dtype, non_blocking), to(dtype) or to(tensor) is expected",
                {"args": args, "kwargs": sorted(kwargs)},
            )
        )
    device = given.get("device")
    if device is not None:
        device = core.device.device(device)
    return device, given.get("dtype"), given.get("non_blocking", False), memory_format


def check_has_data(tensor: Tensor, device: Any) -> None:
    """Refuse to move a tensor that has no data to a device that needs data."""
    if device is not None and tensor.device.type == "meta" and device.type != "meta":
        raise UnsupportedError(
            complaint(
                "Module.to",
                "a meta tensor has no data to copy",
                {"device": device},
                "Use to_empty() and then initialise the parameters.",
            )
        )
