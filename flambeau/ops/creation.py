"""Tensors from nothing: constants and ranges. Parameters are plain values, so results can be
traced like any other op."""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.device import CPU
from flambeau.core.spec import Spec, spec
from flambeau.loops.api import cast, const, nest
from flambeau.ops.registry import primitive


def full_meta(*, shape, value, dtype, device=CPU, strides=None) -> Spec:
    return spec(dtype, shape, strides, device)


def full_ref(*, shape, value, dtype, device=CPU, strides=None):
    return np.full(shape, value, dtype.numpy)


def full_lower(outs, *, shape, value, dtype, device=CPU, strides=None):
    if dtype.is_complex or (isinstance(value, float) and not dtype.is_floating_point):
        return None
    return nest(outs[0].shape, lambda i: const(value, dtype), out=outs[0])


def full_samples(rng):
    for shape, value, dtype in [((2, 3), 1.5, dtypes.float64), ((), 7, dtypes.int64),
                                ((0,), True, dtypes.bool)]:
        yield (), dict(shape=shape, value=value, dtype=dtype)


full = primitive("full", meta=full_meta, ref=full_ref, lower=full_lower, samples=full_samples,
                 exact=True)


def like(x, value):
    """A constant of the shape, dtype and device of x, a tensor or a Spec."""
    return full(shape=tuple(x.shape), value=value, dtype=x.dtype, device=x.device)


def arange_meta(*, start, step, count, dtype, device=CPU) -> Spec:
    return spec(dtype, (count,), None, device)


def arange_ref(*, start, step, count, dtype, device=CPU):
    """start + i * step, computed in the widest type of the category."""
    wide = np.int64 if dtype.category <= dtypes.INTEGER else np.float64
    return (start + np.arange(count, dtype=wide) * step).astype(dtype.numpy)


def arange_lower(outs, *, start, step, count, dtype, device=CPU):
    """Integers; of floats every bit should be NumPy's."""
    if dtype.category != dtypes.INTEGER:
        return None
    return nest((count,), lambda i: cast(i[0] * step + start, dtype), out=outs[0])


def arange_samples(rng):
    for start, step, count, dtype in [(0, 1, 5, dtypes.int64), (1.0, 0.5, 4, dtypes.float64),
                                      (3, -1, 0, dtypes.int32)]:
        yield (), dict(start=start, step=step, count=count, dtype=dtype)


arange = primitive("arange", meta=arange_meta, ref=arange_ref, lower=arange_lower,
                   samples=arange_samples, exact=True)


def linspace_meta(*, start, end, steps, dtype, device=CPU) -> Spec:
    return spec(dtype, (steps,), None, device)


def linspace_ref(*, start, end, steps, dtype, device=CPU):
    """Counted from whichever end is nearer, so that both ends are exact."""
    wide = np.complex128 if dtype.is_complex else np.float64
    i = np.arange(steps)
    step = (end - start) / max(steps - 1, 1)
    values = np.where(i < steps // 2, start + step * i, end - step * (steps - 1 - i)).astype(wide)
    if steps == 1:
        values[:] = start
    return np.trunc(values).astype(dtype.numpy) if dtype.category <= dtypes.INTEGER \
        else values.astype(dtype.numpy)


def linspace_samples(rng):
    for start, end, steps in [(0.0, 1.0, 5), (-1.0, 1.0, 1), (3.0, -3.0, 0)]:
        yield (), dict(start=start, end=end, steps=steps, dtype=dtypes.float64)


linspace = primitive("linspace", meta=linspace_meta, ref=linspace_ref, samples=linspace_samples,
                     exact=True)


# Known values --------------------------------------------------------------------------------


class Values:
    """An ndarray as a parameter: compared by its bytes, so that equal values share a plan."""

    __slots__ = ("array", "key")

    def __init__(self, array: np.ndarray):
        self.array = np.array(array, order="C")
        self.key = (self.array.shape, self.array.dtype.str, self.array.tobytes())

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other) -> bool:
        return isinstance(other, Values) and self.key == other.key


def known_meta(*, values: Values) -> Spec:
    return spec(dtypes.from_numpy_dtype(values.array.dtype), values.array.shape)


def known_ref(*, values: Values):
    return values.array.copy()


def known_samples(rng):
    for shape in [(), (3,), (2, 0)]:
        yield (), dict(values=Values(rng.normal(size=shape)))


known = primitive("known", meta=known_meta, ref=known_ref, samples=known_samples, exact=True)


def constant(array: np.ndarray):
    """A tensor of values that are known when the op is called."""
    return known(values=Values(array))
