"""Whole training steps: what scripts do around a loss, each of which must be one graph.

A program is as in `programs.py`; `SETTLED` is how often it may be captured until nothing changes
any more: without the optimizer's state, with it, and once more for each branch it takes.
"""

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn, optim
from tests.compile.programs import program, x

SETTLED = {}


def training(make=None, captures=2):
    """A program of the corpus that is captured at most so many times."""
    if make is None:
        return lambda made: training(made, captures)
    SETTLED[make.__name__] = captures
    return program(make)


def seeded(make, seed=0):
    torch.manual_seed(seed)
    return make()


def small_net():
    return seeded(lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)))


def batches(*shape, count=4):
    return [(x(*shape, seed=k),) for k in range(count)]


def state_of(*modules):
    """Copies of all parameters and buffers."""
    return lambda: [
        t.detach().clone() for m in modules for t in (*m.parameters(), *m.buffers())
    ]


def squared(out):
    return out.pow(2).mean()


def trained(net, calls=None, loss=squared, optimizer=None, observe=None):
    """The step `zero_grad, loss, backward, step` of a network as a program."""
    update = (optimizer or (lambda p: optim.SGD(p, lr=0.1)))(list(net.parameters()))

    def step(*inputs):
        update.zero_grad()
        value = loss(net(*inputs))
        value.backward()
        update.step()
        return value.detach()

    return step, calls or batches(3, 4), observe or state_of(net)


# Operations of one's own -------------------------------------------------------------------------


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, k):
        ctx.save_for_backward(a)
        ctx.k = k
        return k * a**3

    @staticmethod
    def backward(ctx, ct):
        (a,) = ctx.saved_tensors
        return (ct * 3 * ctx.k * a**2 if ctx.needs_input_grad[0] else None), None


class ScaledApart(torch.autograd.Function):
    @staticmethod
    def forward(a, k):
        return k * a**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, ct):
        (a,) = ctx.saved_tensors
        return ct * 3 * ctx.k * a**2, None


class DoubledInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        a.mul_(2)
        ctx.mark_dirty(a)
        return a

    @staticmethod
    def backward(ctx, ct):
        return ct * 2


class Rounded(torch.autograd.Function):
    """Straight through: the gradient passes as if nothing had been rounded."""

    @staticmethod
    def forward(ctx, a):
        return a.round()

    @staticmethod
    def backward(ctx, ct):
        return ct


class ProductAndSign(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, a, b):
        ctx.set_materialize_grads(False)
        positive = a > 0
        ctx.mark_non_differentiable(positive)
        ctx.save_for_backward(a, b)
        return a * b, positive

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    @torch.autograd.function.once_differentiable
    def backward(ctx, ct, _):
        a, b = ctx.saved_tensors
        return ct * b, ct * a


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, weight):
        ctx.weight = weight
        return a.view_as(a)

    @staticmethod
    def backward(ctx, ct):
        return ct.neg() * ctx.weight, None


class Applied(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.function = function

    def forward(self, a):
        return self.function(self.linear(a))


def applying(name, function):
    def make():
        return trained(seeded(lambda: Applied(function)))

    make.__name__ = f"step_with_{name}"
    training(make)


applying("custom_function", lambda h: Scaled.apply(h, 2.0))
applying("custom_function_and_setup_context", lambda h: ScaledApart.apply(h, 2.0))
applying("custom_function_in_place", lambda h: DoubledInPlace.apply(h * 1))
applying("straight_through_estimator", lambda h: Rounded.apply(h * 3))
applying("custom_function_of_two_results", lambda h: ProductAndSign.apply(h, h)[0])
applying("gradient_reversal", lambda h: Reversed.apply(h, 0.5))


# Networks ----------------------------------------------------------------------------------------


@training
def attention_step():
    net = seeded(lambda: nn.MultiheadAttention(8, 2, batch_first=True))
    calls = [(a, a, a) for (a,) in batches(2, 3, 8)]
    return trained(net, calls, lambda out: squared(out[0]))


@training
def transformer_step():
    net = seeded(lambda: nn.Transformer(8, 2, 1, 1, 16, dropout=0.1, batch_first=True))
    optimizer = optim.SGD(net.parameters(), lr=0.1)

    def step(source, target):
        optimizer.zero_grad()
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        loss = squared(net(source, target, tgt_mask=mask, tgt_is_causal=True))
        loss.backward()
        optimizer.step()
        return loss.detach()

    calls = [(x(2, 3, 8, seed=k), x(2, 4, 8, seed=k + 9)) for k in range(4)]
    return step, calls, state_of(net)


# Hooks -------------------------------------------------------------------------------------------


def hooked(name, register):
    def make():
        net, seen = small_net(), []
        register(net, seen)
        return trained(net, observe=lambda: (state_of(net)(), list(seen)))

    make.__name__ = f"step_with_{name}"
    training(make)


hooked("forward_hook", lambda n, _: n[0].register_forward_hook(lambda m, i, out: out * 2))
hooked(
    "collecting_forward_hook",
    lambda n, seen: n[0].register_forward_hook(lambda m, i, out: seen.append(out.detach().mean())),
)
hooked("pre_hook", lambda n, _: n[0].register_forward_pre_hook(lambda m, args: (args[0] + 1,)))
hooked(
    "full_backward_hook",
    lambda n, seen: n[0].register_full_backward_hook(lambda m, gi, go: seen.append(go[0].mean())),
)
hooked(
    "changing_backward_hook",
    lambda n, _: n[2].register_full_backward_hook(lambda m, gi, go: tuple(g * 2 for g in gi)),
)
hooked(
    "backward_pre_hook",
    lambda n, _: n[2].register_full_backward_pre_hook(lambda m, go: (go[0] * 2,)),
)


# Arguments that cannot be captured ---------------------------------------------------------------


@program
def subclass_with_torch_function_io():
    class Named(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return super().__torch_function__(function, types, args, kwargs or {})

    net = small_net()

    def f(a):
        return type(F.relu(net(a))).__name__, (a + 1).sum()

    return f, [(x(3, 4, seed=k).as_subclass(Named),) for k in range(2)], None
