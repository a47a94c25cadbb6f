"""What the operands of linear algebra must be, and shapes of batches of matrices."""

from __future__ import annotations

import math

import numpy as np

from flambeau.core.errors import OpError, ShapeError, UnsupportedError, complaint
from flambeau.core.spec import Spec, spec


def field(op: str, *operands: Spec) -> None:
    """Floating point or complex, of single or double precision, one dtype for all."""
    for s in operands:
        if not (s.dtype.is_floating_point or s.dtype.is_complex):
            raise OpError(complaint(op, "expected a floating point or complex tensor", dict(
                dtype=s.dtype), "Convert with `.to(torch.float32)`."))
        if s.dtype.to_real().itemsize < 4:
            raise UnsupportedError(complaint(op, "low precision dtypes are not supported", dict(
                dtype=s.dtype), "Convert with `.to(torch.float32)`."))
        if s.dtype is not operands[0].dtype:
            raise OpError(complaint(op, "all tensors must have the same dtype", dict(
                dtypes=f"{operands[0].dtype} and {s.dtype}")))


def matrices(op: str, *operands: Spec) -> None:
    for s in operands:
        if s.ndim < 2:
            raise OpError(complaint(op, "the tensor must have at least 2 dimensions",
                                    dict(shape=list(s.shape))))


def square(op: str, *operands: Spec) -> None:
    matrices(op, *operands)
    for s in operands:
        if s.shape[-1] != s.shape[-2]:
            raise ShapeError(complaint(op, "must be batches of square matrices",
                                       dict(shape=list(s.shape))))


def fresh(x: Spec, *sizes: int, dtype=None) -> Spec:
    """The spec of a result with the batch of `x` and the given trailing sizes."""
    return spec(dtype or x.dtype, (*x.shape[:-2], *sizes), None, x.device)


def adjoint(x: np.ndarray) -> np.ndarray:
    """The conjugate transpose of every matrix."""
    x = np.swapaxes(x, -1, -2)
    return x.conj() if x.dtype.kind == "c" else x


def flat(x: np.ndarray, trailing: int = 2) -> np.ndarray:
    """One batch dimension."""
    shape = x.shape[x.ndim - trailing:]
    return x.reshape((math.prod(x.shape[:x.ndim - trailing]), *shape))


def well_conditioned(rng, *shape: int, kind: str = "f") -> np.ndarray:
    """A random sample whose square matrices are far from singular."""
    x = rng.normal(size=shape)
    if kind == "c":
        x = x + 1j * rng.normal(size=shape)
    k = min(shape[-2:])
    x[..., range(k), range(k)] += 3 + 2 * np.arange(k)
    return x


def positive_definite(rng, *shape: int, kind: str = "f") -> np.ndarray:
    x = rng.normal(size=shape)
    if kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x @ adjoint(x) + np.eye(shape[-1]) * (1 + np.arange(shape[-1]))


def hermitian_part(x: np.ndarray) -> np.ndarray:
    """Twice the Hermitian part: the directions that are left where one triangle is read."""
    return x + adjoint(x)
