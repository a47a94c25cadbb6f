"""Convolutions that generated kernels take, against PyTorch, for operands laid out anyhow."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")

CASES = [  # function, input, weight, parameters
    ("conv1d", (3, 16, 301), (24, 16, 5), dict(padding=2)),
    ("conv1d", (2, 16, 300), (16, 1, 3), dict(groups=16, stride=2)),
    ("conv1d", (16, 200), (8, 16, 3), dict(dilation=4)),
    ("conv2d", (2, 16, 20, 23), (24, 16, 3, 3), dict(padding=1)),
    ("conv2d", (2, 16, 20, 23), (24, 8, 3, 2), dict(groups=2, stride=(2, 1))),
    ("conv_transpose1d", (2, 16, 100), (16, 8, 4), dict(stride=2, padding=1)),
    ("conv_transpose2d", (2, 16, 14, 15), (16, 8, 4, 4), dict(stride=2, output_padding=1)),
]

ARRANGED = {
    "as it is": lambda x: x,
    "cut out": lambda x: x[..., 1:],
    "transposed": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
    "repeated": lambda x: x[:1].expand(x.shape),
}


def run(package, name, shape, window, how, arranged):
    numbers = np.random.default_rng(0)
    x = package.from_numpy(numbers.normal(size=shape).astype(np.float32)).requires_grad_(True)
    w = package.from_numpy(numbers.normal(size=window).astype(np.float32)).requires_grad_(True)
    y = getattr(package.nn.functional, name)(ARRANGED[arranged](x), w, **how)
    y.sum().backward()
    return [t.detach().numpy() for t in (y, x.grad, w.grad)], y.stride()


@pytest.mark.parametrize("arranged", ARRANGED)
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{'x'.join(map(str, c[1]))}")
def test_values_and_gradients(case, arranged):
    mine, theirs = (run(package, *case, arranged) for package in (flambeau, torch))
    assert mine[1] == theirs[1]
    for got, want in zip(mine[0], theirs[0], strict=True):
        assert np.abs(got - want).max() < 2e-5 * max(1, np.abs(want).max())
