"""A replayed pass leaves what the engine leaves, bit for bit, and steps aside where it must."""

import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau.autograd import engine, replay
from flambeau.autograd.replay import NEVER, Replay, Replays
from flambeau.core.errors import AutogradError


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    known = Replays()
    for module in (replay, engine):
        monkeypatch.setattr(module, "replays", known)
    return known


def replayed(known: Replays) -> int:
    return sum(isinstance(found, Replay) for found in known.known.values())


def numbers(*shape, seed=0):
    return torch.tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))


def by_engine(monkeypatch):
    """Never replay."""
    monkeypatch.setattr(engine, "may_replay", lambda: False)


def mlp(x, weights):
    for w in weights[:-1]:
        x = torch.nn.functional.layer_norm(torch.relu(x @ w), (w.shape[1],)) + x.mean()
    return ((x @ weights[-1]).softmax(-1) * 0.5).square().sum()


def attention(x, weights):
    q, k, v = (x @ w for w in weights)
    pieces = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None]).split(3, 2)
    return sum((p.sin() * i).sum() for i, p in enumerate(pieces)) + weights[0].prod() + q[1:].max()


def tied(x, weights):
    w = weights[0]
    y = (x @ w) @ w.T
    return (y * y).mean() + w.abs().sum() + w.exp().logsumexp(0).sum()


@pytest.mark.parametrize("loss", [mlp, attention, tied])
def test_steps_leave_the_same_bits(loss, monkeypatch, fresh):
    def steps():
        weights = [numbers(6, 6, seed=k).requires_grad_() for k in range(3)]
        found = []
        for step in range(6):
            loss(numbers(5, 6, seed=10 + step), weights).backward()
            found.append([None if w.grad is None else w.grad.numpy().copy() for w in weights])
            if step % 3 == 2:
                for w in weights:
                    w.grad = None
        return found

    got = steps()
    assert replayed(fresh) >= 1
    by_engine(monkeypatch)
    for now, then in zip(got, steps()):
        for a, b in zip(now, then):
            assert (a is None and b is None) or a.tobytes() == b.tobytes()


def test_what_grad_returns(fresh):
    x = numbers(4).requires_grad_()
    for step in range(5):
        y = x * (step + 1.0)
        z = y.sin()
        dy, dx, none = torch.autograd.grad((z * z).sum(), (y, x, numbers(2).requires_grad_()),
                                           allow_unused=True)
        torch.testing.assert_close(dy, 2 * z.detach() * y.detach().cos())
        torch.testing.assert_close(dx, dy * (step + 1.0))
        assert none is None and x.grad is None


def test_numbers_are_part_of_the_outline(fresh):
    x = numbers(3).requires_grad_()
    for factor in [2.0] * 4 + [3.0] * 4 + [-0.0, 0.0] * 4 + [2.0]:
        x.grad = None
        (x * factor).sum().backward()
        np.testing.assert_array_equal(np.signbit(x.grad.numpy()), np.signbit([factor] * 3))
        np.testing.assert_array_equal(x.grad.numpy(), [factor] * 3)
    assert replayed(fresh) == 4


def test_the_same_operand_twice_is_another_outline(fresh):
    a, b = numbers(3).requires_grad_(), numbers(3, seed=1).requires_grad_()
    for x, y in [(a, a)] * 3 + [(a, b)] * 3 + [(b, b)] * 3:
        a.grad = b.grad = None
        p, q = x.detach().clone().requires_grad_(), y.detach()
        q = p if x is y else q.clone().requires_grad_()
        (p * q).sum().backward()
        torch.testing.assert_close(p.grad, 2 * x.detach() if x is y else y.detach())


def test_a_write_is_noticed(fresh):
    x = numbers(3).requires_grad_()
    for _ in range(4):
        y = x.exp()
        y.sum().backward()
    y = x.exp()
    y.detach().mul_(2)
    with pytest.raises(AutogradError, match="modified by an inplace"):
        y.sum().backward()


def test_a_freed_graph_is_noticed(fresh):
    x = numbers(3).requires_grad_()
    for _ in range(4):
        y = x.exp().sum()
        y.backward()
        with pytest.raises(AutogradError, match="freed"):
            y.backward()


def test_a_kept_graph_goes_on(fresh):
    x = numbers(3).requires_grad_()
    for _ in range(4):
        x.grad = None
        y = x.exp().sum()
        y.backward(retain_graph=True)
        y.backward()
        torch.testing.assert_close(x.grad, 2 * x.detach().exp())


def test_a_pass_that_keeps_its_graph_is_replayed_and_frees_when_it_does_not(fresh):
    x = numbers(3).requires_grad_()
    y = x.exp().sum()
    for _ in range(4):
        (found,) = torch.autograd.grad(y, x, retain_graph=True)
        torch.testing.assert_close(found, x.detach().exp())
    assert replayed(fresh) == 1
    torch.autograd.grad(y, x)
    with pytest.raises(AutogradError, match="freed"):
        torch.autograd.grad(y, x)


def test_nodes_beyond_what_was_asked_for_keep_their_values(fresh):
    x = numbers(3).requires_grad_()
    for _ in range(4):
        y = x.exp()
        z = y.sin().sum()
        torch.autograd.grad(z, y)
        y.sum().backward()  # the first node of the graph is still whole
    assert replayed(fresh)


def test_hooks_are_called_every_time(fresh):
    x, calls = numbers(3).requires_grad_(), []
    for _ in range(4):
        (x * 2).sum().backward()
    x.register_hook(lambda g: calls.append(1))
    for _ in range(3):
        (x * 2).sum().backward()
    for _ in range(3):
        y = x.detach().requires_grad_() * 2
        y.register_hook(lambda g: calls.append(2))
        y.sum().backward()
    assert calls == [1] * 3 + [2] * 3


def test_versions_of_gradients_go_on(fresh):
    x = numbers(3).requires_grad_()
    x.grad = torch.zeros(3)
    for step in range(5):
        (x * x).sum().backward()
        assert x.grad._version == 2 * (step + 1)


def test_the_users_cotangent_stays_the_users(fresh):
    x = numbers(3).requires_grad_()
    for _ in range(4):
        x.grad, ct = None, numbers(3, seed=1)
        (x + 1).backward(ct)
        x.grad.add_(5)
        torch.testing.assert_close(ct, numbers(3, seed=1))


def test_what_is_not_ours_is_left_to_the_engine(fresh):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = numbers(3).requires_grad_()
    for _ in range(4):
        Twice.apply(x).sum().backward()
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
            y = x.exp().sum()
        y.backward()
    assert not replayed(fresh)


def test_large_passes_are_not_held(fresh, monkeypatch):
    monkeypatch.setattr(engine, "LARGE", 16)
    x = numbers(30).requires_grad_()
    for _ in range(4):
        x.exp().sum().backward()
    assert not replayed(fresh) and NEVER in fresh.known.values()


def test_ever_new_outlines_are_soon_not_looked_at(fresh):
    x = numbers(3).requires_grad_()
    looked = 0
    for step in range(200):
        looked += not fresh.idle
        (x * float(step)).sum().backward()
    assert looked < 60 and len(fresh.known) <= replay.KEPT


def test_threads(fresh):
    wrong = []

    def steps(seed):
        w = numbers(8, 8, seed=seed).requires_grad_()
        for k in range(40):
            w.grad = None
            x = numbers(4, 8, seed=k)
            ((x @ w) ** 2).sum().backward()
            want = 2 * x.T @ (x @ w.detach())
            if not torch.allclose(w.grad, want, rtol=1e-4, atol=1e-4):
                wrong.append((seed, k))

    threads = [threading.Thread(target=steps, args=(s,)) for s in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
