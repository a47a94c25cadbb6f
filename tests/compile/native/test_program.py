"""Native programs: what is one native call, what leaves it, and what happens when it fails."""

import os
import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau.compile.native import native_runner
from flambeau.compile.native.epilogues import Activated
from flambeau.compile.native.followers import Followed
from flambeau.compile.native.segments import steps
from flambeau.graph.interpret import Untouched

F = torch.nn.functional


def captured(function, *args):
    """(the native plan of a function's only graph, the function's result)."""
    plans = []

    def keep(graph, examples):
        plans.append(native_runner(graph, examples))
        return plans[-1]

    result = torch.compile(function, backend=keep)(*args)
    assert len(plans) == 1
    return plans[0], result


def same(a, b):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def python_steps(plan):
    return [text for text, _ in plan.program.lines if "execute" in text]


def test_a_training_step_is_one_native_call():
    net = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 5))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(8, 20), torch.randint(0, 5, (8,))

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step()
    plan, _ = captured(step)
    assert len(plan.program.stretches) == 1
    assert not python_steps(plan)


def test_views_need_no_python():
    def f(x, w):
        y = (x * 2).reshape(6, 4).t()
        return (y @ w).view(2, 2, 6).transpose(0, 2).sum(1)

    x, w = torch.randn(2, 3, 4), torch.randn(6, 6)
    plan, got = captured(f, x, w)
    assert not python_steps(plan)
    same(got, f(x, w))


def test_results_outlive_the_next_call():
    def f(x):
        y = x.exp()
        z = y * 2
        order = z.argsort(-1)
        return y, y.t()[1:], z.cumsum(0), order, order.view(-1)[2:], z.sort(-1)[0]

    compiled = torch.compile(f)
    inputs = [torch.randn(5, 7) for _ in range(4)]
    kept = [compiled(x) for x in inputs]
    for x, results in zip(inputs, kept):
        for got, want in zip(results, f(x)):
            same(got, want)


def test_results_do_not_share_memory_with_each_other():
    compiled = torch.compile(lambda x: (x + 1, x + 2, (x + 3).view(-1)))
    first, second = compiled(torch.ones(70)), compiled(torch.ones(70))
    for t in first:
        t.fill_(9.0)
    for k, t in enumerate(second):
        same(t, torch.full((70,), 2.0 + k))


def test_outputs_that_alias_inputs():
    def f(x):
        x.mul_(2)
        return x, x[1:], x.t(), x.view(-1)[3]

    x = torch.randn(4, 4)
    twin = x.clone()
    got, want = torch.compile(f)(x), f(twin)
    for g, w in zip(got, want):
        same(g, w)
        g.add_(1)
        w.add_(1)
    same(x, twin)


def test_chains_of_writes_through_views():
    def f(x, y):
        a = x * 1
        a[0] += y[0]
        a.t()[1].mul_(3)
        b = a.view(-1)
        b[2:5] = 7.0
        y.view(-1)[1:3].copy_(b[:2])
        y[1].add_(a[2])
        return a, b, a.sum() + y.sum()

    for _ in range(2):
        x, y = torch.randn(4, 5), torch.randn(4, 5)
        p, q = x.clone(), y.clone()
        got, want = torch.compile(f)(x, y), f(p, q)
        for g, w in zip((*got, x, y), (*want, p, q)):
            same(g, w)


def test_writes_bump_versions():
    def f(x):
        x.add_(1)
        return x * 2

    compiled = torch.compile(f)
    x = torch.randn(3)
    compiled(x)
    before = x._version
    compiled(x)
    assert x._version > before


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1,), ()])
def test_sizes_of_zero_and_one(shape):
    def f(x):
        return (x * 2 + 1).relu().sum(), x.exp(), x.view(-1) + 1

    x = torch.randn(shape)
    for got, want in zip(torch.compile(f)(x), f(x)):
        same(got, want)


def test_python_steps_read_the_arena_and_make_their_own_memory():
    def f(x):
        y = x * 3
        inverse = torch.linalg.inv(y @ y.t() + torch.eye(4) * 5)
        return (inverse + y.sum()).exp().topk(2, -1)[0] * 2, inverse.t() * 1

    compiled = torch.compile(f)
    for _ in range(3):
        x = torch.randn(4, 6) / 4
        for got, want in zip(compiled(x), f(x)):
            torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4)


def test_numbers_reach_kernels():
    def f(x, rate):
        return x * rate + (rate - 1) ** 2

    compiled = torch.compile(f, dynamic=True)
    x = torch.randn(3, 3)
    for rate in (0.5, 0.25, 3.0, -1.0):
        same(compiled(x, rate), f(x, rate))


def test_one_program_on_several_threads_at_once():
    def f(x, w):
        return ((x @ w).relu() @ w.t()).softmax(-1) * 2

    w = torch.randn(90, 110)
    plan, _ = captured(f, torch.randn(80, 90), w)
    inputs = [torch.randn(80, 90) for _ in range(4)]
    wanted = [f(x, w) for x in inputs]
    wrong = []

    def work(x, want):
        for _ in range(20):
            (got,) = plan(*ordered(plan, x, w))
            if not torch.allclose(got, want, rtol=1e-4, atol=1e-5):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, wanted)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def ordered(plan, *tensors):
    """The tensors in the order of the graph's inputs, told apart by shape."""
    return [next(t for t in tensors if t.shape == v.spec.shape) for v in plan.graph.inputs]


def test_a_bad_index_before_anything_is_written_leaves_no_trace():
    def f(table, i, x):
        y = F.embedding(i, table) * 2
        x.add_(1)
        return y

    table, x = torch.randn(5, 3), torch.zeros(2)
    good, bad = torch.tensor([0, 4]), torch.tensor([0, 5])
    compiled = torch.compile(f)
    compiled(table, good, x)
    with pytest.raises(IndexError):
        compiled(table, bad, x)
    same(x, torch.ones(2))
    same(compiled(table, good, x), table[good] * 2)


def test_a_bad_index_after_a_write_is_not_run_again():
    def f(table, i, x):
        x.add_(1)
        return (F.embedding(i, table).relu() @ table.t()).sum(), table.sum()

    table, x = torch.randn(5, 3), torch.zeros(2)
    compiled = torch.compile(f)
    compiled(table, torch.tensor([0, 4]), x)
    with pytest.raises(IndexError, match="index"):
        compiled(table, torch.tensor([0, 7]), x)
    same(x, torch.full((2,), 2.0))


def test_a_program_says_when_nothing_was_touched():
    table = torch.randn(5, 3)
    plan, _ = captured(lambda i: F.embedding(i, table) * 2, torch.tensor([1, 2]))
    with pytest.raises(Untouched):
        plan(*[torch.tensor([9, 9]) if v.spec.dtype is torch.int64 else table
               for v in plan.graph.inputs])


def test_inputs_of_another_kind_run_on_eager_operations():
    plan, _ = captured(lambda x: (x * 2).relu() + 1, torch.randn(4, 5))
    for x in (torch.randn(5, 4).t(), torch.randn(2, 2), torch.randn(4, 5, dtype=torch.float64),
              torch.empty(4, 5, device="meta")):
        (got,) = plan(x)
        assert (got.shape, got.dtype, got.device) == (x.shape, x.dtype, x.device)


def test_arrays_of_a_subclass_are_read(tmp_path):
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=(4, 5))
    mapped[:] = 3
    plan, _ = captured(lambda x: x * 2 + 1, torch.randn(4, 5))
    (got,) = plan(torch.from_numpy(mapped))
    same(got, torch.full((4, 5), 7.0))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_goes_on():
    def f(x):
        return (x @ x).relu().sum(0)

    compiled = torch.compile(f)
    x = torch.randn(64, 64)
    want = compiled(x)
    child = os.fork()
    if not child:
        os._exit(0 if torch.allclose(compiled(x), want) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    same(compiled(x), want)


def test_memory_is_shared_by_what_is_never_alive_together():
    def f(x):
        for _ in range(12):
            x = (x @ x).softmax(-1)
        return x

    plan, _ = captured(f, torch.randn(64, 64))
    assert plan.program.memory.nbytes <= 4 * 64 * 64 * 4


@pytest.mark.parametrize("bias", [True, False])
def test_an_activation_is_applied_by_the_product_before_it(bias):
    net = torch.nn.Linear(70, 90, bias=bias)
    conv = torch.nn.Conv2d(3, 16, 3, bias=bias)

    def f(x, image):
        return net(x).relu() * 2, conv(image).relu(), net(x * 3).exp()

    args = torch.randn(20, 70), torch.randn(2, 3, 20, 20)
    with torch.no_grad():
        plan, got = captured(f, *args)
        for g, w in zip(got, f(*args)):
            same(g, w)
    pairs = [p.name for p in steps(plan.graph) if isinstance(p, Activated)]
    assert pairs == ["conv_relu"][:bias]
    assert together(plan) == [["linear", "relu", "mul"], ["linear", "exp"]]
    assert not python_steps(plan)


def together(plan):
    """The operations that each product's kernel does, where it does several."""
    return [[e.name for e in p.equations] for p in steps(plan.graph) if isinstance(p, Followed)]


def test_a_product_that_somebody_sees_is_not_activated():
    net = torch.nn.Linear(70, 90)

    def f(x):
        y = net(x)
        return y.relu(), y[1:]

    with torch.no_grad():
        x = torch.randn(20, 70)
        for g, w in zip(torch.compile(f)(x), f(x)):
            same(g, w)
