"""Pooling: the maximum, mean or norm of windows."""

from __future__ import annotations

from typing import Any

from flambeau.core.errors import ValueRangeError, complaint
from flambeau.nn import functional as F
from flambeau.nn.modules.module import Module
from flambeau.nn.modules.utils import _ntuple, _pair, _single, _triple
from flambeau.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]

Size = int | tuple[int, ...]


class _MaxPoolNd(Module):
    """The maximum of each window; with return_indices also where it was (flat, per channel)."""

    __constants__ = [
        "kernel_size",
        "stride",
        "padding",
        "dilation",
        "return_indices",
        "ceil_mode",
    ]

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _settings(self) -> dict[str, Any]:
        return {
            "kernel_size": self.kernel_size,
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            "ceil_mode": self.ceil_mode,
        }

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._settings().items())


class MaxPool1d(_MaxPoolNd):
    """Max pooling over (batch, channels, length)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.max_pool1d(input, return_indices=self.return_indices, **self._settings())


class MaxPool2d(_MaxPoolNd):
    """Max pooling over (batch, channels, height, width)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.max_pool2d(input, return_indices=self.return_indices, **self._settings())


class MaxPool3d(_MaxPoolNd):
    """Max pooling over (batch, channels, depth, height, width)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.max_pool3d(input, return_indices=self.return_indices, **self._settings())


class _MaxUnpoolNd(Module):
    """Puts values back where max pooling found them; zeros elsewhere."""

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"

    def _set(self, sizes: Any, kernel_size: Size, stride: Size | None, padding: Size) -> None:
        self.kernel_size = sizes(kernel_size)
        self.stride = self.kernel_size if stride is None else sizes(stride)
        self.padding = sizes(padding)


class MaxUnpool1d(_MaxUnpoolNd):
    """The partial inverse of MaxPool1d."""

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> None:
        super().__init__()
        self._set(_single, kernel_size, stride, padding)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: list[int] | None = None
    ) -> Tensor:
        return F.max_unpool1d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool2d(_MaxUnpoolNd):
    """The partial inverse of MaxPool2d."""

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> None:
        super().__init__()
        self._set(_pair, kernel_size, stride, padding)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: list[int] | None = None
    ) -> Tensor:
        return F.max_unpool2d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool3d(_MaxUnpoolNd):
    """The partial inverse of MaxPool3d."""

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> None:
        super().__init__()
        self._set(_triple, kernel_size, stride, padding)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: list[int] | None = None
    ) -> Tensor:
        return F.max_unpool3d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class _AvgPoolNd(Module):
    """The mean of each window; count_include_pad: zeros of the padding count as elements."""

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """Mean pooling over (batch, channels, length)."""

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = self.kernel_size if stride is None else _single(stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class _DividedAvgPool(_AvgPoolNd):
    """Mean pooling with an optional divisor of one's own."""

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _settings(self) -> tuple:
        return (
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_DividedAvgPool):
    """Mean pooling over (batch, channels, height, width)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(input, *self._settings())


class AvgPool3d(_DividedAvgPool):
    """Mean pooling over (batch, channels, depth, height, width)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(input, *self._settings())


class _FractionalMaxPool(Module):
    """Max pooling over windows of random sizes (Graham, 2014): output size or ratio is given."""

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _dimensions = 0

    def __init__(
        self,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        sizes = _ntuple(self._dimensions)
        if self._dimensions == 3:
            check_positive(type(self).__name__, "kernel_size", sizes(kernel_size))
        self.kernel_size = sizes(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else sizes(output_size)
        self.output_ratio = None if output_ratio is None else sizes(output_ratio)
        if (output_size is None) == (output_ratio is None):
            raise ValueRangeError(
                complaint(
                    type(self).__name__,
                    "exactly one of output_size and output_ratio must be given",
                    {"output_size": output_size, "output_ratio": output_ratio},
                )
            )
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueRangeError(
                complaint(
                    type(self).__name__,
                    "output_ratio must be between 0 and 1",
                    {"output_ratio": output_ratio},
                )
            )


def check_positive(name: str, what: str, sizes: tuple[int, ...]) -> None:
    """Refuse sizes below 1."""
    if any(size <= 0 for size in sizes):
        raise ValueRangeError(complaint(name, f"{what} must be greater than 0", {what: sizes}))


class FractionalMaxPool2d(_FractionalMaxPool):
    """Fractional max pooling over (batch, channels, height, width)."""

    _dimensions = 2

    def forward(self, input: Tensor) -> Tensor:
        return F.fractional_max_pool2d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool3d(_FractionalMaxPool):
    """Fractional max pooling over (batch, channels, depth, height, width)."""

    _dimensions = 3

    def forward(self, input: Tensor) -> Tensor:
        return F.fractional_max_pool3d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class _LPPoolNd(Module):
    """(sum of x^norm_type over each window)^(1 / norm_type)."""

    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(
        self,
        norm_type: float,
        kernel_size: Size,
        stride: Size | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, ceil_mode={self.ceil_mode}"
        )

    def _settings(self) -> tuple:
        return float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode


class LPPool1d(_LPPoolNd):
    """Power-average pooling over (batch, channels, length)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, *self._settings())


class LPPool2d(_LPPoolNd):
    """Power-average pooling over (batch, channels, height, width)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, *self._settings())


class LPPool3d(_LPPoolNd):
    """Power-average pooling over (batch, channels, depth, height, width)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, *self._settings())


class _AdaptiveMaxPoolNd(Module):
    """Max pooling to a given output size, whatever the input's."""

    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Adaptive max pooling over (batch, channels, length)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Adaptive max pooling over (batch, channels, height, width)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Adaptive max pooling over (batch, channels, depth, height, width)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(Module):
    """Mean pooling to a given output size, whatever the input's."""

    __constants__ = ["output_size"]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Adaptive mean pooling over (batch, channels, length)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Adaptive mean pooling over (batch, channels, height, width)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Adaptive mean pooling over (batch, channels, depth, height, width)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)
