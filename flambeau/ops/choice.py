"""Choosing between values by a condition."""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import COMPLEX
from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import DtypeError, OpError, UnsupportedError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.loops.api import Buf, cast, maximum, minimum, nest
from flambeau.loops.api import where as select
from flambeau.ops.elementwise import common_device, pointwise, result_spec
from flambeau.ops.promotion import broadcast_shapes, fits, result_dtype
from flambeau.ops.registry import primitive


def where_meta(condition: Spec, x: Spec, y: Spec) -> Spec:
    """x where condition holds, else y; all broadcast, x and y promote."""
    if condition.dtype not in (dtypes.bool, dtypes.uint8):
        raise DtypeError(complaint("where", "condition must be a bool tensor",
                                   dict(dtype=condition.dtype), "Compare it with something."))
    result = result_dtype(x, y)
    if result is dtypes.complex32 and not x.dtype is y.dtype is result:
        raise UnsupportedError(complaint("where", "nothing is converted to complex32", dict(
            x=x.dtype, y=y.dtype), "Convert with `.to(torch.complex64)`."))
    return result_spec("where", (condition, x, y), result)


def where_ref(condition, x, y):
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.dtype != y.dtype:
        x, y = comparable(x), comparable(y)
    return np.where(condition.astype(bool, copy=False), x, y)


def comparable(x: np.ndarray) -> np.ndarray:
    """NumPy knows no common dtype of the narrow floats and integers."""
    return x.astype(np.float32) if x.dtype.kind == "V" else x


def where_lower(outs, condition, x, y):
    """One pass; the operands are converted to the result's dtype as they are read."""
    out, = outs

    def body(i):
        chosen = condition.at(i)
        chosen = chosen if chosen.dtype is dtypes.bool else cast(chosen, dtypes.bool)
        return select(chosen, element(x, i, out.dtype), element(y, i, out.dtype))

    return nest(out.shape, body, out=out)


def element(x, i: tuple, d: DType):
    """The element of a buffer or a number, as dtype `d`."""
    return cast(x.at(i) if isinstance(x, Buf) else x, d)


def where_samples(rng):
    for a, b in [((3,), (3,)), ((2, 1), (2, 3)), ((), (2,)), ((0,), (0,))]:
        yield (rng.normal(size=a) > 0, rng.normal(size=b), rng.normal(size=b)), {}


where = primitive("where", meta=where_meta, ref=where_ref, samples=where_samples, exact=True,
                  lower=where_lower, vjp=dict(x=lambda ct, condition: where(condition, ct, 0),
                           y=lambda ct, condition: where(condition, 0, ct)))

# masked_fill ---------------------------------------------------------------------------------


def masked_fill_meta(x: Spec, mask: Spec, value: Spec) -> Spec:
    """`value` where mask holds, else x; the dtype stays that of x."""
    if mask.dtype is not dtypes.bool:
        raise DtypeError(complaint("masked_fill", "mask must be a bool tensor",
                                   dict(dtype=mask.dtype), "Compare it with something."))
    if value.ndim:
        raise OpError(complaint("masked_fill", "value must be a number or a 0-dimensional tensor",
                                dict(shape=list(value.shape)), "Use torch.where."))
    shape = broadcast_shapes("masked_fill", x.shape, mask.shape)
    return spec(x.dtype, shape, None, common_device("masked_fill", [x, mask]))


def masked_fill_ref(x, mask, value):
    out = np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape)), order="K")
    masked_fill_write(out, x, mask, value)
    return out


def masked_fill_write(target, x, mask, value) -> None:
    fits("masked_fill_", mask.shape, target.shape)
    np.copyto(target, np.asarray(value).astype(target.dtype), where=mask)


def masked_fill_lower(outs, x, mask, value):
    return where_lower(outs, mask, value, x)


def masked_fill_samples(rng):
    for a, b in [((3,), (3,)), ((2, 3), (3,)), ((), ()), ((0,), (0,))]:
        yield (rng.normal(size=a), rng.normal(size=b) > 0, 0.5), {}


masked_fill = primitive(
    "masked_fill", meta=masked_fill_meta, ref=masked_fill_ref, write=masked_fill_write,
    samples=masked_fill_samples, exact=True, lower=masked_fill_lower,
    vjp=dict(x=lambda ct, mask: masked_fill(ct, mask, 0),
             value=lambda ct, mask: where(mask, ct, 0).sum()))

# fill ----------------------------------------------------------------------------------------


def fill_meta(x: Spec, value: Spec) -> Spec:
    """`value` everywhere; shape, dtype and layout of x."""
    return x.preserved()


def fill_ref(x, value):
    out = np.empty_like(x)
    fill_write(out, x, value)
    return out


def fill_write(target, x, value) -> None:
    target[...] = np.asarray(value).astype(target.dtype)


def fill_lower(outs, x, value):
    (out,) = outs
    return nest(out.shape, lambda i: element(value, i, out.dtype), out=out)


def fill_samples(rng):
    for shape in [(), (3,), (0, 2)]:
        yield (rng.normal(size=shape), 0.5), {}


fill = primitive("fill", meta=fill_meta, ref=fill_ref, write=fill_write, lower=fill_lower,
                 samples=fill_samples, exact=True,
                 vjp=dict(x=lambda ct: ct * 0, value=lambda ct: ct.sum()))

# clamp ---------------------------------------------------------------------------------------


def clamp_ref(x, low, high):
    """The upper limit wins where the limits cross; NaN anywhere gives NaN."""
    if low is not None:
        x = np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def clamp_form(x, low, high):
    if low is not None:
        x = maximum(x, low)
    return x if high is None else minimum(x, high)


def clamp_into(out, x, low, high) -> None:
    if isinstance(high, np.ndarray):
        out[...] = clamp_ref(x, low, high)  # `high` may share memory with `out`
        return
    if low is not None:
        x = np.maximum(x, low, out=out)
    if high is not None:
        np.minimum(x, high, out=out)


def clamp_vjp(ct, x, low, high):
    inside = None
    if low is not None:
        inside = x >= low
    if high is not None:
        below = x <= high
        inside = below if inside is None else inside & below
    return where(inside, ct, 0)


def clamp_low_vjp(ct, x, low, high):
    return where(x < low if high is None else (x < low) & (low < high), ct, 0)


def clamp_high_vjp(ct, x, low, high):
    return where(x > high if low is None else (x > high) | (high < low), ct, 0)


def clamp_samples(rng):
    for shape in [(), (3,), (2, 3), (0,)]:
        x = rng.normal(size=shape)
        yield (x, -0.5, 0.6), {}
        yield (x, None, 0.6), {}
        yield (x, rng.uniform(-2, -0.3, shape), rng.uniform(0.3, 2, shape)), {}


# None is no limit.
clamp = pointwise("clamp", clamp_ref, names=("x", "low", "high"), refuses=(COMPLEX,),
                  scalar=clamp_form,
                  into=clamp_into, samples=clamp_samples,
                  vjp=dict(x=clamp_vjp, low=clamp_low_vjp, high=clamp_high_vjp))
