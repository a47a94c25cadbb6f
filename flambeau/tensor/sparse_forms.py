"""`to_sparse` and `sparse_coo_tensor`; what they make is loaded when it is first asked for."""

from __future__ import annotations

from flambeau.core.dtype import int64
from flambeau.core.errors import OpError, complaint
from flambeau.tensor.interop import as_tensor
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor


@public(function=False, out=False)
def to_sparse(self, sparse_dim=None):
    """A COO tensor with the entries (or, with sparse_dim, the slices) that are not zero."""
    from flambeau.tensor.sparse import sparse_rows

    count = self.ndim if sparse_dim is None else sparse_dim
    if not 0 < count <= self.ndim:
        must, facts = f"sparse_dim must be in [1, {self.ndim}]", {"sparse_dim": count}
        raise OpError(complaint("to_sparse", must, facts))
    return sparse_rows(self, count)


@public(method=False, out=False)
def sparse_coo_tensor(indices, values, size=None, *, dtype=None, device=None,
                      requires_grad=False, check_invariants=None, is_coalesced=None):
    """A COO tensor: `values` added at `indices` (sparse_dim, entries) to zeros of `size`."""
    from flambeau.tensor.sparse import sparse_from_parts

    indices = as_tensor(indices, dtype=int64, device=device)
    return sparse_from_parts(indices, as_tensor(values, dtype=dtype, device=device), size)


@public(function=False, out=False)
def to_dense(self, dtype=None):
    """The ordinary tensor, which this one is."""
    return self if dtype is None else self.to(dtype)


Tensor.is_sparse = False
