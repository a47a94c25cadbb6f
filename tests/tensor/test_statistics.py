"""Medians, quantiles, covariance, differences and integrals."""

import math

import numpy as np
import pytest

import flambeau as torch

NAN = math.nan


def test_medians_are_the_lower_of_two_and_nan_wins():
    assert torch.tensor([3.0, 1.0, 2.0, 4.0]).median() == 2
    found = torch.tensor([[3, 1, 2], [6, 5, 4]]).median(1)
    assert found.values.tolist() == [2, 5] and found.indices.tolist() == [2, 1]
    x = torch.tensor([1.0, NAN, 3.0])
    assert x.median().isnan() and x.nanmedian() == 1 and x.median(0).indices == 1


def test_mode_is_the_smallest_of_the_most_frequent():
    found = torch.tensor([3, 1, 3, 1, 2]).mode()
    assert found.values == 1 and found.indices == 3


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_agree_with_numpy(interpolation):
    values = np.random.default_rng(0).normal(size=(4, 9))
    q = torch.tensor([0.1, 0.35, 0.9], dtype=torch.float64)
    got = torch.quantile(torch.from_numpy(values), q, dim=1, interpolation=interpolation)
    np.testing.assert_allclose(
        got.numpy(), np.quantile(values, q.numpy(), axis=1, method=interpolation), rtol=1e-12)


def test_quantiles_and_nan():
    x = torch.tensor([[1.0, 2.0, NAN], [4.0, 6.0, 8.0]])
    assert torch.quantile(x, 0.5, dim=1)[0].isnan()
    assert torch.nanquantile(x, 0.5, dim=1, keepdim=True).tolist() == [[1.5], [6.0]]
    with pytest.raises(RuntimeError, match=r"quantile: q must be in the range \[0, 1\]"):
        torch.quantile(x, 1.5)


def test_sums_that_ignore_nan():
    x = torch.tensor([1.0, NAN, 3.0])
    assert torch.nansum(x) == 4 and torch.nanmean(x) == 2 and x.count_nonzero() == 3


def test_covariance_agrees_with_numpy():
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(3, 8)), rng.uniform(0.1, 1, 8)
    times = rng.integers(1, 4, 8)
    got = torch.cov(torch.from_numpy(x), fweights=torch.from_numpy(times),
                    aweights=torch.from_numpy(weights))
    np.testing.assert_allclose(got.numpy(), np.cov(x, fweights=times, aweights=weights))
    np.testing.assert_allclose(torch.corrcoef(torch.from_numpy(x)).numpy(), np.corrcoef(x))


def test_differences_and_integrals():
    y = torch.tensor([1.0, 4.0, 9.0, 16.0])
    assert y.diff().tolist() == [3.0, 5.0, 7.0] and y.diff(n=2).tolist() == [2.0, 2.0]
    assert torch.diff(torch.tensor([True, False, False])).tolist() == [True, False]
    assert torch.diff(y, prepend=torch.zeros(1)).tolist() == [1.0, 3.0, 5.0, 7.0]
    x = torch.tensor([0.0, 1.0, 3.0, 4.0])
    assert torch.trapezoid(y, x).item() == 28.0
    assert torch.cumulative_trapezoid(y, dx=2.0).tolist() == [5.0, 18.0, 43.0]


def test_derivatives_agree_with_numpy():
    values = np.random.default_rng(0).normal(size=(5, 6))
    x = torch.from_numpy(values)
    for edge_order in (1, 2):
        for got, expected in zip(torch.gradient(x, spacing=0.5, edge_order=edge_order),
                                 np.gradient(values, 0.5, edge_order=edge_order), strict=True):
            np.testing.assert_allclose(got.numpy(), expected, atol=1e-12)
    places = np.array([0.0, 1.0, 1.5, 4.0, 5.0])
    got, = torch.gradient(x, spacing=(torch.from_numpy(places),), dim=0)
    np.testing.assert_allclose(got.numpy(), np.gradient(values, places, axis=0), atol=1e-12)
