"""Gradients of a tensor that is cut up: pieces that tile it are joined, all others are added."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.autograd import pieces

CUTS = {
    "split": lambda y: [p * (k + 1) for k, p in enumerate(y.split(2, 1))],
    "uneven split": lambda y: [p * (k + 1) for k, p in enumerate(y.split([1, 3, 2], 1))],
    "unbind": lambda y: [p * (k + 1) for k, p in enumerate(y.unbind(0))],
    "rows in a loop": lambda y: [y[k] * (k + 1) for k in range(4)],
    "some rows": lambda y: [y[k] * (k + 1) for k in (1, 3)],
    "overlapping": lambda y: [y[:, :-1] * 2, y[:, 1:] * 3],
    "twice the same": lambda y: [y[1] * 2, y[1] * 3],
    "with gaps": lambda y: [y[:, 0:2], y[:, 4:6] * 2],
    "two dimensions": lambda y: [y[0:2] * 2, y[2:4] * 3, y[:, 0:3] * 4, y[:, 3:6] * 5],
    "a step": lambda y: [y[:, ::2] * 2, y[:, 1::2] * 3],
    "empty": lambda y: [y[0:0], y * 2, y[:, 0:3], y[:, 3:6], y[:, 6:6]],
    "with the whole": lambda y: [y[:2] * 2, y * 3, y[2:] * 4],
}


def expected(cut):
    """d sum(squares of all parts) / dy by differences, in float64; exact for squares."""
    def value(a):
        return sum(float((p * p).sum()) for p in cut(torch.tensor(a)))

    y = np.arange(24.0).reshape(4, 6) / 10
    grad = np.zeros_like(y)
    for place in np.ndindex(y.shape):
        up, down = y.copy(), y.copy()
        up[place] += 0.5
        down[place] -= 0.5
        grad[place] = value(up) - value(down)
    return grad


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
def test_gradients_are_right_however_a_tensor_is_cut(cut):
    x = (torch.arange(24, dtype=torch.float64).reshape(4, 6) / 10).requires_grad_()
    sum((p * p).sum() for p in cut(x * 1)).backward()
    np.testing.assert_allclose(x.grad.numpy(), expected(cut), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
def test_second_derivatives_and_wanted_gradients(cut):
    x = (torch.arange(24, dtype=torch.float64).reshape(4, 6) / 10).requires_grad_()
    y = x * 1
    (first,) = torch.autograd.grad(sum((p * p).sum() for p in cut(y)), y, create_graph=True)
    np.testing.assert_allclose(first.detach().numpy(), expected(cut), rtol=1e-12, atol=1e-12)
    first.sum().backward()
    weights = torch.ones(4, 6, dtype=torch.float64)
    np.testing.assert_allclose(x.grad.numpy(), 2 * twice(cut, weights), rtol=1e-12)


def twice(cut, ones):
    """How often, and with which squared factor, each element is used."""
    seen = ones.clone().requires_grad_()
    sum((p * p).sum() for p in cut(seen * 1)).backward()
    return seen.grad.numpy() / 2


def test_pieces_that_tile_are_one_cat(monkeypatch):
    def never(*operands, **params):
        raise AssertionError("pieces that tile need no zeros")

    monkeypatch.setattr(pieces, "slice_scatter_zeros", never)
    x = torch.randn(4, 6, requires_grad=True)
    a, b, c = (x * 2).chunk(3, 1)
    (a * b * c).sum().backward()
    assert torch.allclose(x.grad[:, :2], b * c * 2)


def test_hooks_see_whole_gradients():
    seen = []
    x = torch.randn(4, 6, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(g.clone()) or g * 10)
    parts = y.unbind(0)
    parts[0].grad_fn.register_hook(lambda grads, outs: seen.append(grads[0].clone()))
    sum(p.sum() for p in parts).backward()
    assert [tuple(s.shape) for s in seen] == [(4, 6), (4, 6)]
    assert (x.grad == 20).all()
