"""Turning LAPACK's `info` into errors, and shapes of batches."""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import LinAlgError, OpError, ShapeError, complaint
from flambeau.ops.promotion import broadcast_shapes
from flambeau.tensor.forms import tensor_argument
from flambeau.tensor.tensor import Tensor

SINGULAR = "the input matrix must not be singular"
INDEFINITE = "the input must be positive-definite"


def succeeded(op: str, info: Tensor, must: str) -> None:
    """LinAlgError if any `info` is not zero. Traced and mapped tensors are taken on trust."""
    codes = info._array
    if codes is None or not np.any(codes):
        return
    bad = np.argwhere(codes)[0] if codes.ndim else ()
    facts: dict = dict(order=int(codes[tuple(bad)]))
    if codes.ndim:
        facts["batch element"] = tuple(int(i) for i in bad)
    raise LinAlgError(complaint(op, must, facts))


def matrices(op: str, x: Tensor) -> Tensor:
    """`x`, which must have two dimensions or more."""
    tensor_argument(op, x)
    if x.ndim < 2:
        raise OpError(complaint(op, "the input tensor must have at least 2 dimensions",
                                dict(shape=list(x.shape))))
    return x


def squares(op: str, x: Tensor) -> Tensor:
    """`x`, which must be a batch of square matrices."""
    matrices(op, x)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(complaint(op, "must be batches of square matrices",
                                   dict(shape=list(x.shape))))
    return x


def field(op: str, x: Tensor) -> Tensor:
    """`x`, which must be floating point or complex."""
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise OpError(complaint(op, "expected a floating point or complex tensor",
                                dict(dtype=x.dtype), "Convert with `.to(torch.float32)`."))
    return x


def same_batch(op: str, *tensors: Tensor, trailing: int = 2) -> list[Tensor]:
    """Expanded to their common batch dimensions."""
    batch = broadcast_shapes(op, *(x.shape[:x.ndim - trailing] for x in tensors))
    return [x if x.shape[:x.ndim - trailing] == batch else
            x.expand((*batch, *x.shape[x.ndim - trailing:])) for x in tensors]


def is_vector_case(a: Tensor, b: Tensor) -> bool:
    """Right-hand sides are vectors, not matrices of columns."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])


def empty(like: Tensor, dtype=None) -> Tensor:
    return like.new_empty((0,), dtype=dtype or like.dtype)
