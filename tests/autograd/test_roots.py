"""Several roots of one backward pass, one of which lies beyond another."""

import flambeau as torch


def test_gradients_of_gradients_that_share_history():
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
    gx, gy = torch.autograd.grad((x - y).exp().sum(), (x, y), create_graph=True)
    weights = torch.tensor([2.0, 3.0], dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    second, = torch.autograd.grad([gx, gy], x, weights)  # gy is made from gx
    expected = (x - y).exp() * (weights[0] - weights[1])
    assert torch.allclose(second, expected)
