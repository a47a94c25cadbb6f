"""Convolution and its gradients against float64 NumPy."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from flambeau.codegen import templates
from flambeau.codegen.templates.conv import suits_winograd
from flambeau.codegen.templates.conv_spec import ConvSpec
from flambeau.codegen.templates.epilogue import Pointwise, relu
from flambeau.codegen.templates.winograd_transform import matrices
from flambeau.runtime import pool
from tests.codegen.templates.conftest import Guarded, relative

SAME = (1, 1)
DIRECT = [
    ConvSpec(2, 5, 9, 11, 7, 3, 3, padding=SAME),
    ConvSpec(3, 1, 28, 28, 32, 3, 3),
    ConvSpec(1, 3, 30, 30, 64, 7, 7, (2, 2), (3, 3)),
    ConvSpec(1, 20, 7, 7, 40, 3, 3, (2, 2), SAME),
    ConvSpec(2, 6, 13, 12, 8, 3, 2, (2, 3), (2, 1), (2, 1), 2),
    ConvSpec(2, 12, 10, 10, 12, 3, 3, SAME, (2, 2), (2, 2), groups=3),
    ConvSpec(2, 32, 8, 8, 64, 1, 1, (2, 2)),
    ConvSpec(2, 8, 5, 5, 16, 5, 5),
    ConvSpec(2, 4, 6, 1, 4, 3, 1, SAME, (1, 0)),
    ConvSpec(1, 3, 4, 4, 2, 1, 1, padding=(2, 2)),
    ConvSpec(2, 4, 21, 25, 4, 4, 4, (4, 4), SAME, (6, 6)),
    ConvSpec(1, 130, 5, 5, 70, 3, 3, padding=SAME, winograd=0),
    ConvSpec(3, 20, 9, 8, 33, 1, 1),
]
DEPTHWISE = [
    ConvSpec(2, 37, 9, 11, 37, 3, 3, padding=SAME, groups=37),
    ConvSpec(1, 16, 30, 30, 16, 3, 3, (2, 2), SAME, groups=16),
    ConvSpec(2, 5, 12, 9, 5, 5, 4, (1, 2), (2, 1), (2, 1), 5),
    ConvSpec(1, 3, 20, 20, 3, 3, 3, (3, 3), (0, 0), groups=3),
]
WINOGRAD = [
    ConvSpec(3, 20, 7, 9, 37, 3, 3, padding=SAME),
    ConvSpec(2, 16, 14, 14, 64, 3, 3),
    ConvSpec(1, 70, 8, 8, 40, 3, 3, padding=(2, 2)),
    ConvSpec(2, 130, 7, 7, 70, 3, 3, padding=SAME),
    ConvSpec(2, 250, 6, 7, 201, 3, 3, padding=SAME),
]
LAYOUTS = [
    ("NCHW", "NCHW", "NCHW"),
    ("NHWC", "NHWC", "NHWC"),
    ("NHWC", "HWIO", "NCHW"),
]


def windows(spec: ConvSpec, x: np.ndarray) -> np.ndarray:
    """x seen through the window: [n, c, out_h, out_w, r, s], a view of the padded x."""
    pads = [(0, 0), (0, 0), *((p, p) for p in spec.padding)]
    x = np.pad(x, pads)
    n, c, h, w = x.strides
    strides = (n, c, h * spec.stride[0], w * spec.stride[1])
    strides += (h * spec.dilation[0], w * spec.dilation[1])
    shape = (spec.n, spec.c, spec.out_h, spec.out_w, spec.r, spec.s)
    return np.lib.stride_tricks.as_strided(x, shape, strides)


def reference(spec: ConvSpec, x, w, dy) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y, dx and dw in float64."""
    x, w, dy = (a.astype("f8") for a in (x, w, dy))
    y, dw = np.zeros(dy.shape), np.zeros(w.shape)
    padded = np.zeros((spec.n, spec.c, spec.h + 2 * spec.padding[0], spec.w + 2 * spec.padding[1]))
    seen = windows(spec, x)
    for g in range(spec.groups):
        c = slice(g * spec.group_c, (g + 1) * spec.group_c)
        k = slice(g * spec.group_k, (g + 1) * spec.group_k)
        y[:, k] = np.einsum("ncijrs,kcrs->nkij", seen[:, c], w[k], optimize=True)
        dw[k] = np.einsum("ncijrs,nkij->kcrs", seen[:, c], dy[:, k], optimize=True)
        spread = np.einsum("nkij,kcrs->ncijrs", dy[:, k], w[k], optimize=True)
        for r in range(spec.r):
            for s in range(spec.s):
                top, left = r * spec.dilation[0], s * spec.dilation[1]
                bottom = top + spec.stride[0] * spec.out_h
                right = left + spec.stride[1] * spec.out_w
                place = (slice(top, bottom, spec.stride[0]), slice(left, right, spec.stride[1]))
                padded[(slice(None), c, *place)] += spread[..., r, s]
    inner = [slice(p, p + n) for p, n in zip(spec.padding, (spec.h, spec.w), strict=True)]
    return y, padded[(slice(None), slice(None), *inner)], dw


def stored(a: np.ndarray, layout: str) -> np.ndarray:
    """The dense array of a layout for a logical NCHW array."""
    order = {"NCHW": (0, 1, 2, 3), "NHWC": (0, 2, 3, 1), "HWIO": (2, 3, 1, 0)}[layout]
    return np.ascontiguousarray(a.transpose(order))


def logical(a: np.ndarray, layout: str) -> np.ndarray:
    order = {"NCHW": (0, 1, 2, 3), "NHWC": (0, 3, 1, 2), "HWIO": (3, 2, 0, 1)}[layout]
    return a.transpose(order)


def run(program, inputs, like: np.ndarray, layout: str) -> np.ndarray:
    out = Guarded(stored(like, layout).shape, like.dtype)
    program(*[a.ctypes.data for a in inputs], out.address)
    return logical(out.check(), layout)


def check(spec: ConvSpec, rng: np.random.Generator, bound: float) -> None:
    kind = np.dtype(ml_dtypes.bfloat16 if spec.dtype == "bfloat16" else spec.dtype)
    x = rng.standard_normal((spec.n, spec.c, spec.h, spec.w)).astype(kind)
    w = rng.standard_normal((spec.k, spec.group_c, spec.r, spec.s)).astype(kind)
    dy = rng.standard_normal((spec.n, spec.k, spec.out_h, spec.out_w)).astype(kind)
    y, dx, dw = reference(spec, x, w, dy)
    xs, ws, dys = stored(x, spec.x_layout), stored(w, spec.w_layout), stored(dy, spec.y_layout)
    got = run(templates.conv_forward(spec), (xs, ws), dy, spec.y_layout)
    assert relative(got.astype("f8"), y) < bound
    got = run(templates.conv_input_grad(spec), (dys, ws), x, spec.x_layout)
    assert relative(got.astype("f8"), dx) < bound
    got = run(templates.conv_weight_grad(spec), (xs, dys), w, spec.w_layout)
    assert relative(got.astype("f8"), dw) < bound


def laid_out(spec: ConvSpec, layouts: tuple[str, str, str]) -> ConvSpec:
    return replace(spec, x_layout=layouts[0], w_layout=layouts[1], y_layout=layouts[2])


@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("spec", DIRECT, ids=lambda s: f"{s.c}-{s.h}-{s.k}-{s.r}-{s.stride[0]}")
def test_direct(rng, spec, layouts):
    assert not suits_winograd(spec)
    check(laid_out(spec, layouts), rng, 3e-6)


@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("spec", DEPTHWISE, ids=lambda s: f"{s.c}-{s.h}-{s.stride[1]}")
def test_depthwise(rng, spec, layouts):
    check(laid_out(spec, layouts), rng, 3e-6)


@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("spec", WINOGRAD, ids=lambda s: f"{s.c}-{s.h}-{s.k}")
def test_winograd(rng, spec, layouts):
    assert suits_winograd(spec)
    check(laid_out(spec, layouts), rng, 1e-5)


def test_winograd_of_smaller_tiles(rng):
    spec = replace(WINOGRAD[1], winograd=2)
    assert suits_winograd(spec)
    check(spec, rng, 3e-6)


@pytest.mark.parametrize("spec", [DIRECT[0], DIRECT[4], WINOGRAD[0], DEPTHWISE[0]])
def test_every_level_of_features(level, rng, spec):
    check(spec, rng, 1e-5)


def test_float64_is_never_winograd(rng):
    spec = replace(WINOGRAD[0], dtype="float64")
    assert not suits_winograd(spec)
    check(spec, rng, 1e-14)


@pytest.mark.parametrize("spec", [DIRECT[1], WINOGRAD[1], DIRECT[-1], *DEPTHWISE])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_bias_and_relu(rng, spec, layout):
    spec = spec.with_layout(layout)
    x = rng.standard_normal((spec.n, spec.c, spec.h, spec.w)).astype("float32")
    w = rng.standard_normal((spec.k, spec.group_c, spec.r, spec.s)).astype("float32")
    bias = rng.standard_normal(spec.k).astype("float32")
    dy = np.zeros((spec.n, spec.k, spec.out_h, spec.out_w), "float32")
    y, _, _ = reference(spec, x, w, dy)
    program = templates.conv_forward(spec, Pointwise("bias_relu", relu, bias=True))
    out = Guarded(stored(dy, layout).shape)
    xs, ws = stored(x, layout), stored(w, spec.w_layout)
    program(xs.ctypes.data, ws.ctypes.data, out.address, bias.ctypes.data)
    expected = np.maximum(y + bias[:, None, None], 0)
    assert relative(logical(out.check(), layout), expected) < 1e-5


@pytest.mark.parametrize("spec", [DIRECT[1], WINOGRAD[3]])
def test_same_bits_for_any_number_of_threads(rng, spec):
    x = rng.standard_normal((spec.n, spec.c, spec.h, spec.w)).astype("float32")
    dy = rng.standard_normal((spec.n, spec.k, spec.out_h, spec.out_w)).astype("float32")
    like = np.zeros((spec.k, spec.c, spec.r, spec.s), "float32")
    before, results = pool.get_num_threads(), []
    try:
        for threads in (1, 2):
            pool.set_num_threads(threads)
            results.append(run(templates.conv_weight_grad(spec), (x, dy), like, "NCHW").copy())
    finally:
        pool.set_num_threads(before)
    assert np.array_equal(*results)


@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("spec", [DIRECT[0], *WINOGRAD, DEPTHWISE[1]], ids=lambda s: f"{s.c}-{s.k}")
def test_bfloat16(level, rng, spec, layouts):
    """Operands are bfloat16, sums float32: the error is that of rounding the result."""
    check(replace(laid_out(spec, layouts), dtype="bfloat16"), rng, 5e-3)


@pytest.mark.parametrize("m", [2, 4])
def test_transforms_are_exact_in_float64(rng, m):
    """Winograd's identity in one dimension."""
    output, filters, inputs = (np.array(t) for t in matrices(m))
    d, g = rng.standard_normal(m + 2), rng.standard_normal(3)
    expected = np.convolve(d, g[::-1], "valid")
    assert np.allclose(output @ ((filters @ g) * (inputs @ d)), expected)


def test_no_images():
    spec = ConvSpec(0, 4, 6, 6, 8, 3, 3)
    dw = Guarded((8, 4, 3, 3))
    empty = np.zeros(0, "float32").ctypes.data
    templates.conv_weight_grad(spec)(empty, empty, dw.address)
    assert (dw.check() == 0).all()
