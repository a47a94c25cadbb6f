"""Counting values in bins, finding places in sorted sequences, membership."""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.ops.registry import primitive

# searchsorted --------------------------------------------------------------------------------


def search_meta(sequence: Spec, values: Spec, sorter: Spec | None, *, right, dtype) -> Spec:
    """Per value the place in the sorted sequence that keeps it sorted: after equal ones if right.

    The sequence is one line, or one line for each line of `values`.
    """
    if values.weak:
        return spec(dtype, (), None, sequence.device)
    return spec(dtype, values.shape, None, values.device)


def search_ref(sequence, values, sorter, *, right, dtype):
    side = "right" if right else "left"
    if sorter is not None:
        sequence = np.take_along_axis(sequence, sorter, -1)
    sequence, values = comparable(sequence), comparable(np.asarray(values))
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side).astype(dtype.numpy)
    lines, wanted = (a.reshape(-1, a.shape[-1]) for a in (sequence, values))
    found = [np.searchsorted(line, w, side) for line, w in zip(lines, wanted)]
    return np.array(found, dtype.numpy).reshape(values.shape)


def comparable(x: np.ndarray) -> np.ndarray:
    """Dtypes that NumPy does not sort (bfloat16) as float32."""
    return x.astype(np.float32) if x.dtype.kind == "V" or x.dtype.name == "bfloat16" else x


def search_samples(rng):
    for lines, values in [((5,), (3,)), ((5,), ()), ((2, 4), (2, 3)), ((0,), (2,))]:
        for right in (False, True):
            yield (np.sort(rng.normal(size=lines), -1), rng.normal(size=values), None), dict(
                right=right, dtype=dtypes.int64)


searchsorted = primitive("searchsorted", meta=search_meta, ref=search_ref, samples=search_samples,
                         exact=True)

# isin ----------------------------------------------------------------------------------------


def isin_meta(x: Spec, among: Spec, *, invert) -> Spec:
    return spec(dtypes.bool, x.shape, None, x.device)


def isin_ref(x, among, *, invert):
    x, among = comparable(np.asarray(x)), comparable(np.asarray(among))
    if np.promote_types(x.dtype, among.dtype).kind == "f" and np.ndim(among) == 0:
        among = among.astype(x.dtype) if x.dtype.kind == "f" else among
    return np.isin(x, among, invert=invert)


def isin_samples(rng):
    for shape in [(4,), (2, 3), (), (0,)]:
        yield (rng.integers(0, 5, shape), rng.integers(0, 5, 3)), dict(invert=False)


isin = primitive("isin", meta=isin_meta, ref=isin_ref, samples=isin_samples, exact=True)

# Histograms ----------------------------------------------------------------------------------


def histc_meta(x: Spec, *, bins, low, high) -> Spec:
    """Counts in equal bins of [low, high]; equal limits mean the range of the data."""
    return spec(x.dtype, (bins,), None, x.device)


def histc_ref(x, *, bins, low, high):
    x = x.reshape(-1)
    low, high = data_range("histc", x, low, high)
    return np.histogram(x.astype(np.float64), bins, (low, high))[0].astype(x.dtype)


def data_range(op: str, x: np.ndarray, low: float, high: float) -> tuple[float, float]:
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (np.isfinite(low) and np.isfinite(high)):
        raise OpError(complaint(op, "the range must be finite", dict(min=low, max=high)))
    return low, high


def histc_samples(rng):
    for shape in [(7,), (2, 3), (0,)]:
        yield (rng.normal(size=shape),), dict(bins=4, low=-1.0, high=1.0)


histc = primitive("histc", meta=histc_meta, ref=histc_ref, samples=histc_samples,
                  no_gradient="counts are piecewise constant")


def histogram_meta(x: Spec, edges: Spec, weight: Spec | None, *, density) -> Spec:
    """Counts (or weights, or densities) between `edges`; the last bin includes its right edge."""
    return spec(x.dtype, (edges.numel - 1,), None, x.device)


def histogram_ref(x, edges, weight, *, density):
    weight = None if weight is None else weight.reshape(-1)
    return histogram_of_points(x.reshape(-1, 1), [edges], weight, density).astype(x.dtype)


def histogram_samples(rng):
    for shape in [(7,), (2, 3)]:
        x = rng.normal(size=shape)
        yield (x, np.linspace(-1, 1, 5), None), dict(density=False)
        yield (x, np.array([-9.0, 0, 0.5, 9]), rng.uniform(0, 1, shape)), dict(density=True)


histogram = primitive("histogram", meta=histogram_meta, ref=histogram_ref,
                      samples=histogram_samples, no_gradient="PyTorch defines none")


def histogram_of_points(points: np.ndarray, edges: list[np.ndarray], weights,
                        density: bool) -> np.ndarray:
    """Counts in the cells of a grid; every last bin includes its right edge."""
    place = np.zeros(len(points), np.int64)
    inside = np.ones(len(points), bool)
    for column, line in zip(points.T, edges):
        at = np.searchsorted(line, column, "right") - 1
        at[column == line[-1]] = len(line) - 2
        inside &= (column >= line[0]) & (column <= line[-1])
        place = place * (len(line) - 1) + at
    shape = [len(line) - 1 for line in edges]
    counts = np.bincount(place[inside], None if weights is None else weights[inside],
                         int(np.prod(shape)))[:int(np.prod(shape))].reshape(shape)
    if not density:
        return counts
    volume = np.ones(shape)
    for d, line in enumerate(edges):
        volume *= np.diff(line).reshape([-1 if k == d else 1 for k in range(len(edges))])
    return counts / volume / counts.sum()
