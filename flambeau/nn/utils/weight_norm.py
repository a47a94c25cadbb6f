"""A weight as magnitude times direction, w = g v / |v| (Salimans and Kingma, 2016), by a hook.

The parametrization of the same name (nn.utils.parametrizations) is the newer form.
"""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.core.errors import OpError, ValueRangeError, complaint
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter, is_lazy
from flambeau.tensor import Tensor

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def norm_except_dim(v: Tensor, dim: int | None) -> Tensor:
    """The norms of v's slices along dim (None or -1: of all of v), shaped to broadcast over v."""
    if dim is None or dim == -1:
        return v.norm()
    others = tuple(d for d in range(v.dim()) if d != dim % v.dim())
    return v.pow(2).sum(others, keepdim=True).sqrt() if others else v.abs()


def scaled_direction(v: Tensor, g: Tensor, dim: int | None) -> Tensor:
    """g v / |v|."""
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """The forward pre-hook that computes the weight from its magnitude and direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight, from parameters name_g and name_v."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return scaled_direction(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Split module's parameter `name` in two and recompute it before every forward."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise OpError(
                    complaint("weight_norm", "a parameter can be split only once", {"name": name})
                )
        split = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueRangeError(
                complaint(
                    "weight_norm",
                    "the module's parameters must have a shape",
                    {"name": name},
                    "Make a dummy run before applying weight normalization.",
                )
            )
        del module._parameters[name]
        module.register_parameter(
            name + "_g", Parameter(norm_except_dim(weight, split.dim).detach())
        )
        module.register_parameter(name + "_v", Parameter(weight.detach()))
        setattr(module, name, split.compute_weight(module))
        module.register_forward_pre_hook(split)
        return split

    def remove(self, module: Module) -> None:
        """Make the weight an ordinary parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Split a parameter into name_g, its norms along dim, and name_v; returns module."""
    warnings.warn(
        "nn.utils.weight_norm is deprecated; use nn.utils.parametrizations.weight_norm",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo weight_norm, keeping the weight's value; returns module."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueRangeError(
        complaint("remove_weight_norm", f"weight_norm of '{name}' not found", {"in": module})
    )
