"""What is kept for the backward pass and what is computed again; the flow behind it; tracing."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau import nn
from flambeau.aot import trace
from flambeau.aot.flow import Network, cheapest_cut
from flambeau.aot.program import JointProgram
from flambeau.compile.native import native_runner
from flambeau.graph import run
from flambeau.tensor.tensor import alias

F = nn.functional


def joint_of(f, *args):
    """The joint program of a traced function."""
    graph, inputs = trace(f, *args)
    return JointProgram(graph, inputs, native_runner, set(range(len(graph.outputs))))


def names(graph):
    return [e.name for e in graph.equations]


def halves(f, *args):
    program = joint_of(f, *args)
    (backward,) = program.variants.values()
    return program.forward, backward.graph


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


def test_a_cheap_chain_is_computed_again():
    """Of y, 2 y and sin(2 y) two are kept, and the product is repeated."""

    def f(x):
        y = x.exp()
        return (y * 2).sin() * y

    forward, backward = halves(f, leaf(8))
    made = {v: e.name for e in forward.graph.equations for v in e.outputs}
    assert [made[v] for v in forward.kept] == ["exp", "sin"]
    assert names(backward).count("sin") == 0


def test_products_and_draws_are_never_computed_again():
    def f(x, w):
        return F.dropout(((x @ w) + 1).tanh() @ w, 0.5).sin()

    _, backward = halves(f, leaf(4, 4), leaf(4, 4))
    assert names(backward).count("matmul") == 4 and "dropout_mask" not in names(backward)


def test_no_more_is_kept_than_autograd_keeps():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 8), nn.GELU()
    )
    program = joint_of(net, torch.randn(2, 2, 6, 6))
    saved = sum(v.spec.nbytes for v in program.partition.read)
    assert sum(v.spec.nbytes for v in program.forward.kept) <= saved


def test_memory_that_users_reach_is_kept_only_if_autograd_keeps_it():
    def f(x):
        y = x * 2  # autograd keeps its sine's operand, y, but nothing of x
        return (y + 1).sin()

    forward, _ = halves(f, leaf(5))
    assert not set(forward.kept) & set(forward.graph.inputs)


def test_nothing_is_computed_again_from_memory_that_is_overwritten():
    def f(x, state):
        y = x + state
        state.add_(1)
        return y.exp().sin() * y

    x, state = leaf(4), torch.ones(4)
    want = torch.autograd.grad(f(x, state.clone()).sum(), x)[0]
    got = torch.autograd.grad(torch.compile(f)(x, state).sum(), x)[0]
    torch.testing.assert_close(got, want)


def test_layer_statistics_are_not_cloned_for_a_replay():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    assert joint_of(net, torch.randn(5, 3)).copied == set()


# The cut -------------------------------------------------------------------------------------


def cut_value(edges, side):
    return sum(room for a, b, room in edges if a not in side and b in side)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)), max_size=14))
@settings(deadline=None, max_examples=150)
def test_no_cut_is_cheaper(edges):
    network = Network()
    network.node(0), network.node(5)
    for a, b, room in edges:
        network.edge(a, b, room)
    side = cheapest_cut(network, 0, 5)
    if 0 in side:
        pytest.fail("the sink's side holds the source")
    inner = range(1, 5)
    sides = ({5, *chosen} for n in range(5) for chosen in itertools.combinations(inner, n))
    assert cut_value(edges, side) == min(cut_value(edges, s) for s in sides)


# Tracing -------------------------------------------------------------------------------------


def test_trace_computes_and_changes_nothing():
    net = nn.Linear(3, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.5)
    x = torch.randn(4, 3)
    before = net.weight.detach().clone()

    def step(x):
        opt.zero_grad()
        loss = net(x).square().sum()
        loss.backward()
        opt.step()
        return loss

    graph, inputs = trace(step, x)
    assert net.weight.grad is None and torch.equal(net.weight.detach(), before)
    want = net(x).square().sum().detach()
    outs = run(graph, inputs, alias, lambda t: None)
    (loss,) = [t for t in outs if not t.shape]
    torch.testing.assert_close(loss, want)
    assert not torch.equal(net.weight.detach(), before)


# Random graphs -------------------------------------------------------------------------------

UNARY = ["sin", "exp", "tanh", "relu", "sigmoid", "neg", "square", "t"]
BINARY = ["add", "mul", "sub", "maximum", "matmul"]
STEP = st.tuples(st.sampled_from(UNARY + BINARY), st.integers(0, 9), st.integers(0, 9))


def built(steps, shown):
    """A function of two square matrices that makes the steps and returns some of the values."""

    def f(x, y):
        values = [x, y]
        for name, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            made = getattr(torch, name)(a, b) if name in BINARY else getattr(torch, name)(a)
            values.append(made.clamp(-3, 3) if name != "t" else made)
        return tuple(values[k % len(values)] for k in shown)

    return f


@given(
    st.lists(STEP, min_size=3, max_size=10), st.lists(st.integers(0, 11), min_size=1, max_size=3)
)
@settings(deadline=None, max_examples=25)
def test_random_graphs(steps, shown):
    f = built(steps, shown)
    runs = []
    for run_ in (f, torch.compile(f)):
        torch.manual_seed(0)
        x = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
        y = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
        outs = run_(x, y)
        sum((o * (k + 1)).sum() for k, o in enumerate(outs)).backward()
        runs.append([*(o.detach() for o in outs), x.grad, y.grad])
    for want, got in zip(*runs):
        assert (want is None) is (got is None)
        if want is not None:
            torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9)
