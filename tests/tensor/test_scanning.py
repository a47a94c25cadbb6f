"""Running sums, products, extrema, and the recurrence that their gradients are made of."""

import math

import numpy as np
import pytest

import flambeau as torch
from flambeau.ops import scans

INF, NAN = math.inf, math.nan


def test_cumulative_extrema_keep_the_latest_tie_and_nan():
    found = torch.cummax(torch.tensor([1.0, 3.0, 3.0, 2.0, NAN, 5.0, NAN]), 0)
    assert found.indices.tolist() == [0, 1, 2, 2, 4, 4, 6]
    assert found.values[:4].tolist() == [1.0, 3.0, 3.0, 3.0] and found.values[4:].isnan().all()


def test_cumprod_gradient_through_zeros():
    x = torch.tensor([2.0, 0.0, 3.0, 4.0], requires_grad=True)
    assert torch.autograd.grad(x.cumprod(0).sum(), x)[0].tolist() == [1.0, 32.0, 0.0, 0.0]


def test_logcumsumexp_starts_from_nothing():
    x = torch.tensor([-INF, -INF, 0.0, 1.0], requires_grad=True)
    out = torch.logcumsumexp(x, 0)
    assert out[:3].tolist() == [-INF, -INF, 0.0]
    out[3].backward()
    assert x.grad[:2].tolist() == [0.0, 0.0] and x.grad.sum().item() == pytest.approx(1)


def test_in_place_cumsum():
    x = torch.tensor([1, 2, 3], dtype=torch.int32)
    assert x.cumsum_(0) is x and x.tolist() == [1, 3, 6] and x.dtype is torch.int32


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(200,), (200, 3), (70, 300)])
def test_recurrence_by_doubling_and_in_sequence_agree(shape, reverse):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=shape), rng.uniform(-1, 1, shape)
    b[::7] = 0
    expected, before = np.empty(shape), np.zeros(shape[1:])
    steps = range(shape[0])
    for k in reversed(steps) if reverse else steps:
        before = expected[k] = a[k] + b[k] * before
    got = scans.recurrence(torch.from_numpy(a), torch.from_numpy(b), dim=0, reverse=reverse)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12, atol=1e-12)
