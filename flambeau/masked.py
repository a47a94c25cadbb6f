"""`torch.masked`: reductions and normalisations of the elements where a mask is true.

Masked-out elements are replaced by what does not change the result (0 for a sum, -inf for a
maximum), so the results are those of the plain functions on the elements that remain.
"""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import BOOL, FLOAT, INTEGER
from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import ArgumentError, DtypeError, ValueRangeError, complaint
from flambeau.functional import families  # noqa: F401  registers softmax and its kin
from flambeau.tensor import choosing, extrema, reducing, scanning, special, statistics
from flambeau.tensor.public import FUNCTIONS
from flambeau.tensor.tensor import Tensor


def full_mask(op: str, x: Tensor, mask) -> Tensor | None:
    """`mask` expanded to the shape of x."""
    if mask is None:
        return None
    if not isinstance(mask, Tensor) or mask.dtype.category != BOOL:
        raise ArgumentError(complaint(op, "mask must be a bool tensor",
                                      dict(mask=getattr(mask, "dtype", type(mask).__name__))))
    if mask.ndim > x.ndim:
        raise ValueRangeError(complaint(op, "mask must not have more dimensions than input", dict(
            mask=list(mask.shape), input=list(x.shape))))
    return mask.expand_as(x)


def keeping(op: str, x: Tensor, mask, value) -> Tensor:
    """x where the mask holds, else `value`."""
    mask = full_mask(op, x, mask)
    return x if mask is None else choosing.where(mask, x, x.new_full((), value))


def lowest(d: DType):
    return -math.inf if d.category >= FLOAT else False if d.category == BOOL else dtypes.iinfo(d).min


def highest(d: DType):
    return math.inf if d.category >= FLOAT else True if d.category == BOOL else dtypes.iinfo(d).max


def converted(x: Tensor, dtype: DType | None) -> Tensor:
    return x if dtype is None else x.to(dtype)


def summed_dtype(x: Tensor, dtype: DType | None) -> DType:
    """Integers and bools add up in int64."""
    return dtype or (dtypes.int64 if x.dtype.category <= INTEGER else x.dtype)


# Folds ---------------------------------------------------------------------------------------


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Sum of the elements that remain."""
    x = converted(input, summed_dtype(input, dtype))
    return reducing.sum(keeping("sum", x, mask, 0), dim, bool(keepdim), dtype=x.dtype)


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Product of the elements that remain."""
    x = converted(input, summed_dtype(input, dtype))
    return reducing.prod(keeping("prod", x, mask, 1), dim, bool(keepdim), dtype=x.dtype)


def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sum of the elements that remain."""
    x = converted(input, summed_dtype(input, dtype))
    return scanning.cumsum(keeping("cumsum", x, mask, 0), dim, dtype=x.dtype)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Running product of the elements that remain."""
    x = converted(input, summed_dtype(input, dtype))
    return scanning.cumprod(keeping("cumprod", x, mask, 1), dim, dtype=x.dtype)


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The largest element that remains, -inf if none does."""
    x = converted(input, dtype)
    return extrema.amax(keeping("amax", x, mask, lowest(x.dtype)), () if dim is None else dim,
                        bool(keepdim))


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The smallest element that remains, inf if none does."""
    x = converted(input, dtype)
    return extrema.amin(keeping("amin", x, mask, highest(x.dtype)), () if dim is None else dim,
                        bool(keepdim))


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Position of the largest element that remains."""
    x = converted(input, dtype)
    found = extrema.argmax(keeping("argmax", x, mask, lowest(x.dtype)), dim, bool(keepdim))
    return found.to(x.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Position of the smallest element that remains."""
    x = converted(input, dtype)
    found = extrema.argmin(keeping("argmin", x, mask, highest(x.dtype)), dim, bool(keepdim))
    return found.to(x.dtype)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """log of the summed exponentials of the elements that remain."""
    x = input if input.dtype.category >= FLOAT else input.to(dtypes.float32)
    x = keeping("logsumexp", converted(x, dtype), mask, -math.inf)
    return reducing.logsumexp(x, dim, bool(keepdim)).to(dtype or input.dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(e ** input + e ** other), where a masked-out operand adds nothing."""
    x, y = converted(input, dtype), converted(other, dtype)
    return special.logaddexp(keeping("logaddexp", x, input_mask, -math.inf),
                             keeping("logaddexp", y, other_mask, -math.inf))


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The p-norm of the elements that remain."""
    x = converted(input, dtype)
    kept = keeping("norm", x, mask, math.inf if ord < 0 else 0)
    return reducing.vector_norm("norm", kept, ord, dim, keepdim)


# Averages ------------------------------------------------------------------------------------


def count(x: Tensor, dim, keepdim, mask) -> Tensor:
    """How many elements remain, in the dtype of the average."""
    ones = x.new_ones(x.shape, dtype=dtypes.int64)
    return sum(ones, dim, keepdim=keepdim, mask=mask)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Average of the elements that remain, NaN if none does."""
    x = converted(input, dtype)
    if x.dtype.category < FLOAT:
        raise DtypeError(complaint("mean", "the result dtype must be floating point or complex",
                                   dict(dtype=x.dtype), "Pass dtype=."))
    return sum(x, dim, keepdim=keepdim, mask=mask) / count(x, dim, keepdim, mask)


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The lower median along dim of the elements that remain, NaN if none does."""
    x = converted(input, dtype)
    if x.dtype.category < FLOAT:
        raise DtypeError(complaint("median", "a floating-point input is needed",
                                   dict(dtype=x.dtype), "Pass dtype=."))
    if bool(x.isnan().any()):
        raise ValueRangeError(complaint("median", "the input must not contain NaN"))
    kept = keeping("median", x, mask, math.nan)
    return statistics.nanmedian(kept, dim, bool(keepdim)).values


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Variance of the elements that remain."""
    if unbiased is not None and correction is not None:
        raise ArgumentError(complaint("var", "unbiased and correction exclude each other"))
    correction = int(unbiased) if unbiased is not None else 1 if correction is None else correction
    x = converted(input, dtype or (None if input.dtype.category >= FLOAT else dtypes.float32))
    middle = mean(x, dim, keepdim=True, mask=mask)
    deviation = x - middle
    total = sum(deviation * deviation.conj(), dim, keepdim=keepdim, mask=mask)
    remaining = count(x, dim, keepdim, mask) - correction
    return total / extrema.maximum(remaining, remaining.new_zeros(()))


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Standard deviation of the elements that remain."""
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype,
               mask=mask).sqrt()


# Normalisations ------------------------------------------------------------------------------


def softmax(input, dim, *, dtype=None, mask=None):
    """softmax over the elements that remain; 0 elsewhere, NaN where none does."""
    x = keeping("softmax", converted(input, dtype), mask, -math.inf)
    return FUNCTIONS["nn.functional"]["softmax"](x, dim)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """log_softmax over the elements that remain; -inf elsewhere, NaN where none does."""
    x = keeping("log_softmax", converted(input, dtype), mask, -math.inf)
    return FUNCTIONS["nn.functional"]["log_softmax"](x, dim)


def softmin(input, dim, *, dtype=None, mask=None):
    """softmin over the elements that remain; 0 elsewhere, NaN where none does."""
    x = keeping("softmin", converted(input, dtype), mask, math.inf)
    return FUNCTIONS["nn.functional"]["softmin"](x, dim)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The elements that remain over their p-norm along dim; 0 elsewhere."""
    x = converted(input, dtype)
    size = norm(x, ord, dim, keepdim=True, mask=mask)
    return keeping("normalize", x, mask, 0) / size.clamp(min=eps)
