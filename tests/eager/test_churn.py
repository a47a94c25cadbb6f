"""Sizes that go on changing get no kernels of their own, and the same results."""

import pytest

import flambeau as torch
from flambeau.eager.native import churn
from flambeau.ops.registry import REGISTRY


@pytest.fixture(autouse=True)
def fresh():
    """No plans and no families from other tests, nor for them."""
    for name in ("softmax", "linear", "matmul", "gelu"):
        REGISTRY[name].plans.clear()
    churn.forget()
    yield
    for name in ("softmax", "linear", "matmul", "gelu"):
        REGISTRY[name].plans.clear()
    churn.forget()


def kernels_made(call, sizes, monkeypatch) -> int:
    """How many signatures got a kernel."""
    taken = []
    real = churn._another
    monkeypatch.setattr(churn, "_another", lambda *a: taken.append(real(*a)) or taken[-1])
    for n in sizes:
        call(n)
    return sum(taken)


def test_rows_of_softmax(monkeypatch):
    x = torch.randn(60, 16)
    made = kernels_made(lambda n: x[:n].softmax(-1), range(20, 60), monkeypatch)
    assert made == churn.FEW


def test_batches_of_a_linear_layer(monkeypatch):
    layer = torch.nn.Linear(64, 64)
    with torch.no_grad():
        made = kernels_made(lambda n: layer(torch.ones(n, 64)), range(20, 60), monkeypatch)
    assert made == churn.BATCHES


def test_another_weight_is_another_family(monkeypatch):
    made = kernels_made(lambda n: torch.nn.functional.linear(
        torch.ones(30, 64), torch.ones(n, 64)), range(40, 60), monkeypatch)
    assert made == 20


def test_sizes_that_come_back_keep_what_they_have(monkeypatch):
    x = torch.randn(60, 16)
    made = kernels_made(lambda n: x[:n].softmax(-1), [20, 30, 40] * 10, monkeypatch)
    assert made == 3


def test_costly_products_get_kernels(monkeypatch):
    weight, x = torch.ones(1 << 10, 1 << 10), torch.ones(310, 1 << 10)
    before = len(REGISTRY["matmul"].plans)
    made = kernels_made(lambda n: x[:n] @ weight, (300, 310), monkeypatch)
    assert made == 0 and len(REGISTRY["matmul"].plans) == before + 2


def test_results_do_not_depend_on_who_computes(monkeypatch):
    torch.manual_seed(0)
    layer = torch.nn.Linear(48, 40)
    for n in range(20, 50):
        x = torch.randn(n, 48)
        got = torch.nn.functional.gelu(layer(x)).softmax(-1)
        wanted = torch.nn.functional.gelu(layer(x.double().float())).double().softmax(-1)
        torch.testing.assert_close(got.double(), wanted, rtol=1e-5, atol=1e-6)
