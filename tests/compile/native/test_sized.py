"""One captured graph for many sizes: native for each, bounded, right for 0 and 1, and trained."""

import pytest

import flambeau as torch
from flambeau.compile.native import runner, sized

F = torch.nn.functional


@pytest.fixture
def made(monkeypatch):
    """The plans with many sizes, and those of one."""
    many, one = [], []
    first, second = sized.SizedPlan.__init__, runner.NativePlan.__init__
    monkeypatch.setattr(
        sized.SizedPlan, "__init__", lambda p, *a: (many.append(p), first(p, *a))[1]
    )
    monkeypatch.setattr(
        runner.NativePlan, "__init__", lambda p, *a, **k: (one.append(p), second(p, *a, **k))[1]
    )
    return many, one


def model(x, weight):
    x = F.layer_norm(x @ weight, (5,)).reshape(-1)
    return (x + torch.ones(x.shape[0])).cumsum(0) * x.shape[0]


def test_each_size_has_its_program_and_one_capture(made):
    many, one = made
    weight, f = torch.randn(4, 5), torch.compile(model)
    for n in (7, 8, 9, 10, 8, 9, 1, 0, 2):
        x = torch.randn(n, 4)
        torch.testing.assert_close(f(x, weight), model(x, weight), rtol=1e-5, atol=1e-4)
    (plan,) = [p for p in many if p.plans]
    assert len(plan.plans) == 4  # 8, 9, 10, 2: sizes 0 and 1 have graphs of their own
    assert all(p.program is not None for p in plan.plans.values())
    assert len(f.site.entries) <= 4


def test_the_programs_of_few_sizes_are_kept(made, monkeypatch):
    monkeypatch.setattr(sized, "MOST_SIZES", 3)
    many, _ = made
    f = torch.compile(lambda x: (x * 2).reshape(-1).flip(0))
    for n in (2, 3, 4, 5, 3, 6, 3, 7):
        assert f(torch.ones(n, 2)).tolist() == [2.0] * (2 * n)
    (plan,) = [p for p in many if p.plans]
    assert [key[0].shape[0] for key in plan.plans] == [6, 3, 7]


def test_a_size_that_comes_once_waits_for_nothing(made, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_TIER", "background")
    _, one = made
    f = torch.compile(lambda x: x.exp().reshape(-1), dynamic=True)
    for n in (4, 5, 6):
        f(torch.zeros(n, 2))
    assert not any(p.asked for p in one)
    f(torch.zeros(5, 2))
    assert sum(p.asked for p in one) == 1
    assert torch.compiler.wait(600)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_gradients_are_of_the_size_of_the_call(reduction):
    net = torch.nn.Linear(4, 3)

    def loss(x):
        return getattr(net(x).exp(), reduction)()

    f = torch.compile(loss)
    for n in (5, 6, 7, 8, 1, 0, 9, 7):
        x, found = torch.randn(n, 4), []
        for g in (f, loss):
            net.zero_grad()
            value = g(x)
            value.backward()
            found.append((value, net.weight.grad.clone(), net.bias.grad.clone()))
        torch.testing.assert_close(*found, equal_nan=True)


def test_a_training_step_serves_many_batches():
    def training(compiled):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y, reduction="sum")
            loss.backward()
            optimizer.step()
            return loss

        step = torch.compile(step) if compiled else step
        sizes = (5, 6, 7, 8, 6, 1, 9, 10, 11, 12)
        return [step(torch.ones(n, 4) / n, torch.zeros(n, 2)).item() for n in sizes]

    assert training(True) == pytest.approx(training(False), rel=1e-4)
