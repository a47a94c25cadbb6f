"""Folds of every channel that all its elements need: one kernel, or few that threads share."""

import numpy as np
import pytest

from flambeau.codegen.kernel import compile_kernel
from flambeau.loops.api import Buf, maximum, nest, reduce
from flambeau.schedule.fuse import fused
from flambeau.schedule.machine import Machine
from flambeau.schedule.plan import planned

MACHINE = Machine(vector_bytes=64, registers=32, masked_memory=True)
FIRST, LAST = "channels first", "channels last"


def picture(name, shape, layout):
    n, c, h, w = shape
    return Buf(name, shape, None if layout == FIRST else (h * w * c, 1, w * c, c))


def centred(shape, layout):
    """(mean of each channel, variance of each channel, relu of x - mean): out0, out1, out2."""
    n, c, h, w = shape
    x, y = picture("x", shape, layout), picture("y", shape, layout)
    mean, var, out = Buf("mean", (c,)), Buf("var", (c,)), picture("out", shape, layout)
    count = float(n * h * w)

    def at(i, r):
        return x[r[0], i[0], r[1], r[2]]

    def square(i, r):
        return (at(i, r) - mean[i]) * (at(i, r) - mean[i])

    return (
        nest((c,), lambda i: reduce("add", (n, h, w), lambda r: at(i, r)) / count, out=mean),
        nest((c,), lambda i: reduce("add", (n, h, w), lambda r: square(i, r)) / count, out=var),
        nest(shape, lambda i: (x[i] - mean[i[1:2]]) / (var[i[1:2]] + 1.0), out=y),
        nest(shape, lambda i: maximum(y[i], 0.0), out=out),
    )


def kernels(nests):
    groups = fused(nests, ("mean", "var", "out"), MACHINE)
    return [str(p) for k, g in enumerate(groups) for p in planned(list(g), MACHINE, k)]


def test_folds_and_what_needs_them_are_one_kernel_over_the_channels():
    (text,) = kernels(centred((8, 32, 16, 16), FIRST))
    assert text.startswith("for i0<32:\n  for r0<8, r1<256 by 64:\n    fold add")
    assert text.count("for ") == 4 and all(f"{b}[i0] = " in text for b in ("mean", "var"))


def test_channels_side_by_side_are_folded_in_pieces():
    heads = [t.splitlines()[0] for t in kernels(centred((64, 32, 16, 16), LAST))]
    over = [
        [loop.split("<")[0] for loop in head.removeprefix("for ").split(", ")] for head in heads
    ]
    assert over == [["c", "i0"], ["i0"], ["c", "i0"], ["i0"], ["i0", "i1"]]


def test_folds_over_the_same_loops_are_cut_together():
    x, y = Buf("x", (4096, 32)), Buf("y", (4096, 32))
    nests = (
        nest((32,), lambda i: reduce("add", (4096,), lambda r: x[r + i]), out="mean"),
        nest((32,), lambda i: reduce("add", (4096,), lambda r: x[r + i] * y[r + i]), out="var"),
    )
    assert len(kernels(nests)) == 2


@pytest.mark.parametrize("layout", [FIRST, LAST])
@pytest.mark.parametrize("shape", [(3, 5, 4, 7), (40, 33, 9, 11), (64, 3, 16, 17), (2, 130, 1, 3)])
def test_values(shape, layout):
    a = np.random.default_rng(0).normal(3, 1, shape).astype(np.float32)
    order = (0, 1, 2, 3) if layout == FIRST else (0, 2, 3, 1)
    held = np.ascontiguousarray(a.transpose(order))
    out = np.full_like(held, np.nan)
    mean, var = (np.full(shape[1], np.nan, np.float32) for _ in range(2))
    kernel = compile_kernel(centred(shape, layout), parameters=["x", "mean", "var", "out"])
    kernel.entry(*(m.ctypes.data for m in (held, mean, var, out)))
    wanted_mean, wanted_var = a.mean((0, 2, 3)), a.var((0, 2, 3))
    np.testing.assert_allclose(mean, wanted_mean, rtol=1e-5)
    np.testing.assert_allclose(var, wanted_var, rtol=1e-4)
    channel = (1, -1, 1, 1)
    wanted = np.maximum((a - wanted_mean.reshape(channel)) / (wanted_var.reshape(channel) + 1), 0)
    np.testing.assert_allclose(out, wanted.transpose(order), atol=1e-5)


def grouped(shape, width):
    """(mean of each group of `width` channels, x - mean): out0, out1."""
    n, c, h, w = shape
    x = Buf("x", shape)

    def mean(s, g):
        total = reduce("add", (width, h, w), lambda r: x[s, g * width + r[0], r[1], r[2]])
        return total / float(width * h * w)

    return (
        nest((n, c // width), lambda i: mean(*i), out="mean"),
        nest(shape, lambda i: x[i] - mean(i[0], i[1] // width), out="out"),
    )


def test_folds_of_groups_of_channels_are_computed_once():
    (text,) = kernels(grouped((8, 32, 16, 16), 4))
    assert text.startswith("for i0<64:\n  for r0<1024 by 64:\n    fold add")
    assert text.count("for ") == 3 and "mean[i0] = " in text


@pytest.mark.parametrize("width", [1, 3, 12])
def test_values_of_groups(width):
    a = np.random.default_rng(0).normal(3, 1, (5, 12, 7, 3)).astype(np.float32)
    mean, out = np.zeros((5, 12 // width), np.float32), np.zeros_like(a)
    kernel = compile_kernel(grouped(a.shape, width), parameters=["x", "mean", "out"])
    kernel.entry(*(m.ctypes.data for m in (a, mean, out)))
    flat = a.reshape(5, 12 // width, -1)
    np.testing.assert_allclose(mean, flat.mean(2), rtol=1e-5)
    wanted = (flat - flat.mean(2, keepdims=True)).reshape(a.shape)
    np.testing.assert_allclose(out, wanted, atol=1e-5)
