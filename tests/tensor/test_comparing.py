"""Comparisons, logic, bits, and one-element tensors as Python values."""

import math

import pytest

import flambeau as torch


def test_comparison_with_numbers_and_reflected():
    x = torch.tensor([1, 2, 3])
    assert (x > 1).tolist() == [False, True, True] and x.le(2).tolist() == [True, True, False]
    assert (x == 2.5).dtype is torch.bool
    assert (x == None) is False  # noqa: E711  the comparison is the test
    assert 2 in x and 7 not in x


def test_bits_and_shifts():
    x = torch.tensor([5, -5], dtype=torch.int8)
    assert (x & 3).tolist() == [1, 3] and (~x).tolist() == [-6, 4] and (x ^ 1).tolist() == [4, -6]
    assert (x << 7).tolist() == [-128, -128] and (x << 8).tolist() == [0, 0]
    assert (x >> 1).tolist() == [2, -3] and (x >> 100).tolist() == [0, -1]
    assert (~torch.tensor([True])).tolist() == [False]


def test_closeness():
    nan, inf = math.nan, math.inf
    x, y = torch.tensor([1.0, nan, inf, 1.0]), torch.tensor([1.0 + 1e-7, nan, inf, 2.0])
    assert torch.isclose(x, y).tolist() == [True, False, True, False]
    assert torch.isclose(x, y, equal_nan=True)[1] and not torch.allclose(x, y)
    assert torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    assert not torch.equal(torch.tensor([1]), torch.tensor([[1]]))


def test_truth_of_one_element_only():
    assert bool(torch.tensor([[2]])) and not torch.tensor(0.0)
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        bool(torch.ones(2))
    with pytest.raises(RuntimeError, match="no values is ambiguous"):
        bool(torch.ones(0))


def test_python_numbers_from_tensors():
    x = torch.tensor(2.75)
    assert int(x) == 2 and float(x) == 2.75 and complex(x) == 2.75
    assert [10, 20, 30][torch.tensor(1)] == 20
    with pytest.raises(TypeError, match="index: only integer tensors"):
        [10, 20][torch.tensor(1.0)]


def test_complex_parts_are_views():
    z = torch.tensor([1 + 2j, 3 - 4j])
    z.real.mul_(10)
    z.imag = torch.tensor([0.0, 1.0])
    assert z.tolist() == [10 + 0j, 30 + 1j]
    assert torch.view_as_real(z).shape == (2, 2) and z.conj()[1] == 30 - 1j
    assert torch.view_as_complex(torch.tensor([[1.0, 2.0]])).tolist() == [1 + 2j]
    with pytest.raises(RuntimeError, match="imag: imag is only implemented for complex"):
        torch.imag(torch.ones(1))
