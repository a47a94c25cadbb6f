"""where, masked_fill, clamp and the pairwise extrema."""

import math

import pytest

import flambeau as torch

NAN = math.nan


def test_where_promotes_and_broadcasts():
    out = torch.where(torch.tensor([[True], [False]]), torch.tensor([1, 2]), 0.5)
    assert out.dtype is torch.float32 and out.tolist() == [[1.0, 2.0], [0.5, 0.5]]
    assert torch.tensor([1.0, 2.0]).where(torch.tensor([True, False]), 9).tolist() == [1.0, 9.0]


def test_masked_fill_keeps_the_dtype():
    x = torch.tensor([1, 2, 3])
    assert x.masked_fill(x > 1, 7.9).tolist() == [1, 7, 7]
    assert x.masked_fill_(x > 2, 0) is x and x.tolist() == [1, 2, 0]
    with pytest.raises(RuntimeError, match="masked_fill: mask must be a bool tensor"):
        x.masked_fill(x, 0)


def test_clamp_limits_and_nan():
    x = torch.tensor([-2.0, 0.5, NAN, 3.0])
    assert x.clamp(-1, 1).tolist()[:2] == [-1.0, 0.5] and x.clamp(-1, 1)[2].isnan()
    assert torch.clamp(torch.tensor([1.0]), 3, 2).tolist() == [2.0]  # the upper limit wins
    assert torch.tensor([1]).clamp(0.5).dtype is torch.float32
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max'"):
        x.clamp()


def test_clamp_in_place_where_a_limit_is_the_tensor_itself():
    x = torch.tensor([-1.0, 2.0])
    x.clamp_(torch.zeros(2), x)
    assert x.tolist() == [-1.0, 2.0]


def test_maximum_lets_nan_win_and_fmax_does_not():
    x, y = torch.tensor([1.0, NAN]), torch.tensor([2.0, 1.0])
    assert torch.maximum(x, y)[1].isnan() and torch.fmax(x, y).tolist() == [2.0, 1.0]


def test_gradient_at_a_tie_is_shared():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.maximum(x, torch.tensor([1.0, 0.0])).sum().backward()
    assert x.grad.tolist() == [0.5, 1.0]


def test_where_does_not_make_half_complex_of_other_values():
    condition, half = torch.tensor([True, False]), torch.ones(2, dtype=torch.float16)
    with pytest.raises(NotImplementedError, match="complex32"):
        torch.where(condition, 2 + 1j, half)
