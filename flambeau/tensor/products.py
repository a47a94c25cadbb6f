"""Matrix products under PyTorch's names."""

from __future__ import annotations

from flambeau.core.errors import DtypeError, ShapeError, complaint
from flambeau.ops import products, views
from flambeau.ops.promotion import broadcast_shapes
from flambeau.tensor.forms import tensor_argument
from flambeau.tensor.operators import operand
from flambeau.tensor.overrides import handle, switch
from flambeau.tensor.public import public
from flambeau.tensor.shaping import reshape, unsqueezed
from flambeau.tensor.tensor import Tensor


@public
def matmul(input, other):
    """Vectors are taken as rows or columns; leading dimensions broadcast as batches."""
    x, y = tensor_argument("matmul", input), tensor_argument("matmul", other, "other")
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError(
            complaint("matmul", "both arguments need to be at least 1D", dict(x=x.ndim, y=y.ndim))
        )
    if x.ndim == 2 and y.ndim == 2:
        return products.matmul(x, y)
    if x.ndim == 1:
        return squeezed(matmul(unsqueezed(x, 0), y), -2 if y.ndim > 1 else -1)
    if y.ndim == 1:
        return squeezed(matmul(x, unsqueezed(y, 1)), -1)
    if y.ndim == 2:
        rows = (
            reshape(x, (-1, x.shape[-1]))
            if x.numel()
            else reshape(x, (x.shape[:-1].numel(), x.shape[-1]))
        )
        return reshape(products.matmul(rows, y), (*x.shape[:-1], y.shape[-1]))
    batch = broadcast_shapes("matmul", x.shape[:-2], y.shape[:-2])
    return products.matmul(batched(x, batch), batched(y, batch))


def squeezed(x: Tensor, dim: int) -> Tensor:
    shape = list(x.shape)
    del shape[dim]
    return reshape(x, tuple(shape))


def batched(x: Tensor, batch: tuple) -> Tensor:
    return x if x.shape[:-2] == batch else views.expand(x, shape=(*batch, *x.shape[-2:]))


def ranked(op: str, rank: int, *tensors: Tensor) -> None:
    for t in tensors:
        if tensor_argument(op, t).ndim != rank:
            raise ShapeError(
                complaint(
                    op, f"expected {rank}-D tensors", dict(shapes=[list(t.shape) for t in tensors])
                )
            )


@public
def mm(input, mat2):
    """(n, k) @ (k, m)."""
    ranked("mm", 2, input, mat2)
    return products.matmul(input, mat2)


@public
def bmm(input, mat2):
    """(b, n, k) @ (b, k, m)."""
    ranked("bmm", 3, input, mat2)
    return products.matmul(input, mat2)


@public
def mv(input, vec):
    """(n, k) @ (k)."""
    ranked("mv", 2, input)
    ranked("mv", 1, vec)
    return matmul(input, vec)


@public
def dot(input, tensor):
    """Sum of products of two vectors."""
    tensor_argument("dot", input), tensor_argument("dot", tensor, "tensor")
    if input.ndim != 1 or tensor.ndim != 1:
        raise ShapeError(
            complaint(
                "dot", "1D tensors expected", dict(shapes=[list(input.shape), list(tensor.shape)])
            )
        )
    if input.dtype is not tensor.dtype:
        raise DtypeError(
            complaint(
                "dot",
                "expected both vectors to have same dtype",
                dict(dtypes=[input.dtype, tensor.dtype]),
            )
        )
    if input.shape != tensor.shape:
        raise ShapeError(
            complaint(
                "dot",
                "inconsistent tensor size",
                dict(shapes=[list(input.shape), list(tensor.shape)]),
            )
        )
    return (input * tensor).sum(dtype=input.dtype)


def matmul_operator(self, other):
    if switch.active:
        result = handle(matmul, (self, other), {})
        if result is not NotImplemented:
            return result
    other = operand(other)
    return matmul(self, other) if isinstance(other, Tensor) else NotImplemented


matmul_operator.__name__ = "__matmul__"
Tensor.__matmul__ = matmul_operator
Tensor.__rmatmul__ = lambda self, other: matmul(operand(other), self)
