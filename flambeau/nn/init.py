"""Initial values of parameters.

Every function fills its tensor in place without gradient and returns it. The draws, and their
order, are PyTorch's for the same generator state. fan_in and fan_out count the inputs and outputs
of one unit: dimensions 1 and 0 of the weight, each times the size of the kernel.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.core.errors import ValueRangeError, complaint
from flambeau.random.functions import randperm
from flambeau.tensor import Tensor, linalg

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

GAINS = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended gain of an activation; param is the slope of a leaky_relu (default 0.01)."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueRangeError(
                complaint(
                    "calculate_gain", "negative_slope must be a number", {"param": repr(param)}
                )
            )
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in GAINS:
        known = ", ".join([*GAINS, "leaky_relu"])
        raise ValueRangeError(
            complaint(
                "calculate_gain",
                f"nonlinearity must be one of {known}",
                {"nonlinearity": nonlinearity},
            )
        )
    return GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueRangeError(
            complaint(
                "fan in and fan out",
                "the tensor must have at least 2 dimensions",
                {"shape": tuple(tensor.shape)},
            )
        )
    kernel = math.prod(tensor.shape[2:])
    return tensor.size(1) * kernel, tensor.size(0) * kernel


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueRangeError(
            complaint("kaiming", f"mode must be one of {modes}", {"mode": repr(mode)})
        )
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from the normal distribution N(mean, std^2)."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with val."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on the diagonal, zeros elsewhere."""
    if tensor.dim() != 2:
        raise ValueRangeError(
            complaint("eye_", "a matrix is expected", {"shape": tuple(tensor.shape)})
        )
    with no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a 3, 4 or 5-dimensional weight so that a convolution passes its input channels on."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueRangeError(
            complaint("dirac_", "3, 4 or 5 dimensions are expected", {"shape": tuple(tensor.shape)})
        )
    if tensor.size(0) % groups:
        raise ValueRangeError(
            complaint(
                "dirac_",
                "dimension 0 must be divisible by groups",
                {"shape": tuple(tensor.shape), "groups": groups},
            )
        )
    per_group = tensor.size(0) // groups
    centre = tuple(size // 2 for size in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.size(1))):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform in +-gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with deviation gain sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _xavier_std(tensor: Tensor, gain: float) -> float:
    return gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Uniform in +-gain sqrt(3 / fan) (He et al., 2015); a is the slope of the leaky_relu."""
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Normal with deviation gain / sqrt(fan) (He et al., 2015); a is the leaky_relu's slope."""
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _is_empty(tensor: Tensor) -> bool:
    if 0 not in tensor.shape:
        return False
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return True


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def uniform_by_fan_in_(bias: Tensor, weight: Tensor) -> Tensor:
    """The default of a layer's bias: uniform in +-1/sqrt(fan_in of its weight)."""
    fan_in, _ = _calculate_fan_in_and_fan_out(weight)
    if fan_in == 0:
        return bias if weight.dim() > 2 else zeros_(bias)
    bound = 1 / math.sqrt(fan_in)
    return uniform_(bias, -bound, bound)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Draw from the normal distribution N(mean, std^2) cut to [a, b].

    Rejection from the normal where [a, b] holds at least 30 % of it, else from the uniform.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "trunc_normal_: mean is more than 2 std from [a, b]; the values may not be "
            "distributed as expected",
            stacklevel=2,
        )
    with no_grad():
        if _normal_mass(mean, std, a, b) > 0.3:
            _reject_from_normal(tensor, mean, std, a, b, generator)
        else:
            _reject_from_uniform(tensor, mean, std, a, b, generator)
    return tensor


def _normal_mass(mean: float, std: float, a: float, b: float) -> float:
    def below(x: float) -> float:
        return (1 + math.erf((x - mean) / (std * math.sqrt(2)))) / 2

    return below(b) - below(a)


def _reject_from_normal(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> None:
    tensor.normal_(mean, std, generator=generator)
    outside = (tensor < a) | (tensor > b)
    while outside.any():
        again = tensor.new_empty(tensor.shape).normal_(mean, std, generator=generator)
        tensor.copy_(again.where(outside, tensor))
        outside = (tensor < a) | (tensor > b)


def _reject_from_uniform(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> None:
    peak = -0.5 * ((min(max(mean, a), b) - mean) / std) ** 2
    tensor.uniform_(a, b, generator=generator)
    rejected = _is_rejected(tensor, mean, std, peak, generator)
    while rejected.any():
        again = tensor.new_empty(tensor.shape).uniform_(a, b, generator=generator)
        tensor.copy_(again.where(rejected, tensor))
        rejected = rejected & _is_rejected(tensor, mean, std, peak, generator)


def _is_rejected(tensor: Tensor, mean: float, std: float, peak: float, generator: Any) -> Tensor:
    height = tensor.new_empty(tensor.shape).uniform_(0, 1, generator=generator)
    return height.log() > -0.5 * ((tensor - mean) / std) ** 2 - peak


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A (semi-)orthogonal matrix times gain (Saxe et al., 2013).

    Dimensions after the first count as one.
    """
    if tensor.dim() < 2:
        raise ValueRangeError(
            complaint(
                "orthogonal_", "at least 2 dimensions are expected", {"shape": tuple(tensor.shape)}
            )
        )
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with no_grad():
        drawn = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        if rows < columns:
            drawn = drawn.t()
        q, r = linalg.qr(drawn)
        q = q * r.diagonal().sign()
        if rows < columns:
            q = q.t()
        tensor.copy_(q.reshape(tensor.shape)).mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """A normal matrix with a share `sparsity` of each column set to zero (Martens, 2010)."""
    if tensor.dim() != 2:
        raise ValueRangeError(
            complaint("sparse_", "a matrix is expected", {"shape": tuple(tensor.shape)})
        )
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[randperm(rows)[:zeros], column] = 0
    return tensor


def _renamed(function: Callable, old: str) -> Callable:
    """The spelling without underscore, which PyTorch keeps with a warning."""

    @functools.wraps(function)
    def deprecated(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"nn.init.{old} is deprecated; use nn.init.{function.__name__}",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    deprecated.__name__ = old
    return deprecated


constant = _renamed(constant_, "constant")
dirac = _renamed(dirac_, "dirac")
eye = _renamed(eye_, "eye")
kaiming_normal = _renamed(kaiming_normal_, "kaiming_normal")
kaiming_uniform = _renamed(kaiming_uniform_, "kaiming_uniform")
normal = _renamed(normal_, "normal")
orthogonal = _renamed(orthogonal_, "orthogonal")
sparse = _renamed(sparse_, "sparse")
uniform = _renamed(uniform_, "uniform")
xavier_normal = _renamed(xavier_normal_, "xavier_normal")
xavier_uniform = _renamed(xavier_uniform_, "xavier_uniform")
