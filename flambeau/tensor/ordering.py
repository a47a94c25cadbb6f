"""Sorting and picking by order."""

from __future__ import annotations

from flambeau.core.errors import DimError, OpError, complaint
from flambeau.ops import sorting
from flambeau.ops.dims import normal_dim
from flambeau.tensor import return_types
from flambeau.tensor.forms import ordered
from flambeau.tensor.public import public


@public
def sort(input, dim=-1, descending=False, stable=False):
    """(values, indices) in order along dim; equal values keep their order."""
    ordered("sort", input)
    d = normal_dim("sort", dim, input.ndim)
    return return_types.sort(*sorting.sort(input, dim=d, descending=bool(descending)))


@public
def argsort(input, dim=-1, descending=False, stable=False):
    """Indices that sort along dim."""
    ordered("argsort", input)
    d = normal_dim("argsort", dim, input.ndim)
    return sorting.sort(input.detach(), dim=d, descending=bool(descending))[1]


@public
def topk(input, k, dim=-1, largest=True, sorted=True):
    """The k largest or smallest elements along dim, in order."""
    ordered("topk", input, bools=False)
    d = normal_dim("topk", dim, input.ndim)
    size = input.shape[d] if input.ndim else 1
    if not 0 <= k <= size:
        raise OpError(complaint("topk", "selected index k out of range", dict(k=k, size=size)))
    return return_types.topk(*sorting.topk(input, k=int(k), dim=d, largest=bool(largest)))


@public
def msort(input):
    """Values in order along the first dimension."""
    return sorting.sort(input, dim=0, descending=False)[0]


@public
def kthvalue(input, k, dim=-1, keepdim=False):
    """The k-th smallest element along dim, counted from 1."""
    ordered("kthvalue", input, bools=False)
    d = normal_dim("kthvalue", dim, input.ndim)
    size = input.shape[d] if input.ndim else 1
    if not size:
        raise DimError(complaint("kthvalue", "the dimension must have non-zero size", dict(
            dim=dim, shape=list(input.shape))))
    if not 1 <= k <= size:
        raise OpError(complaint("kthvalue", "selected number k out of range for dimension",
                                dict(k=k, size=size)))
    values, indices = sorting.sort(input, dim=d, descending=False)
    if not input.ndim:
        return return_types.kthvalue(values, indices)
    values, indices = (x.narrow(d, k - 1, 1) for x in (values, indices))
    if not keepdim:
        values, indices = values.squeeze(d), indices.squeeze(d)
    return return_types.kthvalue(values, indices)
