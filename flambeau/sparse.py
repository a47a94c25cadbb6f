"""`torch.sparse`: products of COO matrices."""

from __future__ import annotations

from typing import Any

from flambeau.core.nearest import missing_name
from flambeau.tensor import Tensor
from flambeau.tensor.sparse import SparseTensor
from flambeau.tensor.sparse_forms import sparse_coo_tensor


def mm(sparse: Tensor, dense: Tensor, reduce: str = "sum") -> Tensor:
    """(n, m) sparse times (m, p) dense: row i is the sum over k of sparse[i, k] dense[k]."""
    if not isinstance(sparse, SparseTensor):
        return sparse.mm(dense)
    return sparse.product(dense)


def addmm(
    mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta mat + alpha (mat1 mat2), mat1 sparse."""
    return beta * mat + alpha * mm(mat1, mat2)


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all elements, or over dimensions (dense)."""
    dense = input.to_dense()
    return dense.sum(dtype=dtype) if dim is None else dense.sum(dim, dtype=dtype)


def FloatTensor(indices: Tensor, values: Tensor, size: Any = None) -> Tensor:
    """The old name of `sparse_coo_tensor`."""
    return sparse_coo_tensor(indices, values, size)


DoubleTensor = LongTensor = IntTensor = FloatTensor
spmm = dsmm = smm = hspmm = mm

__getattr__ = missing_name(__name__)
