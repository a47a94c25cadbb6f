"""Padding: (before, after) of the last dimension first, then of the one before it, and so on."""

from __future__ import annotations

from flambeau.core.errors import UnsupportedError, complaint
from flambeau.nn import functional as F
from flambeau.nn.modules.module import Module
from flambeau.nn.modules.utils import _ntuple
from flambeau.tensor import Tensor

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

Padding = int | tuple[int, ...]


class _PadNd(Module):
    __constants__ = ["padding"]
    _dimensions = 0
    _mode = "constant"

    def __init__(self, padding: Padding) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._dimensions)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding: Padding, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with a value."""

    _dimensions = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with a value."""

    _dimensions = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with a value."""

    _dimensions = 3


class ZeroPad1d(ConstantPad1d):
    """Pads the last dimension with zeros."""

    def __init__(self, padding: Padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pads the last two dimensions with zeros."""

    def __init__(self, padding: Padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pads the last three dimensions with zeros."""

    def __init__(self, padding: Padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Mirrors the last dimension at its edges, without repeating them."""

    _dimensions = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Mirrors the last two dimensions at their edges."""

    _dimensions = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Mirrors the last three dimensions at their edges."""

    _dimensions = 3


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Repeats the edges of the last dimension."""

    _dimensions = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Repeats the edges of the last two dimensions."""

    _dimensions = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Repeats the edges of the last three dimensions."""

    _dimensions = 3


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        n = self._dimensions
        if input.dim() not in (n + 1, n + 2):
            raise UnsupportedError(
                complaint(
                    type(self).__name__,
                    f"expected {n + 1}D or {n + 2}D input",
                    {"input": f"{input.dim()}D", "shape": tuple(input.shape)},
                )
            )
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd):
    """Continues the last dimension from its other end."""

    _dimensions = 1


class CircularPad2d(_CircularPadNd):
    """Continues the last two dimensions from their other ends."""

    _dimensions = 2


class CircularPad3d(_CircularPadNd):
    """Continues the last three dimensions from their other ends."""

    _dimensions = 3
