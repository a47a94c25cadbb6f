"""Convolutions and their transposes, over 1 to 3 dimensions."""

from __future__ import annotations

import math
from typing import Any

from flambeau.core.errors import ValueRangeError, complaint
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.modules.module import Module
from flambeau.nn.modules.utils import _ntuple, _reverse_repeat_tuple
from flambeau.nn.parameter import Parameter
from flambeau.tensor import Tensor, empty

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all convolutions share: sizes, parameters, their initial values, the text form."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]
    _dimensions = 0
    _function = ""
    bias: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...] | str,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_channels(type(self).__name__, in_channels, out_channels, groups)
        check_padding(type(self).__name__, padding, stride, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = pad_amounts(padding, kernel_size, dilation)
        shape = self._weight_shape()
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        """(out, in / groups, *kernel), or for a transposed one (in, out / groups, *kernel)."""
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Draw the weight and then the bias again, uniform in +-1/sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            init.uniform_by_fan_in_(self.bias, self.weight)

    def extra_repr(self) -> str:
        n = len(self.kernel_size)
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        ]
        if self.padding != (0,) * n:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * n:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * n:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


def check_channels(name: str, in_channels: int, out_channels: int, groups: int) -> None:
    """Refuse groups that do not divide the channels."""
    if groups <= 0:
        raise ValueRangeError(
            complaint(name, "groups must be a positive integer", {"groups": groups})
        )
    for what, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
        if channels % groups:
            facts = {what: channels, "groups": groups}
            raise ValueRangeError(complaint(name, f"{what} must be divisible by groups", facts))


def check_padding(name: str, padding: Any, stride: tuple[int, ...], mode: str) -> None:
    """Refuse unknown padding words and modes."""
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueRangeError(
                complaint(
                    name, "padding must be 'same', 'valid' or sizes", {"padding": repr(padding)}
                )
            )
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueRangeError(
                complaint(name, "padding='same' needs stride 1", {"stride": stride})
            )
    if mode not in PADDING_MODES:
        raise ValueRangeError(
            complaint(name, f"padding_mode must be one of {PADDING_MODES}", {"mode": repr(mode)})
        )


def pad_amounts(padding: Any, kernel: tuple[int, ...], dilation: tuple[int, ...]) -> list[int]:
    """padding as F.pad takes it: last dimension first, (before, after) each."""
    if not isinstance(padding, str):
        return list(_reverse_repeat_tuple(padding, 2))
    amounts = []
    for size, step in zip(reversed(kernel), reversed(dilation), strict=True):
        total = step * (size - 1) if padding == "same" else 0
        amounts += [total // 2, total - total // 2]
    return amounts


class _ForwardConv(_ConvNd):
    """y = x * W + b, a cross-correlation; subclasses say in how many dimensions."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: str | int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = _ntuple(self._dimensions)
        super().__init__(
            in_channels,
            out_channels,
            sizes(kernel_size),
            sizes(stride),
            padding if isinstance(padding, str) else sizes(padding),
            sizes(dilation),
            False,
            sizes(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        convolve = getattr(F, self._function)
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_ForwardConv):
    """Cross-correlation over (batch, channels, length)."""

    _dimensions = 1
    _function = "conv1d"


class Conv2d(_ForwardConv):
    """Cross-correlation over (batch, channels, height, width)."""

    _dimensions = 2
    _function = "conv2d"


class Conv3d(_ForwardConv):
    """Cross-correlation over (batch, channels, depth, height, width)."""

    _dimensions = 3
    _function = "conv3d"


class _ConvTransposeNd(_ConvNd):
    """The gradient of a convolution with respect to its input, as a layer."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueRangeError(
                complaint(
                    type(self).__name__,
                    'padding_mode must be "zeros"',
                    {"padding_mode": repr(padding_mode)},
                )
            )
        sizes = _ntuple(self._dimensions)
        super().__init__(
            in_channels,
            out_channels,
            sizes(kernel_size),
            sizes(stride),
            sizes(padding),
            sizes(dilation),
            True,
            sizes(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """What has to be added to the smallest output to reach output_size."""
        if output_size is None:
            return self.output_padding
        n = self._dimensions
        wanted = tuple(output_size)
        if len(wanted) == input.dim():
            wanted = wanted[-n:]
        if len(wanted) != n:
            raise ValueRangeError(
                complaint(
                    type(self).__name__,
                    f"output_size must have {n} or {input.dim()} entries",
                    {"output_size": tuple(output_size)},
                )
            )
        padding: Any = self.padding
        smallest = tuple(
            (size - 1) * stride - 2 * pad + dilation * (kernel - 1) + 1
            for size, stride, pad, dilation, kernel in zip(
                input.shape[-n:],
                self.stride,
                padding,
                self.dilation,
                self.kernel_size,
                strict=True,
            )
        )
        largest = tuple(s + step - 1 for s, step in zip(smallest, self.stride, strict=True))
        if not all(s <= w <= g for s, w, g in zip(smallest, wanted, largest, strict=True)):
            raise ValueRangeError(
                complaint(
                    type(self).__name__,
                    f"output_size must be between {smallest} and {largest}",
                    {"output_size": wanted, "input": tuple(input.shape)},
                )
            )
        return tuple(w - s for w, s in zip(wanted, smallest, strict=True))

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        transposed = getattr(F, self._function)
        return transposed(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution over (batch, channels, length)."""

    _dimensions = 1
    _function = "conv_transpose1d"


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution over (batch, channels, height, width)."""

    _dimensions = 2
    _function = "conv_transpose2d"


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution over (batch, channels, depth, height, width)."""

    _dimensions = 3
    _function = "conv_transpose3d"
