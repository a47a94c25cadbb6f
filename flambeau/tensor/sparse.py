"""Coordinate (COO) tensors: as much as sparse gradients need.

A `SparseTensor` holds indices (sparse_dim, entries) and values (entries, *dense sizes). It can be
built, coalesced, scaled through its values, and made dense; every other function refuses it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.errors import OpError, ShapeError, UnsupportedError, complaint
from flambeau.core.spec import spec
from flambeau.ops.gathering import index_accumulate
from flambeau.tensor.tensor import Tensor, from_array, make

_OWN = {"detach", "is_complex", "is_floating_point"}
_PRODUCTS = {"mm", "matmul", "__matmul__"}


class SparseTensor(Tensor):
    """Zeros of `shape` with `values` added at `indices`."""

    __slots__ = ("_indices_", "_values_", "coalesced")
    is_sparse = True

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        if func.__name__ in _OWN:
            return NotImplemented if func.__name__ != "detach" else args[0]._aliased()
        if func.__name__ in _PRODUCTS and isinstance(args[0], SparseTensor):
            return args[0].product(*args[1:])
        raise UnsupportedError(
            complaint(func.__name__, "sparse tensors are not supported", None, "Use .to_dense().")
        )

    def _aliased(self) -> SparseTensor:
        return sparse(self._indices_, self._values_.detach(), self.shape, self.coalesced)

    def indices(self) -> Tensor:
        """(sparse_dim, entries) positions; the tensor must be coalesced."""
        self._need_coalesced("indices")
        return self._indices_

    def values(self) -> Tensor:
        """(entries, *dense sizes); the tensor must be coalesced."""
        self._need_coalesced("values")
        return self._values_

    def _need_coalesced(self, name: str) -> None:
        if not self.coalesced:
            hint = "Call .coalesce() first."
            raise OpError(complaint(name, "the tensor must be coalesced", None, hint))

    def _indices(self) -> Tensor:
        return self._indices_

    def _values(self) -> Tensor:
        return self._values_

    def _nnz(self) -> int:
        return self._values_.shape[0]

    def sparse_dim(self) -> int:
        """How many leading dimensions are indexed."""
        return self._indices_.shape[0]

    def dense_dim(self) -> int:
        """How many trailing dimensions the values have."""
        return self.ndim - self.sparse_dim()

    def is_coalesced(self) -> bool:
        """Whether every position appears once, in order."""
        return self.coalesced

    def coalesce(self) -> SparseTensor:
        """The same tensor with each position once, in row-major order, values summed."""
        if self.coalesced:
            return self
        sizes = tuple(self.shape[: self.sparse_dim()])
        flat = np.ravel_multi_index(tuple(self._indices_._array), sizes)
        unique, place = np.unique(flat, return_inverse=True)
        shape = (len(unique), *self._values_.shape[1:])
        values = index_accumulate(self._values_, from_array(place), shape=shape, dims=(0,))
        indices = np.stack(np.unravel_index(unique, sizes)).astype(np.int64)
        return sparse(from_array(indices), values, self.shape, True)

    def to_dense(self, dtype: Any = None) -> Tensor:
        """The ordinary tensor."""
        rows = [from_array(np.ascontiguousarray(row)) for row in self._indices_._array]
        dims = tuple(range(len(rows)))
        out = index_accumulate(self._values_, *rows, shape=tuple(self.shape), dims=dims)
        return out if dtype is None else out.to(dtype)

    def product(self, dense: Tensor) -> Tensor:
        """(n, m) times (m, p): row i is the sum over k of self[i, k] dense[k]."""
        if isinstance(dense, SparseTensor):
            hint = "Call .to_dense() on the second."
            raise UnsupportedError(complaint("sparse.mm", "one operand must be dense", {}, hint))
        if self.ndim != 2 or dense.ndim != 2 or self.shape[1] != dense.shape[0]:
            facts = {"sparse": list(self.shape), "dense": list(dense.shape)}
            raise ShapeError(complaint("sparse.mm", "shapes must be (n, m) and (m, p)", facts))
        rows, columns = self._indices_
        terms = self._values_.unsqueeze(1) * dense.index_select(0, columns)
        return terms.new_zeros(self.shape[0], dense.shape[1]).index_add(0, rows, terms)

    def __neg__(self) -> SparseTensor:
        return sparse(self._indices_, -self._values_, self.shape, self.coalesced)

    def __repr__(self, **options: Any) -> str:
        return (
            f"tensor(indices={self._indices_!r},\n       values={self._values_!r},\n"
            f"       size={tuple(self.shape)}, nnz={self._nnz()}, layout=torch.sparse_coo)"
        )


def sparse(indices: Tensor, values: Tensor, shape: Any, coalesced: bool) -> SparseTensor:
    """A COO tensor from its parts, which must fit."""
    s = values._spec
    t = make(None, spec(s.dtype, tuple(shape), None, s.device), SparseTensor)
    t._indices_, t._values_, t.coalesced = indices, values, coalesced
    return t


def sparse_rows(x: Tensor, sparse_dim: int) -> SparseTensor:
    """The positions of the first `sparse_dim` dimensions where `x` is not all zeros."""
    array = x._array
    used = (array != 0).reshape((*array.shape[:sparse_dim], -1)).any(axis=-1)
    places = np.ascontiguousarray(np.argwhere(used).T)
    rows = [from_array(np.ascontiguousarray(row)) for row in places]
    values = x[tuple(rows)] if rows else x.reshape((1, *x.shape))
    return sparse(from_array(places), values, x.shape, True)


def sparse_from_parts(indices: Tensor, values: Tensor, size: Any) -> SparseTensor:
    """The checked constructor behind `sparse_coo_tensor`."""
    if indices.ndim != 2 or indices.shape[1] != values.shape[0]:
        facts = {"indices": tuple(indices.shape), "values": tuple(values.shape)}
        must = "indices must be (sparse_dim, entries) for values of (entries, ...)"
        raise OpError(complaint("sparse_coo_tensor", must, facts))
    found = indices._array.max(axis=1) + 1 if indices.shape[1] else np.zeros(len(indices), int)
    least = (*map(int, found), *values.shape[1:])
    size = least if size is None else tuple(size)
    if len(size) != len(least) or any(n < m for n, m in zip(size, least, strict=True)):
        facts = {"size": size, "needed": least}
        raise OpError(complaint("sparse_coo_tensor", "size must hold all indices", facts))
    return sparse(indices, values, size, False)
