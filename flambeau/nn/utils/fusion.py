"""Folding a batch norm in evaluation mode into the layer before it."""

from __future__ import annotations

import copy
from typing import TypeVar

from flambeau.core.errors import complaint
from flambeau.nn.modules.batchnorm import _BatchNorm
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.tensor import Tensor

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]

Layer = TypeVar("Layer", bound=Module)


def check_eval(name: str, *modules: Module) -> None:
    """Refuse modules in training mode."""
    if any(module.training for module in modules):
        raise AssertionError(
            complaint(name, "fusion only works in evaluation mode", hint="Call .eval() first.")
        )


def fuse_conv_bn_eval(conv: Layer, bn: _BatchNorm, transpose: bool = False) -> Layer:
    """A copy of a convolution that does what it and the batch norm after it do."""
    check_eval("fuse_conv_bn_eval", conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight,
        fused.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """(weight, bias) with w' = w s, b' = (b - mean) s + shift, s = scale / sqrt(var + eps)."""
    scale = (bn_rv + bn_eps).rsqrt()
    if bn_w is not None:
        scale = scale * bn_w
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
    bias = (0 if conv_b is None else conv_b) - bn_rm
    bias = bias * scale
    if bn_b is not None:
        bias = bias + bn_b
    trained = conv_w.requires_grad if conv_b is None else conv_b.requires_grad
    bias = bias.to(conv_w.dtype if conv_b is None else conv_b.dtype)
    return Parameter(weight.detach(), conv_w.requires_grad), Parameter(bias.detach(), trained)


def fuse_linear_bn_eval(linear: Layer, bn: _BatchNorm) -> Layer:
    """A copy of a Linear that does what it and the batch norm after it do."""
    check_eval("fuse_linear_bn_eval", linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            complaint(
                "fuse_linear_bn_eval",
                "the features of both must match, or the norm must have one",
                {"out_features": linear.out_features, "num_features": bn.num_features},
            )
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight,
        fused.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """(weight, bias) of the fused Linear; formulas as in fuse_conv_bn_weights."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
