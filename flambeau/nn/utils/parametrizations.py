"""Ready-made parametrizations: orthogonal, weight norm, spectral norm."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.core.dtype import finfo
from flambeau.core.errors import UnsupportedError, ValueRangeError, complaint
from flambeau.nn import functional as F
from flambeau.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from flambeau.nn.modules.module import Module
from flambeau.nn.utils import parametrize
from flambeau.nn.utils.weight_norm import norm_except_dim, scaled_direction
from flambeau.tensor import Tensor, cat, eye, linalg, zeros

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

MAPS = ("matrix_exp", "cayley", "householder")


def is_orthogonal(q: Tensor) -> bool:
    """Whether the columns of q are orthonormal, within ten times the dtype's epsilon a row."""
    n, k = q.shape[-2:]
    identity = eye(k, dtype=q.dtype, device=q.device)
    tolerance = 10.0 * n * finfo(q.dtype).eps
    return bool(((q.mH @ q - identity).abs() <= tolerance).all())


def orthogonalised(a: Tensor) -> Tensor:
    """The Q of A = QR with a non-negative diagonal in R."""
    q, r = linalg.qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Any matrix (..., n, k) to one with orthonormal columns, or rows where n < k.

    base: with a trivialization the map starts from this orthogonal matrix.
    """

    base: Tensor

    def __init__(
        self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueRangeError(
                complaint("orthogonal", "the householder map does not support complex tensors")
            )
        self.shape = tuple(weight.shape)
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        x = X.mT if wide else X
        if self.orthogonal_map == "householder":
            q = self._householder(x)
        else:
            q = self._of_skew(x)
        if getattr(self, "base", None) is not None:
            q = self.base @ q
        return q.mT if wide else q

    def _of_skew(self, x: Tensor) -> Tensor:
        """exp(A), or (I - A/2)^-1 (I + A/2), of the skew A made from x's lower triangle."""
        n, k = x.shape[-2:]
        lower = x.tril()
        if n != k:
            missing = x.new_zeros((*x.shape[:-1], n - k))
            lower = cat([lower, missing], -1)
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            q = linalg.matrix_exp(skew)
        else:
            identity = eye(n, dtype=skew.dtype, device=skew.device)
            q = linalg.solve(identity - skew / 2, identity + skew / 2)
        return q if n == k else q[..., :k]

    @staticmethod
    def _householder(x: Tensor) -> Tensor:
        """The product of reflections in columns of x below the diagonal; signs by the diagonal."""
        vectors = x.tril(diagonal=-1)
        tau = 2.0 / (1.0 + (vectors * vectors).sum(-2))
        q = linalg.householder_product(vectors, tau)
        return q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        if tuple(Q.shape) != self.shape:
            raise ValueRangeError(
                complaint(
                    "orthogonal",
                    "the shape must not change",
                    {"before": self.shape, "after": tuple(Q.shape)},
                )
            )
        wide = Q.size(-2) < Q.size(-1)
        q = Q.mT if wide else Q
        if not hasattr(self, "base"):
            result = self._without_base(q)
            return result.mT if wide else result
        n, k = q.shape[-2:]
        if n == k:
            self.base = q.clone() if is_orthogonal(q) else orthogonalised(q)
        else:
            self.base = self._completed(q if is_orthogonal(q) else orthogonalised(q))
        start = zeros(q.shape, dtype=q.dtype, device=q.device)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start.mT if wide else start

    def _without_base(self, q: Tensor) -> Tensor:
        if self.orthogonal_map != "householder":
            raise UnsupportedError(
                complaint(
                    "orthogonal",
                    f"the {self.orthogonal_map} map has no inverse",
                    hint="Use use_trivialization=True.",
                )
            )
        vectors, tau = q.geqrf()
        diagonal = vectors.diagonal(dim1=-2, dim2=-1)
        signs = diagonal.sign()
        signs = signs.where(signs != 0, signs.new_ones(signs.shape))
        # tau 0 means no reflection; the map always reflects, so its sign is turned.
        diagonal.copy_(signs.where(tau != 0, -signs))
        return vectors

    @staticmethod
    def _completed(q: Tensor) -> Tensor:
        """A square orthogonal matrix whose first columns are q's, the others random."""
        n, k = q.shape[-2:]
        rest = q.new_empty((*q.shape[:-2], n, n - k)).normal_(0, 1)
        return orthogonalised(cat([q, rest], -1))


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a matrix, or a batch of them, orthogonal; returns module.

    orthogonal_map: matrix_exp (of square and complex matrices), cayley or householder.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueRangeError(
            complaint("orthogonal", "the name must be that of a tensor", {"name": name})
        )
    if weight.dim() < 2:
        raise ValueRangeError(
            complaint(
                "orthogonal", "a matrix or batch of matrices is expected", {"dim": weight.dim()}
            )
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in MAPS:
        raise ValueRangeError(
            complaint("orthogonal", f"the map must be one of {MAPS}", {"map": repr(orthogonal_map)})
        )
    map_ = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, map_, unsafe=True)
    return module


class _WeightNorm(Module):
    """g v / |v|, with norms along dim."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return scaled_direction(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


class LegacyNames:
    """The load_state_dict hook for checkpoints that call the two parts name_g and name_v."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, state_dict: dict, prefix: str, *args: Any) -> None:
        old = [f"{prefix}{self.name}_{part}" for part in "gv"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                new = f"{prefix}parametrizations.{self.name}.original{i}"
                state_dict[new] = state_dict.pop(key)


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Split a weight into original0, its norms along dim, and original1, its direction."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(LegacyNames(name))
    return module


class _SpectralNorm(Module):
    """weight / its largest singular value, estimated by power iteration in training."""

    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        ndim = weight.dim()
        if not -ndim <= dim < ndim:
            raise IndexError(
                complaint("spectral_norm", f"dim must be in [{-ndim}, {ndim - 1}]", {"dim": dim})
            )
        if n_power_iterations <= 0:
            raise ValueRangeError(
                complaint(
                    "spectral_norm",
                    "n_power_iterations must be positive",
                    {"n_power_iterations": n_power_iterations},
                )
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            rows, columns = matrix.shape
            u = matrix.new_empty(rows).normal_(0, 1)
            v = matrix.new_empty(columns).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    @no_grad()
    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        for _ in range(n_power_iterations):
            self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(matrix.mH.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its spectral norm; returns module.

    dim: the dimension of the outputs; 0, and 1 for transposed convolutions, unless given.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueRangeError(
            complaint("spectral_norm", "the name must be that of a tensor", {"name": name})
        )
    if dim is None:
        transposed = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
        dim = 1 if isinstance(module, transposed) else 0
    norm = _SpectralNorm(weight, n_power_iterations, dim, eps)
    parametrize.register_parametrization(module, name, norm)
    return module
