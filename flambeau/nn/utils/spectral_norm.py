"""A weight divided by its largest singular value (Miyato et al., 2018), by a hook.

The value is estimated by power iteration, one round for each forward in training. The
parametrization of the same name (nn.utils.parametrizations) is the newer form.
"""

from __future__ import annotations

from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.core.errors import OpError, ValueRangeError, complaint
from flambeau.nn import functional as F
from flambeau.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter, is_lazy
from flambeau.tensor import Tensor

__all__ = [
    "SpectralNorm",
    "remove_spectral_norm",
    "spectral_norm",
]


class SpectralNorm:
    """The forward pre-hook that divides the weight by its estimated largest singular value."""

    _version = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueRangeError(
                complaint(
                    "spectral_norm",
                    "n_power_iterations must be positive",
                    {"n_power_iterations": n_power_iterations},
                )
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """weight with dim first and the others as one."""
        if self.dim != 0:
            others = [d for d in range(weight.dim()) if d != self.dim]
            weight = weight.permute(self.dim, *others)
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The normalised weight; the power iteration updates the vectors in place."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))

    def remove(self, module: Module) -> None:
        """Make the weight an ordinary parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for suffix in ("_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        weight = self.compute_weight(module, do_power_iteration=module.training)
        setattr(module, self.name, weight)

    def _solve_v_and_rescale(self, matrix: Tensor, u: Tensor, sigma: Tensor) -> Tensor:
        """v for which a given u and singular value hold; for checkpoints without v."""
        v = (matrix.t() @ matrix).pinverse() @ (matrix.t() @ u.unsqueeze(1))
        v = v.squeeze(1)
        return v * (sigma / u.dot(matrix.mv(v)))

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Keep module's parameter `name` as name_orig and normalise it before every forward."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise OpError(
                    complaint(
                        "spectral_norm", "a parameter can be normalised only once", {"name": name}
                    )
                )
        norm = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None or is_lazy(weight):
            raise ValueRangeError(
                complaint(
                    "spectral_norm",
                    "the parameter must exist and have a shape",
                    {name: "None" if weight is None else "uninitialized"},
                )
            )
        with no_grad():
            rows, columns = norm.reshape_weight_to_matrix(weight).shape
            u = F.normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(norm)
        module._register_state_dict_hook(SpectralNormVersion(norm))
        module._register_load_state_dict_pre_hook(SpectralNormUpgrade(norm))
        return norm


class SpectralNormVersion:
    """The state_dict hook that notes the form in which the vectors are saved."""

    def __init__(self, norm: SpectralNorm) -> None:
        self.norm = norm

    def __call__(self, module: Module, state_dict: dict, prefix: str, metadata: dict) -> None:
        versions = metadata.setdefault("spectral_norm", {})
        versions[self.norm.name + ".version"] = self.norm._version


class SpectralNormUpgrade:
    """The load_state_dict hook for checkpoints of the time before v was saved."""

    def __init__(self, norm: SpectralNorm) -> None:
        self.norm = norm

    def __call__(
        self,
        state_dict: dict,
        prefix: str,
        metadata: dict,
        strict: bool,
        missing: list[str],
        unexpected: list[str],
        errors: list[str],
    ) -> None:
        name = self.norm.name
        version = metadata.get("spectral_norm", {}).get(name + ".version")
        key = prefix + name
        complete = all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v"))
        if version is not None or complete or key not in state_dict:
            return
        with no_grad():
            original = state_dict[key + "_orig"]
            sigma = (original / state_dict.pop(key)).mean()
            matrix = self.norm.reshape_weight_to_matrix(original)
            u = state_dict[key + "_u"]
            state_dict[key + "_v"] = self.norm._solve_v_and_rescale(matrix, u, sigma)


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a parameter by its spectral norm before every forward; returns module.

    dim: the dimension of the outputs; 0, and 1 for transposed convolutions, unless given.
    """
    if dim is None:
        transposed = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
        dim = 1 if isinstance(module, transposed) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo spectral_norm, keeping the normalised weight; returns module."""
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueRangeError(
            complaint(
                "remove_spectral_norm", f"spectral_norm of '{name}' not found", {"in": module}
            )
        )
    for table, kind in (
        (module._state_dict_hooks, SpectralNormVersion),
        (module._load_state_dict_pre_hooks, SpectralNormUpgrade),
    ):
        for key, hook in list(table.items()):
            if isinstance(hook, kind) and hook.norm.name == name:
                del table[key]
    return module
