"""Changing dtype or memory layout."""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import dtype as DType
from flambeau.core.spec import Spec, spec
from flambeau.loops.api import broadcast, cast, nest
from flambeau.ops.promotion import fits
from flambeau.ops.registry import primitive


def converted(x: np.ndarray, target: np.dtype) -> np.ndarray:
    """`x` as another dtype: complex drops its imaginary part, floats truncate towards zero."""
    if x.dtype.kind == "c" and target.kind != "c":
        x = x.real
        if target.kind == "b":
            return x != 0
    if x.dtype.kind in "fV" and target.kind in "iu" and target.itemsize < 8:
        return x.astype(np.int64).astype(target)  # wraps as C does through a wide integer
    if x.dtype == np.float64 and target == np.float16:
        return x.astype(np.float32).astype(target)  # rounded twice, as PyTorch does
    return x.astype(target)


def convert_meta(x: Spec, *, dtype: DType) -> Spec:
    return x.preserved(dtype)


def convert_ref(x, *, dtype: DType):
    return converted(x, dtype.numpy)


def convert_lower(outs, x, *, dtype: DType):
    """To floats, which is rounding; integers made of floats follow C in NumPy."""
    if not dtype.is_floating_point or x.dtype.is_complex:
        return None
    return nest(x.shape, lambda i: cast(x[i], dtype), out=outs[0])


def convert_samples(rng):
    for shape in [(), (3,), (2, 0)]:
        yield (rng.normal(size=shape),), dict(dtype=dtypes.float64)


# The engine converts the cotangent back to the operand's dtype.
convert = primitive("convert", meta=convert_meta, ref=convert_ref, vjp=dict(x=lambda ct: ct),
                    lower=convert_lower, samples=convert_samples, exact=True)


def copy_meta(x: Spec, *, strides=None) -> Spec:
    """A copy with the given strides; None keeps the operand's memory order."""
    return x.preserved() if strides is None else spec(x.dtype, x.shape, strides, x.device)


def copy_ref(x, *, strides=None):
    return x.copy(order="K")


def copy_write(target: np.ndarray, x, *, strides=None) -> None:
    """target <- x, broadcast and converted."""
    if not isinstance(x, np.ndarray):
        x = np.asarray(x).astype(target.dtype)
    elif x.dtype != target.dtype:
        x = converted(x, target.dtype)
    if x.shape != target.shape:
        fits("copy_", x.shape, target.shape)
    np.copyto(target, x, casting="unsafe")


def copy_lower(outs, x, *, strides=None):
    """Into whatever `outs` is: broadcast and converted, as `copy_write` does."""
    (out,) = outs
    if x.dtype.is_complex or out.dtype.is_complex:
        return None
    if x.dtype is not out.dtype and not out.dtype.is_floating_point:
        return None
    return nest(out.shape, lambda i: cast(broadcast(x, i), out.dtype), out=out)


def copy_samples(rng):
    for shape in [(), (3,), (2, 3), (2, 0)]:
        yield (rng.normal(size=shape),), {}


copy = primitive("copy", meta=copy_meta, ref=copy_ref, vjp=dict(x=lambda ct: ct),
                 lower=copy_lower, write=copy_write, samples=copy_samples, exact=True)

