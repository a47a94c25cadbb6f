"""What a product's kernel does besides, and when it must not."""

import pytest

import flambeau as torch
from tests.compile.native.test_program import captured, python_steps, same, together

F = torch.nn.functional


def run(function, *args):
    with torch.no_grad():
        plan, got = captured(function, *args)
        same(got, function(*args))
        same(plan(*args)[0] if len(plan.graph.inputs) == len(args) else got, got)
    assert not python_steps(plan)
    return together(plan)


def x_w(rows=37, inner=50, columns=45):
    return torch.randn(rows, inner), torch.randn(inner, columns)


def test_a_training_step_with_gelu_and_a_residual():
    first, second = torch.nn.Linear(20, 48), torch.nn.Linear(48, 20, bias=False)
    x = torch.randn(4, 8, 20, requires_grad=True)
    parameters = [*first.parameters(), *second.parameters()]

    def step():
        loss = (x + second(F.gelu(first(x)))).square().mean()
        return loss, *torch.autograd.grad(loss, [x, *parameters])

    plan, got = captured(step)
    for g, w in zip(got, step()):
        same(g, w)
    # the second product's chain goes on as far as the mean
    assert together(plan)[0] == ["linear", "gelu"]
    assert together(plan)[1][:2] == ["linear", "add"]
    assert ["matmul", "gelu_backward"] in together(plan)


def test_a_chain_joins_with_operands_of_every_shape():
    x, w = x_w()
    row, full, one = torch.randn(45), torch.randn(37, 45), torch.randn(1)

    def f(x, w):
        return ((x @ w + row) * full - one).sigmoid() * 2.5

    assert run(f, x, w) == [["matmul", "add", "mul", "sub", "sigmoid", "mul"]]


@pytest.mark.parametrize("shape", [(2, 5, 7, 11), (1, 1, 1, 3), (3, 1, 2, 8)])
def test_a_linear_layer_over_several_leading_dimensions(shape):
    net = torch.nn.Linear(shape[-1], 13)
    other = torch.randn(*shape[:-1], 13)
    assert run(lambda x: net(x).tanh() * other, torch.randn(shape)) == [["linear", "tanh", "mul"]]


def test_both_the_product_and_what_follows_may_be_read():
    x, w = x_w(40, 50, 50)

    def f(x, w):
        y = x @ w
        return (y.exp() @ w) + y

    assert run(f, x, w * 0.01) == [["matmul", "exp"], ["matmul", "add"]]


def test_an_operand_that_comes_later_is_not_read():
    x, w = x_w(40, 40, 40)

    def f(x, w):
        y = x @ w
        return y * (x.sum(0) + w)  # the sum is made behind the product

    run(f, x, w)


def test_a_write_in_between_keeps_its_order():
    x, w = x_w(40, 40, 40)
    state = torch.randn(40, 40)

    def f(x, w):
        y = x @ w
        state.add_(1)
        return y * state

    before = state.clone()
    with torch.no_grad():
        got = torch.compile(f)(x, w)
    same(got, (x @ w) * (before + 1))
    same(state, before + 1)


def test_a_write_to_the_product_is_seen():
    x, w = x_w()

    def f(x, w):
        y = x @ w
        z = y * 2
        y.add_(1)
        return y.relu() + z

    run(f, x, w)


def test_views_that_only_reshape_are_followed_and_others_are_not():
    x, w = x_w(6, 10, 20)

    def f(x, w):
        return (x @ w).view(2, 3, 20).relu().view(6, 4, 5) * 2

    def g(x, w):
        return (x @ w).t().relu()

    assert run(f, x, w) == [["matmul", "relu", "mul"]]
    assert run(g, x, w) == []


def test_a_dtype_of_its_own_does_not_join():
    x, w = x_w()
    run(lambda x, w: torch.where((x @ w) > 0, 1.5, -1.5), x, w)
    run(lambda x, w: (x @ w).double() * 2, x, w)


def test_batches_of_products_keep_their_own_kernel():
    assert run(lambda x, y: (x @ y).relu(), torch.randn(4, 5, 6), torch.randn(4, 6, 7)) == []


def test_broadcast_over_rows_is_refused():
    x, w = x_w(6, 10, 20)
    assert run(lambda x, w: (x @ w) * x[:, :1], x, w) == []


def test_empty_and_single_products():
    run(lambda x, w: (x @ w).relu(), torch.randn(1, 1), torch.randn(1, 1))
    run(lambda x, w: (x @ w).relu(), torch.randn(1, 9), torch.randn(9, 1))
    with torch.no_grad():
        got = torch.compile(lambda x, w: (x @ w).relu())(torch.randn(0, 3), torch.randn(3, 4))
    assert got.shape == (0, 4)


def test_float64():
    x, w = x_w()
    assert run(lambda x, w: (x @ w).exp() * 0.5, x.double() * 0.1, w.double()) == [
        ["matmul", "exp", "mul"]]
