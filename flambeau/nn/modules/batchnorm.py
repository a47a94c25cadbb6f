"""Normalisation by the statistics of a batch, and running averages of them for evaluation."""

from __future__ import annotations

from typing import Any

from flambeau.core.dtype import int64
from flambeau.core.errors import ValueRangeError, complaint
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.modules.lazy import LazyModuleMixin
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter
from flambeau.tensor import Tensor, empty, ones, zeros
from flambeau.tensor.interop import tensor

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """Scale and shift per channel, and running statistics, for batch and instance norm."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        has = {"weight": affine, "bias": affine and bias}
        for name in ("weight", "bias"):
            value = empty(num_features, device=device, dtype=dtype) if has[name] else None
            self.register_parameter(name, None if value is None else Parameter(value))
        if track_running_stats:
            self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", tensor(0, dtype=int64, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget all batches: mean 0, variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Scale 1, shift 0, and no batches seen."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError(
            complaint(type(self).__name__, "a norm must define _check_input_dim(input)")
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Checkpoints before version 2 do not count batches: keep the present count."""
        key = prefix + "num_batches_tracked"
        old = (local_metadata.get("version") or 0) < 2
        if old and self.track_running_stats and key not in state_dict:
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


class _BatchNorm(_NormBase):
    """y = (x - mean) / sqrt(var + eps) * weight + bias, per channel, over the batch.

    Training uses the batch's biased variance and moves the running statistics by `momentum`
    (None: the average of all batches) towards the batch's, with the unbiased variance. Evaluation
    uses the running ones.
    """

    def _average_factor(self) -> float:
        """How far the running statistics move in this call; counts the batch."""
        if not (self.training and self.track_running_stats):
            return 0.0 if self.momentum is None else self.momentum
        if self.num_batches_tracked is None:
            return 0.0 if self.momentum is None else self.momentum
        self.num_batches_tracked.add_(1)
        if self.momentum is None:
            return 1.0 / float(self.num_batches_tracked)
        return self.momentum

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = self._average_factor()
        mean, variance = self.running_mean, self.running_var
        use_batch = self.training or (mean is None and variance is None)
        if self.training and not self.track_running_stats:
            mean = variance = None
        return F.batch_norm(
            input, mean, variance, self.weight, self.bias, use_batch, factor, self.eps
        )


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Norms that learn num_features from their first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = tensor(0, dtype=int64, device=device)

    def reset_parameters(self) -> None:
        """Nothing to set until the shape is known."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take num_features from dimension 1 of the input."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for name in ("weight", "bias", "running_mean", "running_var"):
            value = getattr(self, name)
            if value is not None:
                value.materialize((self.num_features,))
        self.reset_parameters()


def expect_dimensions(module: Module, input: Tensor, allowed: tuple[int, ...]) -> None:
    """Refuse inputs with another number of dimensions."""
    if input.dim() not in allowed:
        wanted = " or ".join(f"{n}D" for n in allowed)
        raise ValueRangeError(
            complaint(
                type(module).__name__,
                f"expected {wanted} input",
                {"input": f"{input.dim()}D", "shape": tuple(input.shape)},
            )
        )


class BatchNorm1d(_BatchNorm):
    """Batch norm over (batch, channels) or (batch, channels, length)."""

    def _check_input_dim(self, input: Tensor) -> None:
        expect_dimensions(self, input, (2, 3))


class BatchNorm2d(_BatchNorm):
    """Batch norm over (batch, channels, height, width)."""

    def _check_input_dim(self, input: Tensor) -> None:
        expect_dimensions(self, input, (4,))


class BatchNorm3d(_BatchNorm):
    """Batch norm over (batch, channels, depth, height, width)."""

    def _check_input_dim(self, input: Tensor) -> None:
        expect_dimensions(self, input, (5,))


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A BatchNorm1d that learns num_features from its first input."""

    cls_to_become = BatchNorm1d

    def _check_input_dim(self, input: Tensor) -> None:
        expect_dimensions(self, input, (2, 3))


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A BatchNorm2d that learns num_features from its first input."""

    cls_to_become = BatchNorm2d

    def _check_input_dim(self, input: Tensor) -> None:
        expect_dimensions(self, input, (4,))


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A BatchNorm3d that learns num_features from its first input."""

    cls_to_become = BatchNorm3d

    def _check_input_dim(self, input: Tensor) -> None:
        expect_dimensions(self, input, (5,))


class SyncBatchNorm(_BatchNorm):
    """Batch norm over the batches of all processes of a group.

    In a single process, and in evaluation, it is batch norm over (batch, channels, ...).
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueRangeError(
                complaint(
                    "SyncBatchNorm",
                    "expected at least 2D input",
                    {"input": f"{input.dim()}D", "shape": tuple(input.shape)},
                )
            )

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """module with every BatchNorm*d below it replaced by a SyncBatchNorm."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            converted.weight, converted.bias = module.weight, module.bias
            converted.running_mean = module.running_mean
            converted.running_var = module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
