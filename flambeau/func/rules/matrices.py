"""Linear algebra and Fourier transforms: a batch is one more leading dimension."""

from __future__ import annotations

from typing import Any

from flambeau.func.rules.register import rule_of, spread
from flambeau.ops.registry import Primitive
from flambeau.tensor import Tensor

MATRICES = """
    cholesky cholesky_solve triangular_solve lu_factor pivot_permutation solve inverse det cofactor
    slogdet matrix_exp geqrf apply_reflectors householder_product eigh eigvalsh eig eigvals svd
    svdvals lstsq ldl_factor ldl_solve
"""


@rule_of(*MATRICES.split())
def leading(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """Every operand gets the batch in front."""
    return primitive(*[spread(size, v, h) for v, h in zip(values, here)], **params)


@rule_of("qr")
def qr(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """Without Q there is an empty tensor in its place, which has no batch."""
    if params["mode"] == "r":
        return NotImplemented
    return primitive(*values, **params)


@rule_of("pinv")
def pinv(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """Tolerances that are batched themselves broadcast against the batch of matrices."""
    x, *tolerances = values
    x = spread(size, x, here[0])
    wide = [aligned(t, x.ndim - 2) if h else t for t, h in zip(tolerances, here[1:])]
    return primitive(x, *wide, **params)


def aligned(value: Tensor, rank: int) -> Tensor:
    ones = (1,) * (rank - value.ndim)
    return value.reshape((value.shape[0], *ones, *value.shape[1:]))


@rule_of("fft_complex", "fft_from_real", "fft_to_real")
def transforms(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    return primitive(values[0], **{**params, "dims": tuple(d + 1 for d in params["dims"])})
