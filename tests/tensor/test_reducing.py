"""Reductions: dimensions, dtypes, NaN and ties, numerical care."""

import math

import pytest

import flambeau as torch

INF, NAN = math.inf, math.nan


def test_dimensions_and_keepdim():
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert x.sum((0, -1)).tolist() == [60.0, 92.0, 124.0]
    assert x.mean(1, keepdim=True).shape == (2, 1, 4)
    assert x.amax(dim=[0, 2]).tolist() == [15.0, 19.0, 23.0]
    assert torch.tensor(3.0).sum(0).item() == 3.0
    with pytest.raises(IndexError, match=r"sum: dim must be in \[-3, 2\]; got dim=3"):
        x.sum(3)
    with pytest.raises(RuntimeError, match="each dim may appear once"):
        x.sum((0, -3))


def test_integers_accumulate_in_int64():
    assert torch.full((300,), 100, dtype=torch.int8).sum() == 30000
    assert torch.ones(300, dtype=torch.bool).cumsum(0)[-1] == 300
    assert torch.tensor([3, 4], dtype=torch.uint8).prod().dtype is torch.int64
    with pytest.raises(RuntimeError, match="mean: the result dtype must be floating point"):
        torch.arange(3).mean()


def test_max_reports_values_and_indices_by_name():
    found = torch.tensor([[1.0, 5.0, 5.0], [7.0, 0.0, 7.0]]).max(dim=1)
    assert found.values.tolist() == [5.0, 7.0] and found.indices.tolist() == [1, 0]
    assert type(found) is torch.return_types.max
    assert torch.max(torch.tensor([1, 4]), torch.tensor([3, 2])).tolist() == [3, 4]


def test_nan_is_the_extremum_and_the_first_one_is_reported():
    x = torch.tensor([3.0, NAN, 1.0, NAN])
    assert x.max().isnan() and x.argmax() == 1 and x.argmin() == 1 and x.min(0).indices == 1


def test_empty_reductions():
    empty = torch.zeros(0, 3)
    assert empty.sum() == 0 and empty.prod() == 1 and empty.mean().isnan()
    assert empty.any().item() is False and empty.all().item() is True
    with pytest.raises(IndexError):
        empty.max(0)
    with pytest.raises(RuntimeError):
        empty.max()


def test_gradients_of_amax_are_shared_and_of_max_are_not():
    x = torch.tensor([2.0, 2.0, 1.0], requires_grad=True)
    assert torch.autograd.grad(x.amax(), x)[0].tolist() == [0.5, 0.5, 0.0]
    assert torch.autograd.grad(x.max(0).values, x)[0].tolist() == [1.0, 0.0, 0.0]


def test_spread_of_large_close_floats():
    x = torch.tensor([1e8, 1e8 + 8, 1e8 + 16])
    assert x.std().item() == pytest.approx(8) and x.var(unbiased=False).item() == pytest.approx(
        128 / 3)
    spread, middle = torch.var_mean(x.double(), 0, correction=0)
    assert spread.item() == pytest.approx(128 / 3) and middle.item() == 1e8 + 8
    assert torch.tensor([1.0]).std().isnan()


def test_logsumexp_without_overflow_and_with_a_zero_gradient_of_nothing():
    assert torch.tensor([1000.0, 1000.0]).logsumexp(0).item() == pytest.approx(1000 + math.log(2))
    x = torch.tensor([-INF, -INF], requires_grad=True)
    assert x.logsumexp(0) == -INF and torch.tensor([INF, 1.0]).logsumexp(0) == INF
    x.logsumexp(0).backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_product_gradients_at_zeros():
    def gradient(values):
        x = torch.tensor(values, requires_grad=True)
        return torch.autograd.grad(x.prod(), x)[0].tolist()

    assert gradient([0.0, 2.0, 3.0]) == [6.0, 0.0, 0.0]
    assert gradient([0.0, 0.0, 3.0]) == [0.0, 0.0, 0.0]
    x = torch.tensor([2.0, 3.0, 0.0, 0.0], requires_grad=True)
    first, = torch.autograd.grad(x.prod(), x, create_graph=True)
    assert torch.autograd.grad(first[2], x)[0].tolist() == [0.0, 0.0, 0.0, 6.0]


@pytest.mark.parametrize("p", [0, 1, 2, 3, 0.5, INF, -INF])
def test_norms(p):
    x = [3.0, -4.0, 0.5]
    expected = (sum(v != 0 for v in x) if p == 0 else max(map(abs, x)) if p == INF else
                min(map(abs, x)) if p == -INF else sum(abs(v) ** p for v in x) ** (1 / p))
    assert torch.tensor(x).norm(p).item() == pytest.approx(expected, rel=1e-6)


def test_gradient_of_a_norm_at_zero_is_zero():
    x = torch.zeros(3, requires_grad=True)
    x.norm().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
