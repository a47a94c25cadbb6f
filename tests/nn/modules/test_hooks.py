"""Hooks around calls and gradients."""

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn.modules import module as module_hooks
from flambeau.nn.modules.hooks import HookRegistration


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(fb.tensor(2.0))

    def forward(self, x, add=0):
        return x * self.weight + add


def test_forward_pre_hook_replaces_arguments():
    module = Scale()
    handle = module.register_forward_pre_hook(lambda m, args: args[0] + 1)
    assert module(fb.tensor(1.0)) == 4
    handle.remove()
    assert module(fb.tensor(1.0)) == 2
    module.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"add": kwargs["add"] * 10}), with_kwargs=True
    )
    assert module(fb.tensor(1.0), add=1) == 12
    module.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="None or \\(args, kwargs\\)"):
        module(fb.tensor(1.0), add=1)


def test_forward_hook_replaces_the_output_and_keeps_order():
    module, seen = Scale(), []
    module.register_forward_hook(lambda m, args, out: seen.append("a"))
    module.register_forward_hook(lambda m, args, out: seen.append("b"), prepend=True)
    module.register_forward_hook(lambda m, args, kwargs, out: out + len(kwargs), with_kwargs=True)
    assert module(fb.tensor(1.0), add=1) == 4
    assert seen == ["b", "a"]


def test_always_called_hook_sees_the_exception_pass():
    module, seen = Scale(), []
    module.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    module.register_forward_hook(lambda m, args, out: seen.append("not called"))
    with pytest.raises(TypeError):
        module()
    assert seen == [None]


def test_a_handle_is_a_context_manager():
    module = Scale()
    with module.register_forward_hook(lambda m, args, out: out * 0):
        assert module(fb.tensor(1.0)) == 0
    assert module(fb.tensor(1.0)) == 2


def test_full_backward_hook_sees_and_replaces_gradients():
    module, seen = Scale(), []
    module.register_full_backward_hook(
        lambda m, grad_in, grad_out: (seen.append((grad_in, grad_out)), (grad_in[0] * 10,))[1]
    )
    x = fb.tensor(3.0, requires_grad=True)
    (module(x) * 5).backward()
    ((grad_in,), (grad_out,)) = seen[0]
    assert grad_in == 10 and grad_out == 5
    assert x.grad == 100 and module.weight.grad == 15


def test_full_backward_pre_hook_replaces_the_output_gradient():
    module = Scale()
    module.register_full_backward_pre_hook(lambda m, grad_out: (grad_out[0] * 2,))
    x = fb.tensor(3.0, requires_grad=True)
    module(x).backward()
    assert x.grad == 4 and module.weight.grad == 6


def test_full_backward_hook_runs_where_no_input_needs_a_gradient():
    module, seen = Scale(), []
    module.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append(grad_in))
    module(fb.tensor(3.0)).backward()
    assert seen == [(None,)] and module.weight.grad == 3


def test_full_backward_hook_with_several_inputs_and_outputs():
    class Two(nn.Module):
        def forward(self, x, y, n):
            return x * n, y * 2

    module, seen = Two(), []
    module.register_full_backward_hook(lambda m, *grads: seen.append(grads))
    x, y = fb.tensor(1.0, requires_grad=True), fb.tensor(1.0)
    one, two = module(x, y, 3)
    (one + two).backward()
    [((gx, gy, gn), (g1, g2))] = seen
    assert gx == 3 and gn is None and g1 == 1 and (gy is None or gy == 2)
    assert g2 is None or g2 == 1


def test_non_full_backward_hook_and_no_mixing():
    module, seen = Scale(), []
    module.register_backward_hook(lambda m, grad_in, grad_out: seen.append(grad_out))
    x = fb.tensor(3.0, requires_grad=True)
    module(x).backward()
    assert len(seen) == 1
    with pytest.raises(RuntimeError, match="cannot be mixed"):
        module.register_full_backward_hook(lambda *a: None)


@pytest.fixture
def no_global_hooks():
    yield
    HookRegistration._intercepted = False


@pytest.mark.usefixtures("no_global_hooks")
def test_global_hooks():
    module, seen = nn.Sequential(Scale()), []
    handles = [
        module_hooks.register_module_forward_pre_hook(lambda m, args: seen.append("pre")),
        module_hooks.register_module_forward_hook(lambda m, args, out: seen.append("post")),
        module_hooks.register_module_full_backward_hook(lambda m, gi, go: seen.append("back")),
    ]
    module(fb.tensor(1.0, requires_grad=True)).backward()
    assert seen == ["pre", "pre", "post", "post", "back", "back"]
    for handle in handles:
        handle.remove()
    seen.clear()
    module(fb.tensor(1.0))
    assert not seen


def test_registration_hooks():
    seen = []
    handles = [
        module_hooks.register_module_parameter_registration_hook(lambda m, n, p: seen.append(n)),
        module_hooks.register_module_buffer_registration_hook(lambda m, n, b: seen.append(n)),
        module_hooks.register_module_module_registration_hook(lambda m, n, c: seen.append(n)),
    ]
    module = Scale()
    module.register_buffer("b", None)
    module.child = nn.ReLU()
    for handle in handles:
        handle.remove()
    module.other = nn.ReLU()
    assert seen == ["weight", "b", "child"]


def test_hooks_on_one_module_leave_others_alone():
    module = Scale()
    module.register_forward_hook(lambda *a: None)
    assert module._intercepted and not Scale()._intercepted
