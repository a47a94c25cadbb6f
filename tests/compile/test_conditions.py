"""Checks of values inside of library functions stay in the graph, and raise as eager ones do."""

import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau.compile import records

D = torch.distributions


def cross_entropy(a):
    return F.binary_cross_entropy(a, torch.ones_like(a))


def likelihood(a):
    return D.Normal(torch.zeros(2), a).log_prob(torch.ones(2)).sum()


def uniform(a):
    return D.Uniform(torch.zeros(2), a).entropy().sum()


def gaussian(a):
    return F.gaussian_nll_loss(a * 2, a + 1, a)


def selected(a):
    return torch.arange(3.0).index_select(0, a.long())


def after_a_write(a):
    count.add_(1)
    return F.binary_cross_entropy(a, torch.ones_like(a)) + count


def added(a):
    return torch.zeros(3).index_add(0, a.long(), torch.ones(2))


def copied(a):
    return torch.zeros(3).index_copy(0, a.long(), torch.ones(2))


def filled(a):
    return torch.zeros(3).index_fill(0, a.long(), 2.0)


count = torch.tensor(0.0)
CASES = [cross_entropy, likelihood, uniform, gaussian, selected, added, copied, filled]
CASES += [after_a_write]


def outcome(f, *args):
    """Numbers of few digits, or the class of the error and whether the call has counted."""
    count.zero_()
    try:
        return [round(n, 4) for n in f(*args).reshape(-1).tolist()]
    except Exception as error:
        return type(error).__name__, count.item()


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("function", CASES)
def test_refuses_what_eager_refuses(function, backend):
    seen = []
    compiled = torch.compile(function, backend=backend, fullgraph=True, mode="sync")
    records.collected.append(seen)
    good, bad = torch.tensor([0.25, 0.5]), torch.tensor([0.5, -1.5])
    for a in (good, bad, good):
        assert outcome(compiled, a) == outcome(function, a)
    records.collected.remove(seen)
    assert [kind for kind, _, _ in seen] == ["capture"]


def test_gradients_pass_a_check():
    a = torch.tensor([0.25, 0.5], requires_grad=True)
    loss = torch.compile(cross_entropy, backend="eager", fullgraph=True)(a)
    loss.backward()
    assert a.grad.tolist() == pytest.approx([-2.0, -1.0])
