"""Medians, quantiles, counts and other statistics under PyTorch's names."""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import FLOAT, INTEGER
from flambeau.core.errors import OpError, complaint
from flambeau.ops import order, sorting
from flambeau.ops.dims import normal_dim
from flambeau.ops.reductions import reduced_shape
from flambeau.tensor import return_types
from flambeau.tensor.choosing import where
from flambeau.tensor.extrema import amax, amin
from flambeau.tensor.forms import ordered as has_order
from flambeau.tensor.forms import tensor_argument
from flambeau.tensor.interop import tensor
from flambeau.tensor.public import public
from flambeau.tensor.reducing import (
    accumulation_dtype,
    mean_dtype,
    vector_norm,
)
from flambeau.tensor.reducing import (
    sum as total,
)
from flambeau.tensor.tensor import Tensor

# Medians and modes ---------------------------------------------------------------------------


def median_places(x, d: int, ignore_nan: bool):
    """Where the lower median of each line along d is; NaN sorts last, so the first NaN is at the
    place that counts the others."""
    _, places = sorting.sort(x, dim=d, descending=False)
    middle = (x.shape[d] - 1) // 2
    if x.dtype.category != FLOAT:
        return places.narrow(d, middle, 1)
    count = (x == x).sum(d, keepdim=True)
    if ignore_nan:
        at = (count - 1).clamp(min=0) // 2
    else:
        at = where(count < x.shape[d], count, middle)
    return places.gather(d, at)


def ordered(name: str, full, along, result_type, doc: str):
    """`name(input)` of all elements, and `name(input, dim, keepdim)` with indices."""

    def function(input, dim=None, keepdim=False):
        has_order(name, input, bools=False)
        if dim is None:
            return full(input, dim=tuple(range(input.ndim)), keepdim=False)
        d = normal_dim(name, dim, input.ndim)
        if not input.ndim or not input.numel():
            return result_type(*along(input, dim=d, keepdim=bool(keepdim)))
        places = median_places(input.detach(), d, name == "nanmedian")
        values = input.gather(d, places)
        if not keepdim:
            values, places = values.squeeze(d), places.squeeze(d)
        return result_type(values, places)

    function.__name__, function.__doc__ = name, doc
    return public(function, name=name)


median = ordered("median", order.median, order.median_along, return_types.median,
                 "The lower median: of all elements, or with its index along `dim`.")
nanmedian = ordered("nanmedian", order.nanmedian, order.nanmedian_along, return_types.nanmedian,
                    "The lower median of the elements that are not NaN.")


@public
def mode(input, dim=-1, keepdim=False):
    """The most frequent value along `dim` (the smallest of several) and its last index."""
    has_order("mode", input)
    return return_types.mode(*order.mode_along(input, dim=normal_dim("mode", dim, input.ndim),
                                               keepdim=bool(keepdim)))


@public(exact_out=True)
def aminmax(input, *, dim=None, keepdim=False):
    """(smallest, largest) of all elements, or along `dim`."""
    if input.numel() == 0 and dim is None:
        raise OpError(complaint("aminmax", "cannot compute aminmax over an empty dimension as the "
                                "operation has no identity", dict(shape=list(input.shape))))
    if dim is None and keepdim:
        dim = tuple(range(input.ndim))
    dim = () if dim is None else dim
    return return_types.aminmax(amin(input, dim, keepdim), amax(input, dim, keepdim))


# Ignoring NaN, counting ----------------------------------------------------------------------


@public
def nansum(input, dim=None, keepdim=False, *, dtype=None):
    """Sum in which NaN counts as 0."""
    kind = accumulation_dtype(input, dtype)
    if input.dtype.category < FLOAT:
        return total(input, dim, keepdim, dtype=kind)
    return total(where(input.isnan(), 0, input), dim, keepdim, dtype=kind)


@public
def nanmean(input, dim=None, keepdim=False, *, dtype=None):
    """Average of the elements that are not NaN."""
    kind = mean_dtype("nanmean", input, dtype)
    count = total(~input.isnan(), dim, keepdim)
    return nansum(input, dim, keepdim, dtype=kind) / count


@public
def count_nonzero(input, dim=None):
    """How many elements are not zero."""
    return total(input != 0, dim, dtype=dtypes.int64)


# Quantiles -----------------------------------------------------------------------------------

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile_of(op: str, x: Tensor, q, dim, keepdim, interpolation, ignore_nan: bool) -> Tensor:
    """Sort each line and read between its elements at q (n - 1)."""
    q = checked_quantiles(op, x, q, interpolation)
    kept = reduced_shape(x.shape, tuple(range(x.ndim)) if dim is None else
                         (normal_dim(op, dim, x.ndim),), True)
    lines = x.reshape(-1) if dim is None or not x.ndim else x.movedim(dim, -1)
    n = lines.shape[-1]
    if not n:
        raise OpError(complaint(op, "input tensor must be non-empty", dict(shape=list(x.shape))))
    lines = lines.sort(-1).values
    many = q.reshape(-1)
    bad = lines.isnan().sum(-1, True)
    if ignore_nan:
        ranks = many * (n - bad - 1).clamp(min=0).to(lines.dtype)
    else:
        ranks = where(bad > 0, float(n - 1), many * (n - 1))
    found = read_between(lines, ranks, interpolation)
    found = found.movedim(-1, 0)
    if keepdim:
        found = found.reshape((len(many), *kept))
    return found if q.ndim else found.squeeze(0)


def checked_quantiles(op: str, x: Tensor, q, interpolation: str) -> Tensor:
    """`q` as a tensor of the input's dtype within [0, 1]."""
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise OpError(complaint(op, "input tensor must be either float or double dtype",
                                dict(dtype=x.dtype)))
    if isinstance(q, Tensor):
        if q.dtype is not x.dtype:
            raise OpError(complaint(op, "q tensor must be same dtype as the input tensor",
                                    dict(q=q.dtype, input=x.dtype)))
        if q.ndim > 1:
            raise OpError(complaint(op, "q must be a scalar or 1D tensor", dict(shape=q.shape)))
    else:
        if not 0 <= q <= 1:
            raise OpError(complaint(op, "q must be in the range [0, 1]", dict(q=q)))
        q = tensor(q, dtype=x.dtype)
    if interpolation not in INTERPOLATIONS:
        raise OpError(complaint(op, f"interpolation must be one of {', '.join(INTERPOLATIONS)}",
                                dict(interpolation=interpolation)))
    if isinstance(q, Tensor) and not bool(((q >= 0) & (q <= 1)).all()):
        raise OpError(complaint(op, "q values must be in the range [0, 1]"))
    return q


def read_between(lines: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """Elements of sorted `lines` at fractional `ranks`."""
    if interpolation == "nearest":
        ranks = ranks.round()
    below = ranks.floor() if interpolation != "higher" else ranks.ceil()
    shape = (*lines.shape[:-1], ranks.shape[-1])
    low_index = below.to(dtypes.int64).expand(shape)
    low = lines.gather(-1, low_index)
    if interpolation not in ("linear", "midpoint"):
        return low
    high = lines.gather(-1, ranks.ceil().to(dtypes.int64).expand(shape))
    weight = 0.5 if interpolation == "midpoint" else ranks - below
    return low.lerp(high, weight if isinstance(weight, float) else weight.expand(shape))


@public
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The q-th quantile along `dim`; NaN where a line has NaN."""
    return quantile_of("quantile", tensor_argument("quantile", input), q, dim, keepdim,
                       interpolation, False)


@public
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The q-th quantile along `dim` of the elements that are not NaN."""
    return quantile_of("nanquantile", tensor_argument("nanquantile", input), q, dim, keepdim,
                       interpolation, True)


# Covariance ----------------------------------------------------------------------------------


def checked_weights(name: str, weights: Tensor, count: int, integer: bool) -> Tensor:
    if weights.ndim > 1 or weights.numel() != count:
        raise OpError(complaint("cov", f"{name} must have one value per observation",
                                dict(shape=list(weights.shape), observations=count)))
    if (weights.dtype.category <= INTEGER) != integer:
        raise OpError(complaint("cov", f"{name} must be {'integral' if integer else 'floating'}",
                                dict(dtype=weights.dtype)))
    if count and bool((weights < 0).any()):
        raise OpError(complaint("cov", f"{name} cannot be negative"))
    return weights


@public(out=False)
def cov(input, *, correction=1, fweights=None, aweights=None):
    """Covariance of the rows (variables) over the columns (observations)."""
    if input.ndim > 2:
        raise OpError(complaint("cov", "expected input to have two or fewer dimensions",
                                dict(shape=list(input.shape))))
    if input.dtype is dtypes.bool:
        raise OpError(complaint("cov", "bool dtype is not supported for input"))
    x = input.reshape(1, -1) if input.ndim < 2 else input
    count = x.shape[1]
    weights = None
    if fweights is not None:
        weights = checked_weights("fweights", fweights, count, True)
    if aweights is not None:
        share = checked_weights("aweights", aweights, count, False)
        weights = share if weights is None else weights * share
    return covariance(x, weights, aweights, correction).squeeze()


def covariance(x: Tensor, weights, aweights, correction) -> Tensor:
    n = x.shape[1]
    if weights is None:
        mean = x.sum(1) / n
        norm = max(n - correction, 0) if n else -correction
    else:
        mass = weights.sum()
        mean = (x * weights).sum(1) / mass
        norm = mass if aweights is None or correction == 0 else (
            (weights * aweights).sum() / mass)
        norm = mass - correction * norm if aweights is not None and correction else (
            mass - correction)
        norm = norm.clamp(min=0)
    centred = x - mean.unsqueeze(1)
    scaled = centred if weights is None else centred * weights
    return (centred @ scaled.conj().transpose(0, 1)).true_divide(norm)


@public(out=False)
def corrcoef(input):
    """Pearson's correlation coefficients of the rows."""
    if input.ndim > 2:
        raise OpError(complaint("corrcoef", "expected input to have two or fewer dimensions",
                                dict(shape=list(input.shape))))
    c = cov(input)
    if not c.ndim:
        return c / c
    spread = c.diagonal()
    spread = (spread.real if c.dtype.is_complex else spread).sqrt()
    c = c / spread.unsqueeze(1) / spread.unsqueeze(0)
    if c.dtype.is_complex:
        return c
    return c.clamp(-1, 1)


# Distances -----------------------------------------------------------------------------------


@public(out=False)
def dist(input, other, p=2):
    """The p-norm of input - other."""
    return vector_norm("dist", input - other, p, None, False)


@public(inplace=True)
def renorm(input, p, dim, maxnorm):
    """Slices along `dim` whose p-norm exceeds `maxnorm` are scaled down to it."""
    if p <= 0 or isinstance(p, complex):
        raise OpError(complaint("renorm", "p must be positive", dict(p=p)))
    if input.ndim < 2:
        raise OpError(complaint("renorm", "input needs at least 2 dimensions",
                                dict(shape=list(input.shape))))
    if maxnorm < 0:
        raise OpError(complaint("renorm", "maxnorm must not be negative", dict(maxnorm=maxnorm)))
    d = normal_dim("renorm", dim, input.ndim)
    norms = vector_norm("renorm", input, p, [k for k in range(input.ndim) if k != d], True)
    return input * where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0).to(input.dtype)
