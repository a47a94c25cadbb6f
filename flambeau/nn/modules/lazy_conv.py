"""Convolutions that learn in_channels from their first input."""

from __future__ import annotations

from typing import Any

from flambeau.core.errors import OpError, complaint
from flambeau.nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    _ConvNd,
    _ConvTransposeNd,
    _ForwardConv,
)
from flambeau.nn.modules.lazy import LazyModuleMixin
from flambeau.nn.parameter import UninitializedParameter
from flambeau.tensor import Tensor

__all__ = [
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]


class _LazyConvXdMixin(LazyModuleMixin, _ConvNd):
    """Parameters without a shape, made from the first input's channels."""

    def _make_lazy(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Nothing to draw until the shape is known."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take in_channels from the input, and draw."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._channels_of(input)
        if self.in_channels % self.groups:
            raise OpError(
                complaint(
                    type(self).__name__,
                    "in_channels must be divisible by groups",
                    {"in_channels": self.in_channels, "groups": self.groups},
                )
            )
        self.weight.materialize(self._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _channels_of(self, input: Tensor) -> int:
        batched = self._dimensions + 2
        if input.dim() not in (batched - 1, batched):
            raise OpError(
                complaint(
                    type(self).__name__,
                    f"an input of {batched - 1} or {batched} dimensions is expected",
                    {"shape": tuple(input.shape)},
                )
            )
        return input.shape[1] if input.dim() == batched else input.shape[0]


class _LazyForwardConv(_LazyConvXdMixin, _ForwardConv):
    """The arguments of a convolution but for in_channels."""

    def __init__(
        self,
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
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyTransposedConv(_LazyConvXdMixin, _ConvTransposeNd):
    """The arguments of a transposed convolution but for in_channels."""

    def __init__(
        self,
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
        super().__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
        )
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyForwardConv, Conv1d):
    """A Conv1d that learns in_channels from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyForwardConv, Conv2d):
    """A Conv2d that learns in_channels from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyForwardConv, Conv3d):
    """A Conv3d that learns in_channels from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyTransposedConv, ConvTranspose1d):
    """A ConvTranspose1d that learns in_channels from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposedConv, ConvTranspose2d):
    """A ConvTranspose2d that learns in_channels from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposedConv, ConvTranspose3d):
    """A ConvTranspose3d that learns in_channels from its first input."""

    cls_to_become = ConvTranspose3d
