"""Custom operations, checkpoints, hooks, modes, anomaly mode."""

import pytest

import flambeau as torch
from flambeau.autograd import Function
from flambeau.utils.checkpoint import checkpoint, checkpoint_sequential


class Cube(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x ** 3 * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * ctx.scale * grad, None


def test_a_custom_function_differentiates_twice():
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: Cube.apply(t, 2.0), (x,))
    assert torch.autograd.gradgradcheck(lambda t: Cube.apply(t, 2.0), (x,))
    assert "CubeBackward" in repr(Cube.apply(x, 1.0).grad_fn)


def test_a_context_takes_any_attribute():
    class Holder(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.function = ctx.dirty = ctx.released = "the user's own"
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            assert ctx.function == "the user's own"
            return grad

    x = torch.ones(2, requires_grad=True)
    Holder.apply(x).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_setup_context_and_non_differentiable_outputs():
    class Split(Function):
        @staticmethod
        def forward(x):
            return x * 2, (x > 0).to(x.dtype)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx, grad, unused):
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    y, sign = Split.apply(x)
    assert y.requires_grad and not sign.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_mark_dirty_gives_the_input_itself():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    y = x * 1.0
    assert Double.apply(y) is y
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_wrong_number_of_gradients_is_named():
    class Short(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return grad

    x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="number of gradients"):
        Short.apply(x, y).sum().backward()


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_draws_the_same_noise_again(reentrant):
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Tanh(),
                              torch.nn.Linear(8, 1))
    x = torch.randn(5, 4, requires_grad=True)
    found = []
    for run in (net, lambda t: checkpoint(net, t, use_reentrant=reentrant),
                lambda t: checkpoint_sequential(net, 2, t, use_reentrant=reentrant)):
        torch.manual_seed(0)
        net.zero_grad()
        x.grad = None
        run(x).sum().backward()
        found.append((x.grad.tolist(), net[0].weight.grad.tolist()))
    assert found[0] == found[1] == found[2]


def test_hooks_see_and_replace_gradients():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
    handle = x.register_hook(lambda g: g + 1)
    y.retain_grad()
    (y * y).sum().backward(retain_graph=True)
    assert seen == [[4, 8]] and x.grad.tolist() == [81, 161]
    handle.remove()
    x.grad = None
    (y * 0 + y).sum().backward()
    assert x.grad.tolist() == [20, 20]


def test_hooks_after_accumulation():
    x = torch.ones(1, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 3).sum().backward()
    assert seen == [3]


def test_modes_nest_and_decorate():
    x = torch.ones(1, requires_grad=True)

    @torch.no_grad()
    def quiet():
        with torch.enable_grad():
            inside = (x * 2).requires_grad
        return inside, (x * 2).requires_grad

    assert quiet() == (True, False) and torch.is_grad_enabled()

    @torch.no_grad()
    def generator():
        yield torch.is_grad_enabled()

    steps = generator()
    assert next(steps) is False and torch.is_grad_enabled()
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    with torch.inference_mode():
        assert not (x * 2).requires_grad


def test_anomaly_mode_names_the_first_nan():
    x = torch.tensor([-1.0], requires_grad=True)
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="log"):
        x.log()
    y = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="nan"):
        (y.sqrt() * 0).sum().backward()


def test_saved_tensor_hooks_pack_and_unpack():
    x = torch.tensor([2.0], requires_grad=True)
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(
            lambda t: packed.append(t.item()) or len(packed) - 1,
            lambda i: torch.tensor([packed[i]])):
        y = x * x
    y.sum().backward()
    assert x.grad.item() == 4 and packed == [2, 2]


def test_hooks_of_a_leaf_see_the_sum_of_all_its_uses_once():
    x = torch.ones(2, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g) or g.clamp(max=2.5))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.clone()))
    (x * x + x).sum().backward()
    assert [s.tolist() for s in seen] == [[3, 3], [2.5, 2.5]]
    x.grad.zero_()
    assert seen[0].tolist() == [3, 3]
    assert torch.autograd.grad((x * x + x).sum(), x)[0].tolist() == [2.5, 2.5]
    assert len(seen) == 3  # grad() accumulates nothing


def test_hooks_of_a_leaf_used_only_as_the_root():
    x = torch.ones((), requires_grad=True)
    x.register_hook(lambda g: g * 3)
    x.backward()
    assert x.grad.item() == 3


def test_hooks_of_a_leaf_whose_other_uses_give_no_gradient():
    x = torch.ones(2, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    y = x * 2
    (torch.heaviside(y, y).detach() + y + (x > 0) * x.detach()).sum().backward()
    assert seen == [[2, 2]]


def test_hooks_of_the_node_that_accumulates():
    x = torch.ones(2, requires_grad=True)
    node = x.expand_as(x).grad_fn.next_functions[0][0]
    seen = []
    node.register_prehook(lambda grads: (grads[0] * 2,))
    node.register_hook(lambda inputs, outputs: seen.append((inputs, outputs[0].tolist())))
    (x * x).sum().backward()
    assert seen == [((), [4, 4])] and x.grad.tolist() == [4, 4]


def test_retained_gradients_come_after_all_hooks_and_follow_writes():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.sum().backward()
    assert y.grad.tolist() == [5, 5]
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y[0].mul_(4)
    (y * 7).sum().backward()
    assert y.grad.tolist() == [7, 7]


@pytest.mark.parametrize("result, error", [(3.0, TypeError), (torch.ones(3), RuntimeError)])
def test_hooks_must_return_gradients(result, error):
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: result)
    with pytest.raises(error, match="hook must return"):
        (x * 2).sum().backward()


def test_values_that_hooks_packed_differentiate_twice():
    def cube(x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            return (x ** 3).sum()

    def replayed(x):
        return torch.utils.checkpoint.checkpoint(lambda t: (t ** 3).sum(), x, use_reentrant=False)

    for function in (cube, replayed):
        x = torch.tensor([2.0], requires_grad=True)
        for values in (x, x * 1.0):
            first, = torch.autograd.grad(function(values), x, create_graph=True)
            second, = torch.autograd.grad(first.sum(), x)
            assert (first.item(), second.item()) == (12, 12)


@pytest.mark.parametrize("gradient, expected", [
    (lambda g: g[:2], None), (lambda g: g.sum(), None), (lambda g: g.expand(3, 4), [3.0] * 4)])
def test_gradients_of_custom_functions_must_fit(gradient, expected):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return gradient(g)

    x = torch.ones(4, requires_grad=True)
    loss = Double.apply(x).sum()
    if expected is None:
        with pytest.raises(RuntimeError, match="invalid gradient at index 0"):
            loss.backward()
    else:
        loss.backward()
        assert x.grad.tolist() == expected


def test_only_tensors_are_saved_for_backward():
    class Saving(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None, 3)

    with pytest.raises(TypeError, match="argument 2 is of type int"):
        Saving.apply(torch.ones(1))
