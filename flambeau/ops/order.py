"""Statistics of sorted lines: medians and modes."""

from __future__ import annotations

import numpy as np

from flambeau.core.spec import Spec, spec
from flambeau.ops.reductions import (
    extremum_vjp,
    line_extremum_meta,
    line_extremum_samples,
    line_extremum_vjp,
)
from flambeau.ops.registry import primitive


def middle(line_count):
    """The place of the lower median among `line_count` sorted elements."""
    return np.maximum(line_count - 1, 0) // 2


def median_place(x: np.ndarray, ignore_nan: bool) -> np.ndarray:
    """Index of the lower median of each line (last axis, kept); the first NaN's if there is one."""
    order = np.argsort(x, axis=-1, kind="stable")
    nan = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    count = (~nan).sum(-1, keepdims=True)
    if ignore_nan:
        return np.take_along_axis(order, middle(count), -1)
    at = np.take_along_axis(order, np.full_like(count, (x.shape[-1] - 1) // 2), -1)
    return np.where(count < x.shape[-1], nan.argmax(-1)[..., None], at)


def of_lines(find):
    """(values, indices) of the element that `find` names in each line of `dim`."""
    def ref(x, *, dim, keepdim):
        if not x.ndim:
            return x.copy(), np.zeros((), np.int64)
        lines = np.moveaxis(x, dim, -1)
        at = find(lines)
        best = np.take_along_axis(lines, at, -1)
        if keepdim:
            return np.moveaxis(best, -1, dim), np.moveaxis(at, -1, dim)
        return best[..., 0], at[..., 0]

    return ref


def along(name: str, find):
    return primitive(name, meta=line_extremum_meta(name.removesuffix("_along")),
                     ref=of_lines(find), vjp=dict(x=line_extremum_vjp),
                     samples=line_extremum_samples)


median_along = along("median_along", lambda x: median_place(x, False))
nanmedian_along = along("nanmedian_along", lambda x: median_place(x, True))


def mode_place(x: np.ndarray) -> np.ndarray:
    """Index of the last occurrence of the most frequent value; the smallest of several."""
    lines = x.reshape(-1, x.shape[-1])
    at = np.zeros((len(lines), 1), np.int64)
    for k, line in enumerate(lines):
        values, counts = np.unique(line, return_counts=True)
        best = values[counts.argmax()]
        hits = line == best if best == best else line != line
        at[k] = np.flatnonzero(hits)[-1]
    return at.reshape(*x.shape[:-1], 1)


mode_along = along("mode_along", mode_place)

# Of all elements -----------------------------------------------------------------------------


def median_meta(x: Spec, *, dim, keepdim) -> Spec:
    """`dim` are all dimensions."""
    return spec(x.dtype, (), None, x.device)


def median_value(flat: np.ndarray, ignore_nan: bool) -> np.ndarray:
    """The lower median, by selection instead of sorting."""
    known = flat[~np.isnan(flat)] if flat.dtype.kind == "f" else flat
    if not known.size or len(known) < len(flat) and not ignore_nan:
        return np.array(np.nan, flat.dtype)
    at = int(middle(known.size))
    return np.partition(known, at)[at]


def median_of_all(name: str, ignore_nan: bool):
    def ref(x, *, dim, keepdim):
        flat = x.reshape(-1)
        if not flat.size:
            return np.array(np.nan if x.dtype.kind == "f" else 0).astype(x.dtype)
        if flat.dtype.kind in "iu" or flat.dtype.char in "fd":
            return median_value(flat, ignore_nan).reshape(())
        return flat[median_place(flat, ignore_nan)].reshape(())

    return primitive(name, meta=median_meta, ref=ref, vjp=dict(x=extremum_vjp),
                     samples=median_samples)


def median_samples(rng):
    for shape in [(), (5,), (2, 3)]:
        yield (rng.normal(size=shape),), dict(dim=tuple(range(len(shape))), keepdim=False)


median, nanmedian = median_of_all("median", False), median_of_all("nanmedian", True)
