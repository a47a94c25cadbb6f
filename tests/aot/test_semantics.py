"""A compiled forward pass is one node of the user's autograd graph, and nobody can tell."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.aot.node import CompiledFunctionBackward
from flambeau.utils.checkpoint import checkpoint

F = nn.functional


def leaf(*shape, seed=0):
    torch.manual_seed(seed)
    return torch.randn(*shape, requires_grad=True)


def close(a, b, **tolerance):
    torch.testing.assert_close(a, b, **(tolerance or dict(rtol=1e-4, atol=1e-5)))


def is_joint(t):
    return isinstance(t.grad_fn, CompiledFunctionBackward)


def agree(f, *inputs, backward=None, joint=True):
    """Compiled and plain `f` give the same outputs and the same gradients."""
    runs = []
    for run in (f, torch.compile(f)):
        mine = [x.detach().clone().requires_grad_(x.requires_grad) for x in inputs]
        torch.manual_seed(3)
        outs = run(*mine)
        outs = outs if isinstance(outs, tuple) else (outs,)
        live = [o for o in outs if o.requires_grad]
        assert run is f or not joint or any(map(is_joint, live))
        total = sum((o * torch.arange(1.0, o.numel() + 1).view(o.shape)).sum() for o in live)
        (backward or (lambda t: t.backward()))(total)
        runs.append((outs, [x.grad for x in mine], mine))
    (outs, grads, after), (outs_c, grads_c, after_c) = runs
    for a, b in zip((*outs, *after), (*outs_c, *after_c)):
        assert a.requires_grad == b.requires_grad and a.dtype is b.dtype
        close(b.detach(), a.detach())
    for a, b in zip(grads, grads_c):
        assert (a is None) is (b is None)
        if a is not None:
            assert a.stride() == b.stride()
            close(b, a)


def test_a_chain_with_a_product():
    agree(lambda x, w: (x @ w).relu().softmax(-1) * 3, leaf(4, 5), leaf(5, 6, seed=1))


def test_gradients_accumulate():
    x = leaf(4)
    f = torch.compile(lambda x: x.exp() * 2)
    for _ in range(3):
        f(x).sum().backward()
    close(x.grad, 6 * x.detach().exp())


def test_several_outputs_and_an_integer_one():
    def f(x):
        values, places = x.sort()
        return values * 2, places, x.sin()

    agree(f, leaf(6))


def test_an_unused_output_has_no_cotangent():
    def f(x, y):
        return x.exp(), y.log()

    x, y = leaf(3), leaf(3, seed=1).detach().abs().requires_grad_()
    a, b = torch.compile(f)(x, y)
    a.sum().backward()
    assert y.grad is None
    close(x.grad, x.detach().exp())


def test_zero_times_infinity_does_not_reach_through_an_unused_output():
    def f(x):
        y = x * 2
        return y, y.log()

    x = torch.zeros(2, requires_grad=True)
    torch.compile(f)(x)[0].sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_outputs_that_are_inputs_or_views():
    def f(x):
        y = x * 2
        return x, x.view(-1), y, y[0], y.t().detach()

    x = leaf(2, 3)
    same, flat, y, row, cut = torch.compile(f)(x)
    assert same is x and flat._base is x and row._base is y and is_joint(y)
    assert not cut.requires_grad and cut.data_ptr() == y.data_ptr()
    (flat.sum() + (y * 3).sum() + row.sum()).backward()
    assert x.grad.tolist() == [[9, 9, 9], [7, 7, 7]]


def test_writing_to_a_view_that_came_out():
    def f(x):
        y = x * 2
        return y, y[0]

    x = leaf(2, 3)
    y, row = torch.compile(f)(x)
    row.mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [[10] * 3, [2] * 3]


def test_writes_inside():
    def f(x):
        y = x * 2
        y[0] = x[1]
        y.add_(1).mul_(x)
        z = y.t()
        z.mul_(2)
        return y

    agree(f, leaf(3, 3))


def test_running_statistics_are_updated_once():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU())
    other = nn.Sequential(nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU())
    other.load_state_dict(net.state_dict())
    f = torch.compile(other)
    x = torch.randn(3, 2, 6, 6)
    for _ in range(3):
        net(x).square().sum().backward()
        out = f(x)
        assert is_joint(out)
        out.square().sum().backward()
    for a, b in zip((*net.parameters(), *net.buffers()), (*other.parameters(), *other.buffers())):
        close(b, a)
        if a.grad is not None:
            close(b.grad, a.grad)


def test_an_input_that_is_written_and_read():
    def f(x, state):
        out = x.exp() + state
        state.add_(1)
        return out, (x * state).exp()

    agree(f, leaf(3), torch.ones(3))


def test_an_input_that_gets_a_history_by_a_write():
    def f(x, state):
        state.mul_(x)
        return state * 2

    agree(f, leaf(3), torch.ones(3), joint=False)


def test_double_backward():
    def f(x):
        return x.sin() * x

    x = leaf(4)
    out = torch.compile(f)(x)
    assert is_joint(out)
    (g,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    d = x.detach()
    close(gg, 2 * d.cos() - d * d.sin())


def test_double_backward_with_state_and_draws():
    """The replay draws what the forward pass drew, and does not write to buffers again."""

    def f(x, w, seen):
        seen.add_(1)
        return F.dropout(x.exp(), 0.5) * w * seen

    def run(g):
        torch.manual_seed(5)
        x, w, seen = leaf(50), leaf(50, seed=1), torch.ones(())
        torch.manual_seed(5)
        out = g(x, w, seen)
        after = torch.rand(3)
        first = torch.autograd.grad(out.square().sum(), (x, w), create_graph=True)
        second = torch.autograd.grad(first[0].sum() + first[1].sum(), (x, w))
        return [out, after, *first, *second, seen]

    for a, b in zip(run(torch.compile(f)), run(f)):
        close(a.detach(), b.detach())


def test_func_transforms_over_compiled():
    f = torch.compile(lambda x: (x.sin() * x).sum())
    x = leaf(4).detach()
    close(torch.func.grad(f)(x), x.sin() + x * x.cos())
    hessian = torch.func.jacrev(torch.func.grad(f))(x)
    close(hessian, torch.diag(2 * x.cos() - x * x.sin()))


def test_second_backward_raises_as_eager_does():
    x = leaf(3)
    out = torch.compile(lambda x: x.exp())(x).sum()
    out.backward()
    with pytest.raises(RuntimeError, match="freed"):
        out.backward()
    out = torch.compile(lambda x: x + 1)(x).sum()
    out.backward()
    out.backward()


def test_retain_graph():
    x = leaf(3)
    out = torch.compile(lambda x: x.exp())(x).sum()
    out.backward(retain_graph=True)
    out.backward()
    close(x.grad, 2 * x.detach().exp())


def test_outputs_with_separate_histories_are_freed_separately():
    x, y = leaf(3), leaf(3, seed=1)
    a, b = torch.compile(lambda x, y: (x.exp(), y.exp()))(x, y)
    a.sum().backward()
    b.sum().backward()
    close(y.grad, y.detach().exp())
    with pytest.raises(RuntimeError, match="freed"):
        a.sum().backward()


@pytest.mark.parametrize("what", ["input", "output"])
def test_a_write_to_what_was_kept_raises(what):
    x, w = leaf(3), torch.ones(3)
    out = torch.compile(lambda x, w: (x * w).exp())(x, w)
    (w if what == "input" else out.detach()).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_a_write_to_what_eager_execution_does_not_keep_is_harmless():
    x = leaf(3)
    before = x.detach().clone()
    y = torch.compile(lambda x: ((x + 1).exp(), x * 2))(x)
    with torch.no_grad():
        x.zero_()
        y[1].zero_()
    (y[0].sum() + y[1].sum()).backward()
    close(x.grad, (before + 1).exp() + 2)


def test_saved_tensors_hooks_see_what_is_kept():
    x = leaf(3)
    seen = []

    def pack(t):
        seen.append(t.clone())
        return len(seen) - 1

    f = torch.compile(lambda x: x.exp().sin())
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda k: seen[k]):
        out = f(x)
    assert seen
    out.sum().backward()
    d = x.detach()
    close(x.grad, d.exp() * d.exp().cos())


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_around_compiled(reentrant):
    x, w = leaf(3, 4), leaf(4, 4, seed=1)
    f = torch.compile(lambda x: F.dropout((x @ w).tanh(), 0.5))
    torch.manual_seed(1)
    out = checkpoint(f, x, use_reentrant=reentrant)
    out.sum().backward()
    again = [x.grad, w.grad]
    x.grad = w.grad = None
    torch.manual_seed(1)
    F.dropout((x @ w).tanh(), 0.5).sum().backward()
    for a, b in zip(again, (x.grad, w.grad)):
        close(a, b)


def test_checkpoint_inside_compiled():
    w = leaf(4, 4, seed=1)
    agree(
        lambda x: checkpoint(lambda y: (y @ w).tanh(), x, use_reentrant=False) * 2,
        leaf(3, 4),
        joint=False,
    )


def test_regions_without_gradients():
    def f(x):
        y = x.exp()
        with torch.no_grad():
            z = y * 2
        with torch.set_grad_enabled(False):
            z = z + x
        return y * z.detach() + z

    agree(f, leaf(4))


def test_under_no_grad_nothing_is_kept():
    f = torch.compile(lambda x: x.exp() * 2)
    with torch.no_grad():
        assert f(leaf(3)).grad_fn is None


def test_autocast():
    def f(x, w):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return (x @ w).float().sigmoid()

    agree(f, leaf(8, 8), leaf(8, 8, seed=1))


def test_hooks_on_results_and_leaves():
    x, seen = leaf(3), []
    x.register_hook(lambda g: seen.append(("leaf", g.clone())) or g * 2)
    f = torch.compile(lambda w: w.exp())
    mid = x * 1
    out = f(mid)
    out.register_hook(lambda g: seen.append(("out", g.clone())) or g * 10)
    out.retain_grad()
    out.sum().backward()
    assert [name for name, _ in seen] == ["out", "leaf"]
    close(x.grad, 20 * x.detach().exp())
    close(out.grad, torch.full((3,), 10.0))


def test_post_accumulate_hooks():
    x, seen = leaf(3), []
    f = torch.compile(lambda w: w.exp())
    f(x).sum().backward()
    x.grad = None
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    f(x).sum().backward()
    close(seen[0], x.detach().exp())


def test_requires_grad_changes_between_calls():
    f = torch.compile(lambda x, w: (x * w).exp())
    x, w = leaf(3), leaf(3, seed=1)
    for wants_x, wants_w in [(True, True), (False, True), (True, False), (False, False)]:
        x.requires_grad_(wants_x)
        w.requires_grad_(wants_w)
        x.grad = w.grad = None
        out = f(x, w)
        assert out.requires_grad is (wants_x or wants_w)
        if out.requires_grad:
            out.sum().backward()
        assert (x.grad is not None, w.grad is not None) == (wants_x, wants_w)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(()).expand(3, 4),
        lambda: torch.randn(4, 3).t(),
        lambda: torch.randn(3, 8)[:, ::2],
        lambda: torch.randn(3, 4, dtype=torch.float64),
        lambda: torch.zeros(3, 4),
    ],
    ids=["expanded", "transposed", "strided", "double", "zeros"],
)
def test_cotangents_of_any_layout(make):
    x = leaf(3, 4)
    out = torch.compile(lambda x: x.exp())(x)
    ct = make()
    out.backward(ct)
    close(x.grad, (ct * x.detach().exp()).float())


def test_a_scalar_result():
    agree(lambda x: x.exp().sum(), leaf(3, 4))


def test_an_input_with_a_history():
    x = leaf(3)
    f = torch.compile(lambda y: y.exp())
    out = f(f(x * 2).sin())
    out.sum().backward()
    y = leaf(3)
    (y * 2).exp().sin().exp().sum().backward()
    close(x.grad, y.grad)


def test_an_input_that_is_a_view_of_a_leaf():
    x = leaf(4, 4)
    f = torch.compile(lambda y: y.exp().sum())
    f(x[1]).backward()
    expected = torch.zeros(4, 4)
    expected[1] = x.detach()[1].exp()
    close(x.grad, expected)


def test_the_same_tensor_twice():
    x = leaf(3)
    f = torch.compile(lambda a, b: a * b)
    f(x, x).sum().backward()
    close(x.grad, 2 * x.detach())


def test_a_leaf_made_inside():
    def f(x):
        w = torch.ones(3, requires_grad=True)
        return w * x, w

    y, w = torch.compile(f)(torch.arange(3.0))
    y.sum().backward()
    assert w.grad.tolist() == [0, 1, 2]


def test_sizes_that_change():
    w = leaf(4, 4)
    f = torch.compile(lambda x: (x @ w).relu())
    for n in (3, 5, 5, 7, 2, 1):
        x = leaf(n, 4)
        w.grad = None
        f(x).sum().backward()
        got, w.grad = w.grad, None
        (x @ w).relu().sum().backward()
        close(got, w.grad)


def test_numbers_that_change():
    f = torch.compile(lambda x, k: (x * k).exp() if k > 0 else x)
    for k in (1.5, 2.5, 3.5):
        x = leaf(3)
        f(x, k).sum().backward()
        close(x.grad, k * (k * x.detach()).exp())


def test_gradients_of_part_of_the_inputs():
    x, y = leaf(3), leaf(3, seed=1)
    out = torch.compile(lambda x, y: (x * y).exp())(x, y).sum()
    (g,) = torch.autograd.grad(out, x)
    close(g, y.detach() * (x * y).detach().exp())
    assert y.grad is None


def test_anomaly_mode_names_the_operation():
    f = torch.compile(lambda x: (x - x).sqrt() * 0)
    x = leaf(2)
    f(x)
    with torch.autograd.detect_anomaly(check_nan=True), pytest.raises(RuntimeError, match="nan"):
        f(x).sum().backward()


def test_gradients_agree_with_finite_differences():
    f = torch.compile(lambda x, w: ((x @ w).tanh() * x.sum()).logsumexp(0))
    torch.manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    w = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(f, (x, w))
    assert torch.autograd.gradgradcheck(f, (x, w))


def test_threads_share_a_program():
    import threading

    f = torch.compile(lambda x: x.exp().sin())
    f(leaf(5))
    results = {}

    def work(k):
        x = leaf(5, seed=k)
        f(x).sum().backward()
        d = x.detach()
        results[k] = (x.grad, d.exp() * d.exp().cos())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for got, want in results.values():
        close(got, want)
