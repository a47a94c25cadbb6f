"""Running sums, products and extrema under PyTorch's names."""

from __future__ import annotations

from flambeau.ops import scans
from flambeau.ops.dims import normal_dim
from flambeau.tensor import return_types
from flambeau.tensor.forms import ordered
from flambeau.tensor.public import public
from flambeau.tensor.reducing import accumulation_dtype, converted


@public(inplace=True)
def cumsum(input, dim, *, dtype=None):
    """out[k] = input[0] + .. + input[k] along `dim`; integers and bools add up in int64."""
    return scans.cumsum(converted(input, dtype), dim=normal_dim("cumsum", dim, input.ndim),
                        reverse=False, dtype=accumulation_dtype(input, dtype))


@public(inplace=True)
def cumprod(input, dim, *, dtype=None):
    """out[k] = input[0] * .. * input[k] along `dim`; integers and bools multiply in int64."""
    return scans.cumprod(converted(input, dtype), dim=normal_dim("cumprod", dim, input.ndim),
                         reverse=False, dtype=accumulation_dtype(input, dtype))


@public
def cummax(input, dim):
    """(largest so far, where it is) along `dim`: the latest of equal ones; NaN wins."""
    ordered("cummax", input)
    return return_types.cummax(*scans.cummax(input, dim=normal_dim("cummax", dim, input.ndim)))


@public
def cummin(input, dim):
    """(smallest so far, where it is) along `dim`: the latest of equal ones; NaN wins."""
    ordered("cummin", input)
    return return_types.cummin(*scans.cummin(input, dim=normal_dim("cummin", dim, input.ndim)))


@public
def logcumsumexp(input, dim):
    """log of the running sum of e ** input along `dim`."""
    return scans.logcumsumexp(input, dim=normal_dim("logcumsumexp", dim, input.ndim))
