"""The native backend: which equations share a kernel, and that sharing changes nothing."""

import pytest

import flambeau as torch
from flambeau.compile import backends
from flambeau.compile.native import native_runner
from flambeau.compile.native.segments import Segment, steps

F = torch.nn.functional


def graphs_of(function, *args):
    """The graphs that a call captures."""
    found = []

    def keep(graph, examples):
        found.append(graph)
        return native_runner(graph, examples)

    result = torch.compile(function, backend=keep)(*args)
    return found, result


def parts_of(function, *args):
    (graph,), result = graphs_of(function, *args)
    parts = [[e.name for e in p.equations] if isinstance(p, Segment) else p.name
             for p in steps(graph)]
    return parts, result


def close(a, b):
    assert torch.allclose(a, b, rtol=1e-5, atol=1e-6), (a, b)


def test_the_native_backend_is_the_default():
    assert backends.BACKENDS["native"] is native_runner


def test_a_chain_is_one_kernel_and_a_product_stands_alone():
    x, w = torch.randn(64, 64), torch.randn(64, 64)

    def f(x, w):
        return ((x * 2 + 1).relu() @ w).softmax(-1) * 3

    parts, got = parts_of(f, x, w)
    assert parts == [["mul", "add", "relu"], "matmul", ["softmax", "mul"]]
    close(got, f(x, w))


def test_views_of_computed_values_stay_inside():
    x = torch.randn(6, 8)

    def f(x):
        y = x.exp()
        return y.t()[1:, ::2] + y[::2, 1:].t() * 2 + y.sum(0).unsqueeze(1)[1:]

    parts, got = parts_of(f, x)
    assert len(parts) == 1
    close(got, f(x))


def test_results_that_are_views_come_out_as_views():
    x = torch.randn(5, 4)

    def f(x):
        y = x * 2
        return y, y.t(), y[1]

    a, b, c = torch.compile(f)(x)
    close(a, x * 2)
    close(b, (x * 2).t())
    close(c, (x * 2)[1])


@pytest.mark.parametrize("size", [3, 200])
def test_writes_keep_their_order(size):
    def f(x, y):
        before = x.sum()
        x.mul_(2)
        middle = x + y
        x.add_(middle)
        y.copy_(x)
        x[0] = 7.0
        return before, middle, x.sum(), y * 1

    for _ in range(2):
        a, b = torch.randn(size, size), torch.randn(size, size)
        p, q = a.clone(), b.clone()
        got, want = torch.compile(f)(a, b), f(p, q)
        for g, w in zip((*got, a, b), (*want, p, q)):
            close(g, w)


def test_a_training_step_updates_everything_as_eager_does():
    def trained(compiled):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.LayerNorm(16), torch.nn.GELU(),
                                  torch.nn.Linear(16, 3))
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
        x, y = torch.randn(20, 6), torch.randint(0, 3, (20,))

        def step():
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            return loss

        run = torch.compile(step) if compiled else step
        losses = [run().item() for _ in range(6)]
        return losses, [p.detach().clone() for p in net.parameters()]

    (got, mine), (want, theirs) = trained(True), trained(False)
    assert got == pytest.approx(want, rel=1e-5)
    for g, w in zip(mine, theirs):
        torch.testing.assert_close(g, w, rtol=1e-4, atol=1e-5)


def test_other_sizes_do_not_meet_the_kernels_of_these():
    f = torch.compile(lambda x: (x * 2).relu().sum(0) + 1, dynamic=True)
    for n in (4, 9, 1, 0, 4):
        x = torch.randn(n, 3)
        close(f(x), (x * 2).relu().sum(0) + 1)


def test_a_plan_serves_inputs_that_its_kernels_do_not_fit():
    def f(x):
        return (x * 2 + 1).exp()

    runs = []

    def keep(graph, examples):
        runs.append(native_runner(graph, examples))
        return runs[-1]

    torch.compile(f, backend=keep)(torch.randn(4, 5))
    for x in (torch.randn(4, 5), torch.randn(3, 2), torch.randn(5, 4).t(),
              torch.randn(4, 5, dtype=torch.float64)):
        (got,) = runs[0](x)
        assert got.dtype is x.dtype
        close(got, f(x))


@pytest.mark.parametrize("size", [1, 7])
def test_gradients_of_views_read_views_where_they_are_guarded(size):
    def gradients(x):
        leaf = x.detach().clone().requires_grad_()
        whole = leaf.clone()
        last, middle = whole[..., -1], whole[:, None][1:].transpose(0, 1)
        (whole.tanh().sum() + last.tanh().sum() + middle.exp().sum()).backward()
        return leaf.grad

    x = torch.linspace(-1, 1, 3 * size).reshape(3, size)
    torch.testing.assert_close(torch.compile(gradients, mode="sync")(x), gradients(x))


def test_a_copy_of_a_copy_that_is_overwritten_keeps_its_values():
    def copies(x):
        a = x.clone().clone()
        b = a.clone()
        return a.mul_(2), b

    x = torch.tensor([0.5, 1.0])
    for got, wanted in zip(torch.compile(copies, mode="sync")(x), copies(x)):
        torch.testing.assert_close(got, wanted)
