"""Pooling against plain loops over windows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from flambeau.codegen import templates
from flambeau.codegen.templates.pool_spec import PoolSpec
from tests.codegen.templates.conftest import Guarded
from tests.codegen.templates.test_conv import logical, stored


def out_size(size: int, window: int, stride: int, padding: int, dilation: int, up: bool) -> int:
    places = (size + 2 * padding - dilation * (window - 1) - 1) / stride
    out = (math.ceil(places) if up else math.floor(places)) + 1
    return out - 1 if up and (out - 1) * stride >= size + padding else out


def pool(n, c, h, w, window, stride, padding=(0, 0), dilation=(1, 1), up=False, **more) -> PoolSpec:
    out = [
        out_size(*sizes, up)
        for sizes in zip((h, w), window, stride, padding, dilation, strict=True)
    ]
    return PoolSpec(n, c, h, w, *out, window, stride, padding, dilation, **more)


SPECS = [
    pool(2, 3, 9, 40, (2, 2), (2, 2)),
    pool(2, 20, 12, 12, (3, 3), (2, 2), (1, 1)),
    pool(1, 5, 10, 70, (3, 3), (2, 2), (1, 1)),
    pool(1, 17, 7, 33, (3, 2), (1, 1), (1, 1)),
    pool(2, 4, 11, 50, (3, 3), (3, 3), (1, 0), up=True, count_padding=False),
    pool(1, 33, 10, 45, (2, 3), (2, 3), (0, 1), (2, 2)),
    pool(1, 3, 9, 9, (3, 3), (2, 2), up=True, divisor=5),
    pool(1, 3, 9, 70, (3, 3), (2, 2), dtype="float64"),
    pool(2, 3, 5, 5, (5, 5), (5, 5)),
    pool(1, 1, 3, 90, (1, 4), (1, 4), (0, 2)),
    pool(1, 2, 40, 50, (40, 40), (1, 3)),
]


def taps(spec: PoolSpec, i: int, j: int) -> list[tuple[int, int]]:
    rows = [
        i * spec.stride[0] - spec.padding[0] + r * spec.dilation[0] for r in range(spec.window[0])
    ]
    cols = [
        j * spec.stride[1] - spec.padding[1] + s * spec.dilation[1] for s in range(spec.window[1])
    ]
    return [(a, b) for a in rows if 0 <= a < spec.h for b in cols if 0 <= b < spec.w]


def divisor(spec: PoolSpec, i: int, j: int) -> int:
    if spec.divisor:
        return spec.divisor
    if not spec.count_padding:
        return len(taps(spec, i, j))
    count = 1
    for axis, place in enumerate((i, j)):
        end = (spec.h, spec.w)[axis] + 2 * spec.padding[axis]
        count *= min(spec.window[axis], end - place * spec.stride[axis])
    return count


def reference(spec: PoolSpec, x: np.ndarray, dy: np.ndarray) -> dict[str, np.ndarray]:
    """Maxima, where they are, means, and both gradients, in float64."""
    out = {n: np.zeros(dy.shape) for n in ("max", "where", "mean")}
    out |= {n: np.zeros(x.shape) for n in ("max_grad", "mean_grad")}
    for i in range(spec.out_h):
        for j in range(spec.out_w):
            places = taps(spec, i, j)
            rows, cols = (np.array(v) for v in zip(*places, strict=True))
            seen = x[:, :, rows, cols].astype("f8")
            first = np.where(np.isnan(seen), np.inf, seen).argmax(-1)
            out["max"][:, :, i, j] = np.take_along_axis(seen, first[..., None], -1)[..., 0]
            out["where"][:, :, i, j] = rows[first] * spec.w + cols[first]
            out["mean"][:, :, i, j] = seen.sum(-1) / divisor(spec, i, j)
            for image in np.ndindex(spec.n, spec.c):
                a, b = rows[first[image]], cols[first[image]]
                out["max_grad"][(*image, a, b)] += dy[(*image, i, j)]
            share = dy[:, :, i, j, None] / divisor(spec, i, j)
            np.add.at(out["mean_grad"], (slice(None), slice(None), rows, cols), share)
    return out


@pytest.fixture(params=range(len(SPECS)))
def case(request, rng):
    spec = SPECS[request.param]
    x = np.round(2 * rng.standard_normal((spec.n, spec.c, spec.h, spec.w))).astype(spec.dtype)
    dy = rng.standard_normal((spec.n, spec.c, spec.out_h, spec.out_w)).astype(spec.dtype)
    return spec, x, dy, reference(spec, x, dy)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("indices", ["int64", "int32"])
def test_maximum(case, layout, indices):
    spec, x, dy, expected = case
    spec = replace(spec, layout=layout, indices=indices)
    xs, dys = stored(x, layout), stored(dy, layout)
    y, where = Guarded(dys.shape, spec.dtype), Guarded(dys.shape, indices)
    templates.max_pool_forward(spec)(xs.ctypes.data, y.address, where.address)
    assert np.array_equal(logical(y.check(), layout), expected["max"])
    assert np.array_equal(logical(where.check(), layout), expected["where"])
    dx = Guarded(xs.shape, spec.dtype)
    templates.max_pool_backward(spec)(dys.ctypes.data, where.address, dx.address)
    assert np.allclose(logical(dx.check(), layout), expected["max_grad"], atol=1e-5)
    again = Guarded(dys.shape, spec.dtype)
    templates.max_pool_forward(spec, keep_indices=False)(xs.ctypes.data, again.address)
    assert np.array_equal(again.check(), y.array)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_the_maximum_of_nothing_but_minus_infinity_is_at_the_first_place(case, layout):
    spec, x, dy, _ = case
    spec = replace(spec, layout=layout)
    xs, dys = stored(np.full_like(x, -np.inf), layout), stored(dy, layout)
    y, where = Guarded(dys.shape, spec.dtype), Guarded(dys.shape, "int64")
    templates.max_pool_forward(spec)(xs.ctypes.data, y.address, where.address)
    assert (y.check() == -np.inf).all()
    expected = [[taps(spec, i, j)[0] for j in range(spec.out_w)] for i in range(spec.out_h)]
    flat = np.array([[a * spec.w + b for a, b in row] for row in expected])
    assert (logical(where.check(), layout) == flat).all()


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_average(case, layout):
    spec, x, dy, expected = case
    if spec.dilation != (1, 1):
        pytest.skip("averages have no dilation")
    spec = replace(spec, layout=layout)
    xs, dys = stored(x, layout), stored(dy, layout)
    y, dx = Guarded(dys.shape, spec.dtype), Guarded(xs.shape, spec.dtype)
    templates.average_pool_forward(spec)(xs.ctypes.data, y.address)
    templates.average_pool_backward(spec)(dys.ctypes.data, dx.address)
    assert np.allclose(logical(y.check(), layout), expected["mean"], atol=1e-5)
    assert np.allclose(logical(dx.check(), layout), expected["mean_grad"], atol=1e-5)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_nan_wins(rng, layout):
    spec = replace(SPECS[2], layout=layout)
    x = rng.standard_normal((spec.n, spec.c, spec.h, spec.w)).astype("float32")
    x.flat[::37] = np.nan
    dy = np.zeros((spec.n, spec.c, spec.out_h, spec.out_w), "float32")
    y = Guarded(stored(dy, layout).shape)
    xs = stored(x, layout)
    templates.max_pool_forward(spec, keep_indices=False)(xs.ctypes.data, y.address)
    got = logical(y.check(), layout)
    for i in range(spec.out_h):
        for j in range(spec.out_w):
            rows, cols = (np.array(v) for v in zip(*taps(spec, i, j), strict=True))
            assert np.array_equal(got[:, :, i, j], x[:, :, rows, cols].max(-1), equal_nan=True)


def test_every_level_of_features(level, rng):
    for layout in ("NCHW", "NHWC"):
        spec = replace(SPECS[2], layout=layout)
        x = rng.standard_normal((spec.n, spec.c, spec.h, spec.w)).astype("float32")
        dy = rng.standard_normal((spec.n, spec.c, spec.out_h, spec.out_w)).astype("float32")
        xs = stored(x, layout)
        y = Guarded(stored(dy, layout).shape)
        templates.max_pool_forward(spec, keep_indices=False)(xs.ctypes.data, y.address)
        assert np.array_equal(logical(y.check(), layout), reference(spec, x, dy)["max"])


def test_kernels_of_other_kinds_can_be_made_afterwards():
    """A module that is loaded on demand must not take the place of a name of the package."""
    spec = pool(1, 1, 4, 4, (2, 2), (2, 2))
    templates.max_pool_forward(spec)
    assert templates.gemm(2, 3, 4) is not None
