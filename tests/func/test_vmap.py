"""Randomness, errors, memory and state of vmap."""

import threading

import pytest

import flambeau as fb
from flambeau.core.context import state
from flambeau.func import functional_call, grad, jacrev, vjp, vmap
from flambeau.func.batching import BatchedTensor


def test_slices_look_like_tensors():
    seen = []

    def look(x):
        seen.append((type(x), x.shape, x.ndim, x.dtype, len(x), x.numel(), x.stride()))
        return x

    vmap(look)(fb.zeros(5, 2, 3))
    assert seen == [(BatchedTensor, (2, 3), 2, fb.float32, 2, 6, (3, 1))]


def test_slices_show_all_values():
    seen = []
    vmap(lambda x: (seen.append(repr(x)), x)[1])(fb.zeros(2))
    assert seen == ["BatchedTensor(depth=1, value=tensor([0., 0.]))"]


def test_random_numbers_same_or_different():
    x = fb.zeros(4)
    fb.manual_seed(0)
    same = vmap(lambda x: x + fb.rand(3), randomness="same")(x)
    different = vmap(lambda x: x + fb.rand(3), randomness="different")(x)
    assert all(same[0].tolist() == row for row in same.tolist())
    assert len({tuple(row) for row in different.tolist()}) == 4
    with pytest.raises(RuntimeError, match="randomness='same' or 'different'; got operation="):
        vmap(lambda x: x + fb.rand(3))(x)


def test_different_dropout_masks():
    x = fb.ones(50, 20)
    fb.manual_seed(0)
    out = vmap(fb.nn.functional.dropout, randomness="different")(x)
    assert len({tuple(row) for row in out.tolist()}) == 50


def test_random_in_place():
    fb.manual_seed(0)
    out = vmap(lambda x: x.clone().uniform_(), randomness="different")(fb.zeros(3, 2))
    assert len({tuple(row) for row in out.tolist()}) == 3


def test_no_slices():
    out = vmap(lambda x: (x.sin(), x.sum(), x.median()))(fb.zeros(0, 3))
    assert [o.shape for o in out] == [(0, 3), (0,), (0,)]


def test_values_cannot_be_asked_for():
    for ask in (lambda x: x.item(), bool, lambda x: x.sum().numpy()):
        with pytest.raises((RuntimeError, TypeError)):
            vmap(lambda x: (ask(x), x)[1])(fb.ones(3))  # noqa: B023


def test_the_context_is_left_after_an_error():
    with pytest.raises(ZeroDivisionError):
        vmap(lambda x: 1 / 0)(fb.ones(3))
    assert state.top is None


def test_threads_have_their_own_levels():
    results = []

    def work(k):
        results.append(vmap(lambda x: x * k)(fb.ones(4)).tolist())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == [[float(k)] * 4 for k in range(4)]


def test_gradients_flow_from_outside_through_vmap():
    x = fb.ones(3, requires_grad=True)
    vmap(lambda y: y * y)(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_in_place_inside_reaches_mapped_arguments():
    x = fb.zeros(3, 2)
    vmap(lambda row, k: row.add_(k))(x, fb.arange(3.0))
    assert x.tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]


def test_in_place_with_history():
    def f(x):
        y = x * 1
        y.mul_(x)
        y[0] = 7.0
        return y.sum()

    assert vmap(grad(f))(fb.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[0.0, 4.0], [0.0, 8.0]]


def test_in_place_refuses_a_narrower_dtype():
    with pytest.raises(RuntimeError, match="must fit the target's dtype"):
        vmap(lambda x, y: x.clone().add_(y))(fb.zeros(3, dtype=fb.int64), fb.zeros(3))


def test_unbatched_targets_are_refused():
    with pytest.raises(RuntimeError, match=r"not batched cannot be overwritten.*operation=add"):
        vmap(lambda y: fb.zeros(2).add_(y))(fb.ones(3, 2))


def test_detach_and_no_grad_inside_grad():
    def f(x):
        return (x.detach() * x).sum()

    assert vmap(grad(f))(fb.tensor([[1.0], [3.0]])).tolist() == [[1.0], [3.0]]


def test_results_of_grad_are_plain():
    x = fb.ones(3)
    assert not grad(lambda y: (y * y).sum())(x).requires_grad
    out, pull = vjp(lambda y: y * 2, x)
    assert not out.requires_grad
    assert not pull(x)[0].requires_grad


def test_results_stay_connected_to_parameters():
    w = fb.tensor([2.0], requires_grad=True)
    g = grad(lambda x: (w * x * x).sum())(fb.tensor([3.0]))
    g.sum().backward()
    assert w.grad.tolist() == [6.0]


def test_grad_works_under_no_grad():
    with fb.no_grad():
        g = grad(lambda x: (x**2).sum())(fb.tensor([3.0]))
        j = jacrev(lambda x: x**2)(fb.tensor([3.0]))
    assert g.tolist() == [6.0]
    assert j.tolist() == [[6.0]]
    assert not g.requires_grad


def test_arguments_keep_their_gradient_state():
    x = fb.ones(2)
    grad(lambda y: y.sum())(x)
    assert not x.requires_grad
    assert x.grad is None


def test_pull_may_release_the_graph():
    _, pull = vjp(lambda x: x.exp(), fb.ones(2))
    pull(fb.ones(2), retain_graph=False)
    with pytest.raises(RuntimeError, match="freed"):
        pull(fb.ones(2))


class Cube(fb.autograd.Function):
    """Its backward would be wrong on a whole batch: it sums over the first dimension."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x**3 * k, x.sum(0)

    @staticmethod
    def backward(ctx, ct, _):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * ct * ctx.k + ct.sum(0) * 0, None


def test_custom_functions_run_slice_by_slice():
    x = fb.tensor([[1.0, 2.0], [3.0, 4.0]])
    cubes, sums = vmap(lambda y: Cube.apply(y, 2.0))(x)
    assert cubes.tolist() == (x**3 * 2).tolist()
    assert sums.tolist() == [3.0, 7.0]
    g = vmap(grad(lambda y: Cube.apply(y, 2.0)[0].sum()))(x)
    assert g.tolist() == (6 * x**2).tolist()
    nested = vmap(vmap(lambda y: Cube.apply(y.unsqueeze(0), 1.0)[0]))(x)
    assert nested.squeeze(2).tolist() == (x**3).tolist()


class Scaled(fb.autograd.Function):
    """Has a batching rule of its own."""

    @staticmethod
    def forward(x, k):
        return x * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, ct):
        x, k = ctx.saved_tensors
        return ct * k, ct * x

    @staticmethod
    def vmap(info, in_dims, x, k):
        assert info.batch_size == 3
        assert in_dims == (0, None)
        return Scaled.apply(x, k).T, 1


def test_custom_functions_with_a_rule_of_their_own():
    x = fb.arange(6.0).reshape(3, 2)
    out = vmap(lambda y: Scaled.apply(y, fb.tensor(2.0)))(x)
    assert out.tolist() == (x * 2).tolist()


def test_functional_call_replaces_and_restores():
    model = fb.nn.Linear(2, 1)
    weight = model.weight
    out = functional_call(model, {"weight": fb.ones(1, 2), "bias": fb.zeros(1)}, fb.ones(1, 2))
    assert out.tolist() == [[2.0]]
    assert model.weight is weight
    with pytest.raises((TypeError, AttributeError)):
        functional_call(model, {"weight": fb.ones(1, 2)}, "no tensor")
    assert model.weight is weight


def test_functional_call_ties_shared_weights():
    class Tied(fb.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = fb.nn.Parameter(fb.ones(1))
            self.b = self.a

        def forward(self):
            return self.a + self.b

    model = Tied()
    assert functional_call(model, {"a": fb.tensor([5.0])}).tolist() == [10.0]
    assert functional_call(model, {"a": fb.tensor([5.0])}, tie_weights=False).tolist() == [6.0]
    with pytest.raises(ValueError, match="must get the same replacement"):
        functional_call(model, {"a": fb.ones(1), "b": fb.zeros(1)})


def test_functional_call_names():
    model = fb.nn.Linear(2, 1)
    with pytest.raises(RuntimeError, match=r"missing=\['bias'\]"):
        functional_call(model, {"weight": fb.ones(1, 2)}, fb.ones(2), strict=True)
    with pytest.raises(AttributeError, match=r"unknown=\['nope'\]"):
        functional_call(model, {"nope": fb.ones(1)}, fb.ones(2))
    with pytest.raises(ValueError, match=r"twice=\['bias'\]"):
        functional_call(model, ({"bias": fb.ones(1)}, {"bias": fb.ones(1)}), fb.ones(2))


def test_functional_call_hands_back_updated_buffers():
    norm = fb.nn.BatchNorm1d(1)
    buffers = {"running_mean": fb.zeros(1), "running_var": fb.ones(1)}
    functional_call(norm, buffers, fb.tensor([[2.0], [4.0]]))
    assert buffers["running_mean"].tolist() == pytest.approx([0.3])
    assert norm.running_mean.tolist() == [0.0]


ERRORS = {
    "sizes": (
        lambda: vmap(lambda x, y: x)(fb.ones(3), fb.ones(2)),
        ValueError,
        r"mapped dimensions must have one size; got sizes=\[2, 3\]",
    ),
    "result": (
        lambda: vmap(lambda x: 3)(fb.ones(2)),
        ValueError,
        "the function must return tensors; got type=int",
    ),
    "argument": (
        lambda: vmap(lambda x: x)(3),
        ValueError,
        "a mapped argument must be a Tensor; got type=int. Give it the in_dim None",
    ),
    "nothing": (lambda: vmap(lambda: 0)(), ValueError, "at least one argument"),
    "chunk": (lambda: vmap(lambda x: x, chunk_size=0), ValueError, "chunk_size must be"),
    "scalar": (
        lambda: grad(lambda x: x)(fb.ones(3)),
        RuntimeError,
        r"must return one scalar tensor; got returned=\(3,\). Reduce it",
    ),
    "tree": (lambda: grad(lambda x: x)(3), TypeError, "must be trees of tensors; got got=int"),
    "aux": (
        lambda: grad(lambda x: x.sum(), has_aux=True)(fb.ones(2)),
        RuntimeError,
        r"must return \(output, aux\)",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error_texts(name):
    act, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        act()
