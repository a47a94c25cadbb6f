"""A gradient that was computed from an operand stays connected to it, if only by zeros."""

import pytest

import flambeau as torch

F = torch.nn.functional


@pytest.mark.parametrize(
    "f",
    [
        torch.relu,
        lambda x: F.leaky_relu(x, 0.1),
        lambda x: F.threshold(x, 0.1, 20.0),
        lambda x: F.hardtanh(x),
        lambda x: F.avg_pool2d(x, 2),
        lambda x: F.max_pool2d(x, 2),
    ],
    ids=["relu", "leaky_relu", "threshold", "hardtanh", "avg_pool", "max_pool"],
)
def test_second_derivatives_are_zero(f):
    x = torch.randn(1, 1, 4, 4, requires_grad=True)
    (g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    assert g.requires_grad
    (gg,) = torch.autograd.grad(g.sum(), x)
    assert torch.equal(gg, torch.zeros_like(x))


def test_the_gradient_of_a_bias_is_connected():
    x = torch.randn(1, 2, 5, 5)
    w, b = torch.randn(3, 2, 3, 3, requires_grad=True), torch.zeros(3, requires_grad=True)
    (g,) = torch.autograd.grad(F.conv2d(x, w, b).sum(), b, create_graph=True)
    assert g.requires_grad and not torch.autograd.grad(g.sum(), b, allow_unused=True)[0].any()


@pytest.mark.parametrize("f", [lambda x: x.sum(), lambda x: (x + 1).mean(), lambda x: x.t().sum()])
def test_linear_functions_have_no_second_derivative(f):
    x = torch.randn(3, 3, requires_grad=True)
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    assert not g.requires_grad


def test_a_penalty_compiles():
    def f(x):
        (g,) = torch.autograd.grad(torch.relu(x).square().sum(), x, create_graph=True)
        return g.square().sum() + torch.relu(x).sum()

    x = torch.randn(5, requires_grad=True)
    want = torch.autograd.grad(f(x), x)[0]
    got = torch.autograd.grad(torch.compile(f)(x), x)[0]
    torch.testing.assert_close(got, want)
