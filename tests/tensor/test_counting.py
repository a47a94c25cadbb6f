"""Histograms, membership, sorted search, distinct values."""

import numpy as np
import pytest

import flambeau as torch


def test_searchsorted_sides_and_batches():
    edges = torch.tensor([1.0, 3.0, 3.0, 5.0])
    assert torch.searchsorted(edges, torch.tensor([3.0, 0.0, 6.0])).tolist() == [1, 0, 4]
    assert torch.searchsorted(edges, torch.tensor([3.0]), right=True).tolist() == [3]
    batch = torch.tensor([[1, 2, 3], [10, 20, 30]])
    assert torch.searchsorted(batch, torch.tensor([[2], [25]])).tolist() == [[1], [2]]
    assert torch.bucketize(4.0, edges).item() == 3
    assert torch.bucketize(torch.tensor([4.0]), edges, out_int32=True).dtype is torch.int32


def test_search_wants_one_dtype():
    with pytest.raises(RuntimeError, match="searchsorted: boundary and input value tensors"):
        torch.searchsorted(torch.tensor([1.0]), torch.tensor([1]))


def test_membership():
    x = torch.tensor([[1, 2], [3, 4]])
    assert torch.isin(x, torch.tensor([2, 3])).tolist() == [[False, True], [True, False]]
    assert torch.isin(x, 4, invert=True).tolist() == [[True, True], [True, False]]


def test_histograms_agree_with_numpy():
    values = np.random.default_rng(0).normal(size=500)
    x = torch.from_numpy(values)
    assert torch.histc(x, 7, -2, 2).tolist() == np.histogram(values, 7, (-2, 2))[0].tolist()
    found = torch.histogram(x, 5, density=True)
    expected, edges = np.histogram(values, 5, density=True)
    np.testing.assert_allclose(found.hist.numpy(), expected, rtol=1e-9)
    np.testing.assert_allclose(found.bin_edges.numpy(), edges, rtol=1e-9)
    grid = torch.histogramdd(x.reshape(-1, 2), [3, 4]).hist
    np.testing.assert_array_equal(grid.numpy(), np.histogramdd(values.reshape(-1, 2), [3, 4])[0])


def test_bincount():
    x = torch.tensor([0, 2, 2, 5])
    assert torch.bincount(x).tolist() == [1, 0, 2, 0, 0, 1]
    assert torch.bincount(x, torch.tensor([1.0, 0.5, 0.5, 2.0]), minlength=7).tolist() == [
        1.0, 0.0, 1.0, 0.0, 0.0, 2.0, 0.0]
    with pytest.raises(RuntimeError, match="bincount: the values must not be negative"):
        torch.bincount(torch.tensor([-1]))


def test_distinct_values():
    x = torch.tensor([[3, 1], [1, 3]])
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 3] and counts.tolist() == [2, 2]
    assert values[inverse].tolist() == x.tolist()
    rows = torch.tensor([[2, 1], [0, 5], [2, 1]])
    assert torch.unique(rows, dim=0).tolist() == [[0, 5], [2, 1]]
    runs = torch.unique_consecutive(torch.tensor([1, 1, 2, 2, 1]), return_counts=True)
    assert runs[0].tolist() == [1, 2, 1] and runs[1].tolist() == [2, 2, 1]
