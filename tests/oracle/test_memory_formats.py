"""What keeps channels-last in PyTorch keeps it here: values, strides and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")

CASES = {
    "pad": lambda p, x: p.nn.functional.pad(x, (1, 1, 1, 0)),
    "pad reflected": lambda p, x: p.nn.functional.pad(x, (1, 1, 1, 1), "reflect"),
    "pad repeated": lambda p, x: p.nn.functional.pad(x, (1, 1, 1, 1), "replicate"),
    "interpolate nearest": lambda p, x: p.nn.functional.interpolate(x, scale_factor=2),
    "interpolate": lambda p, x: p.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "group norm": lambda p, x: p.nn.functional.group_norm(x, 2),
    "pixel shuffle": lambda p, x: p.nn.functional.pixel_shuffle(x, 2),
    "pixel unshuffle": lambda p, x: p.nn.functional.pixel_unshuffle(x, 2),
    "channel shuffle": lambda p, x: p.nn.functional.channel_shuffle(x, 2),
    "roll": lambda p, x: p.roll(x, (1, 2), (2, 1)),
    "one pixel": lambda p, x: p.nn.functional.adaptive_avg_pool2d(x, 1),
    "means": lambda p, x: p.nn.functional.adaptive_avg_pool2d(x, (3, 4)),
    "maxima": lambda p, x: p.nn.functional.adaptive_max_pool2d(x, (3, 4)),
    "batch norm": lambda p, x: p.nn.functional.batch_norm(x, None, None, training=True),
}


def run(package, name: str, last: bool):
    a = np.random.default_rng(0).normal(size=(2, 8, 8, 6)).astype(np.float32)
    form = package.channels_last if last else package.contiguous_format
    x = package.from_numpy(a).contiguous(memory_format=form).requires_grad_(True)
    y = CASES[name](package, x)
    y.sin().sum().backward()
    return y.stride(), y.detach().numpy(), x.grad.numpy()


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_formats(name, last):
    mine, theirs = (run(package, name, last) for package in (flambeau, torch))
    assert mine[0] == theirs[0]
    for got, want in zip(mine[1:], theirs[1:], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
