"""A linear map to class scores and its cross-entropy, in one module."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from flambeau.nn import functional as F
from flambeau.nn.modules.linear import Linear
from flambeau.nn.modules.loss import _WeightedLoss
from flambeau.tensor import Tensor

__all__ = ["LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How to cut the batch into chunks; accepted for PyTorch's sake, the result is the same."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None


class LinearCrossEntropyLoss(_WeightedLoss):
    """cross_entropy(x W^T + b, target), with scores (batch, num_classes, *out_features)."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        super().__init__(weight, None, None, reduction)
        self.in_features = in_features
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        rows = num_classes * math.prod(self.out_features)
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the linear map's parameters again."""
        self.linear.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        scores_shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape((*scores_shape, self.in_features)),
            target,
            linear_bias=None if bias is None else bias.reshape(scores_shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
