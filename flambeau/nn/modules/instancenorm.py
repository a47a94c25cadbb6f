"""Normalisation by the statistics of each sample's channels."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.core.errors import ValueRangeError, complaint
from flambeau.nn import functional as F
from flambeau.nn.modules.batchnorm import _LazyNormBase, _NormBase, expect_dimensions
from flambeau.tensor import Tensor

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    """y = (x - mean) / sqrt(var + eps) * weight + bias, with the moments of each sample's channel.

    An input without the batch dimension counts as one sample.
    """

    _dimensions = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _check_input_dim(self, input: Tensor) -> None:
        expect_dimensions(self, input, (self._dimensions + 1, self._dimensions + 2))

    def _apply_norm(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        self._check_channels(input)
        if input.dim() == self._dimensions + 1:
            return self._apply_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_norm(input)

    def _check_channels(self, input: Tensor) -> None:
        dim = input.dim() - self._dimensions - 1
        if input.size(dim) == self.num_features:
            return
        rule = f"expected input's size at dim={dim} to match num_features"
        facts = {"num_features": self.num_features, "shape": tuple(input.shape)}
        if self.affine:
            raise ValueRangeError(complaint(type(self).__name__, rule, facts))
        warnings.warn(
            complaint(type(self).__name__, rule, facts, "It is not used, as affine=False."),
            stacklevel=4,
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance norm over (batch, channels, length) or (channels, length)."""

    _dimensions = 1


class InstanceNorm2d(_InstanceNorm):
    """Instance norm over (batch, channels, height, width) or without batch."""

    _dimensions = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance norm over (batch, channels, depth, height, width) or without batch."""

    _dimensions = 3


class _LazyInstanceNorm(_LazyNormBase):
    """Counts channels one dimension earlier when the batch is missing."""

    def initialize_parameters(self, input: Tensor) -> None:
        self._check_input_dim(input)
        batched = input.dim() == self._dimensions + 2
        super().initialize_parameters(input if batched else input.unsqueeze(0))


class LazyInstanceNorm1d(_LazyInstanceNorm, _InstanceNorm):
    """An InstanceNorm1d that learns num_features from its first input."""

    _dimensions = 1
    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyInstanceNorm, _InstanceNorm):
    """An InstanceNorm2d that learns num_features from its first input."""

    _dimensions = 2
    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyInstanceNorm, _InstanceNorm):
    """An InstanceNorm3d that learns num_features from its first input."""

    _dimensions = 3
    cls_to_become = InstanceNorm3d
