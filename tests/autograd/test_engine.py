"""The backward pass: order, accumulation, depth, errors."""

import gc
import threading
import weakref

import pytest

import flambeau as torch


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def test_a_value_used_twice_gets_the_sum():
    x = leaf(2.0, 3.0)
    y = x * x
    (y + y * x).sum().backward()
    assert x.grad.tolist() == [2 * 2 + 3 * 4, 2 * 3 + 3 * 9]


def test_gradients_accumulate_over_calls():
    x = leaf(1.0)
    for _ in range(3):
        (x * 2).sum().backward()
    assert x.grad.item() == 6


def test_a_chain_of_100_000_operations_neither_recurses_forwards_nor_backwards_nor_when_freed():
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1.0
    y.sum().backward()
    assert x.grad.item() == 1
    del y


def test_two_leaves_never_share_their_gradients_memory():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).backward(torch.ones(2, dtype=torch.float64))
    x.grad.mul_(10)
    assert y.grad.tolist() == [1, 1]


def test_the_users_cotangent_is_not_taken_over():
    x, ct = leaf(1.0, 2.0), torch.ones(2, dtype=torch.float64)
    (x + 0.0).backward(ct)
    x.grad.mul_(10)
    assert ct.tolist() == [1, 1]


def test_a_second_backward_says_what_to_do():
    x = leaf(1.0)
    y = (x * x).exp().sum()
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()


def test_retain_graph_allows_a_second_backward():
    x = leaf(3.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 12


def test_only_scalars_start_by_themselves():
    with pytest.raises(RuntimeError, match="scalar"):
        (leaf(1.0, 2.0) * 2).backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones(()).backward()


def test_grad_of_intermediate_tensors_and_unused_inputs():
    x, z = leaf(2.0), leaf(1.0)
    y = x * 3
    w = (y * y).sum()
    dy, dx = torch.autograd.grad(w, (y, x), retain_graph=True)
    assert (dy.item(), dx.item()) == (12, 36) and x.grad is None
    with pytest.raises(RuntimeError, match="allow_unused"):
        torch.autograd.grad(w, z, retain_graph=True)
    assert torch.autograd.grad(w, (x, z), allow_unused=True)[1] is None


def test_higher_orders():
    x = leaf(2.0)
    g = torch.autograd.grad((x ** 4).sum(), x, create_graph=True)[0]
    h = torch.autograd.grad(g.sum(), x, create_graph=True)[0]
    assert (g.item(), h.item()) == (32, 48)
    assert torch.autograd.grad(h.sum(), x)[0].item() == 48


def test_backward_into_some_inputs_only():
    x, y = leaf(1.0), leaf(2.0)
    (x * y).sum().backward(inputs=[x])
    assert x.grad.item() == 2 and y.grad is None


def test_a_step_leaves_no_cycle_behind():
    """Intermediates go when the last reference goes, without the cycle collector."""
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        y = (x * x).exp()
        z = y.sigmoid()
        watched = [weakref.ref(t) for t in (y, z)]
        z.sum().backward()
        del y, z
        assert [w() for w in watched] == [None, None]
    finally:
        gc.enable()


def test_threads_have_graphs_and_modes_of_their_own():
    results = {}

    def work(k):
        x = leaf(float(k))
        with torch.no_grad():
            quiet = (x * 2).requires_grad
        (x ** 3).sum().backward()
        results[k] = (quiet, x.grad.item())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {k: (False, 3.0 * k * k) for k in range(8)}


def test_broadcast_and_promotion_are_undone():
    x = torch.ones(3, 1, requires_grad=True)
    y = torch.ones(4, dtype=torch.float64, requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.shape == (3, 1) and x.grad.dtype is torch.float32
    assert x.grad.reshape(-1).tolist() == [4, 4, 4] and y.grad.tolist() == [3] * 4


def test_a_gradient_of_another_shape_is_refused():
    from flambeau.autograd.engine import summed_to

    assert summed_to(torch.ones(2, 3, 4), (3, 1)).tolist() == [[8.0]] * 3
    for shape in ((3, 5), (2, 3, 4, 1), (2, 1, 2)):
        with pytest.raises(RuntimeError, match=r"backward: a gradient must have the shape .*"):
            summed_to(torch.ones(2, 3, 4), shape)


@pytest.mark.parametrize("fold", ["sum", "mean", "prod", "amax", "amin"])
@pytest.mark.parametrize("compiled", [False, True])
def test_what_a_scatter_reads_of_a_larger_source_has_gradients_of_that_shape(fold, compiled):
    def step(x, index):
        out = torch.zeros(5, 4, dtype=x.dtype).scatter_reduce(1, index, x, fold, include_self=False)
        (out * out).sum().backward()
        return x.grad

    x = torch.arange(1.0, 31.0, dtype=torch.float64).reshape(5, 6).requires_grad_()
    index = torch.tensor([[0, 1, 0], [3, 3, 2]])
    found = (torch.compile(step, backend="native") if compiled else step)(x, index)
    cut = x.detach()[:2, :3].clone().requires_grad_()
    out = torch.zeros(5, 4, dtype=x.dtype).scatter_reduce(1, index, cut, fold, include_self=False)
    expected = torch.zeros(5, 6, dtype=x.dtype)
    expected[:2, :3] = torch.autograd.grad((out * out).sum(), cut)[0]
    assert found.shape == (5, 6) and torch.equal(found, expected)
