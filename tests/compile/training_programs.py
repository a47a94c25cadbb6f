"""Whole training steps: what scripts do around a loss, each of which must be one graph.

A program is as in `programs.py`; `SETTLED` is how often it may be captured until nothing changes
any more: without the optimizer's state, with it, and once more for each branch it takes.
"""

import bisect
import copy

import numpy as np

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


def first_squared(out):
    return squared(out[0])


def recurrent(name, make, shape=(3, 2, 4)):
    def step():
        return trained(seeded(make), batches(*shape), first_squared)

    step.__name__ = f"{name}_step"
    training(step)


deep = {"num_layers": 2, "bidirectional": True, "batch_first": True}
recurrent("lstm", lambda: nn.LSTM(4, 5))
recurrent("deep_lstm", lambda: nn.LSTM(4, 5, **deep))
recurrent("lstm_with_dropout", lambda: nn.LSTM(4, 5, num_layers=2, dropout=0.5))
recurrent("deep_gru", lambda: nn.GRU(4, 5, **deep))
recurrent("deep_rnn", lambda: nn.RNN(4, 5, **deep))


class Unrolled(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(4, 5)

    def forward(self, a):
        h, c = a.new_zeros(2, 5), a.new_zeros(2, 5)
        outputs = []
        for row in a:
            h, c = self.cell(row, (h, c))
            outputs.append(h)
        return torch.stack(outputs), c


recurrent("lstm_cell", Unrolled)


@training
def recurrent_network_alone():
    net = seeded(lambda: nn.LSTM(4, 5))

    def f(a):
        return net(a)[0]

    def observe():
        squared(net(x(3, 2, 4))[0]).backward()
        return [p.grad for p in net.parameters()]

    return f, batches(3, 2, 4), observe


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


def each_parameter(register):
    return lambda net, seen: [register(p, seen) for p in net.parameters()]


hooked("parameter_hooks", each_parameter(lambda p, _: p.register_hook(lambda ct: ct * 0.5)))
hooked(
    "hooks_after_accumulation",
    each_parameter(
        lambda p, seen: p.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.norm()))
    ),
)


@training
def optimizer_in_backward():
    net = small_net()
    optimizers = {p: optim.SGD([p], lr=0.1, momentum=0.9) for p in net.parameters()}

    def update(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in net.parameters():
        p.register_post_accumulate_grad_hook(update)

    def step(a):
        loss = squared(net(a))
        loss.backward()
        return loss.detach()

    return step, batches(3, 4), state_of(net)


@training
def hooks_made_in_the_step():
    net, seen = small_net(), []
    optimizer = optim.SGD(net.parameters(), lr=0.1)

    def step(a):
        optimizer.zero_grad()
        found = []
        handle = net[0].register_forward_hook(lambda m, i, out: found.append(out))
        out = net(a)
        handle.remove()
        (h,) = found
        h.retain_grad()
        clipped = h.register_hook(lambda ct: ct.clamp(-0.01, 0.01))
        removed = h.register_hook(lambda ct: ct * 100)
        removed.remove()
        h.register_hook(lambda ct: seen.append(ct.norm()))
        squared(out).backward(retain_graph=True)
        clipped.remove()
        out.abs().sum().backward()
        optimizer.step()
        return h.grad, len(net[0]._forward_hooks)

    return step, batches(3, 4), lambda: (state_of(net)(), list(seen))


# Several backward passes -------------------------------------------------------------------------


@program
def adversarial_step_io():
    """Two losses, of which the second goes back through what the first optimizer has changed."""
    maker = small_net()
    judge = seeded(lambda: nn.Sequential(nn.Linear(2, 4), nn.LeakyReLU(0.2), nn.Linear(4, 1)), 1)
    first = optim.Adam(maker.parameters(), lr=0.02, betas=(0.5, 0.999))
    second = optim.Adam(judge.parameters(), lr=0.02, betas=(0.5, 0.999))

    def loss_of(a, goal):
        torch.compiler.graph_break()
        return F.binary_cross_entropy_with_logits(judge(a).view(-1), goal)

    def step(noise, real):
        judge.zero_grad()
        goal = torch.full((real.size(0),), 1.0)
        on_real = loss_of(real, goal)
        on_real.backward()
        fake = maker(noise)
        goal.fill_(0.0)
        on_fake = loss_of(fake.detach(), goal)
        on_fake.backward()
        second.step()
        maker.zero_grad()
        goal.fill_(1.0)
        fooled = loss_of(fake, goal)
        fooled.backward()
        first.step()
        return on_real.item() + on_fake.item(), fooled.item()

    calls = [(x(3, 4, seed=k), x(3, 2, seed=k + 9)) for k in range(3)]
    return step, calls, state_of(maker, judge)


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


# Optimizers --------------------------------------------------------------------------------------


def optimized(name, make, captures=2, count=4):
    def step():
        net = small_net()
        optimizer = make(net.parameters())
        program = trained(net, batches(3, 4, count=count), optimizer=lambda _: optimizer)
        return *program[:2], lambda: (state_of(net)(), optimizer.state_dict()["state"])

    step.__name__ = f"step_of_{name}"
    training(step, captures)


optimized("sgd", lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1))
optimized("sgd_with_a_tensor_rate", lambda p: optim.SGD(p, lr=torch.tensor(0.1)))
optimized("sgd_upwards", lambda p: optim.SGD(p, lr=0.1, maximize=True, momentum=0.5))
optimized("adam_amsgrad", lambda p: optim.Adam(p, lr=0.1, amsgrad=True, weight_decay=0.1))
optimized("adam_capturable", lambda p: optim.Adam(p, lr=torch.tensor(0.1), capturable=True))
optimized("adamw_foreach", lambda p: optim.AdamW(p, lr=0.1, foreach=True))
optimized("adamw_fused", lambda p: optim.AdamW(p, lr=0.1, fused=True))
optimized("radam", lambda p: optim.RAdam(p, lr=0.1), captures=3, count=8)  # r appears in step 6
optimized("nadam", lambda p: optim.NAdam(p, lr=0.1, weight_decay=0.1))
optimized("asgd", lambda p: optim.ASGD(p, lr=0.1, t0=2), captures=3, count=6)
optimized("rprop", lambda p: optim.Rprop(p, lr=0.1))
optimized("adagrad", lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1))
optimized("adadelta", lambda p: optim.Adadelta(p, lr=0.1))
optimized("adamax", lambda p: optim.Adamax(p, lr=0.1))
optimized("rmsprop", lambda p: optim.RMSprop(p, lr=0.01, centered=True, momentum=0.9))
optimized("adafactor", lambda p: optim.Adafactor(p, lr=0.1))


@training
def averaged_model_step():
    net = small_net()
    average = optim.swa_utils.AveragedModel(net, avg_fn=optim.swa_utils.get_ema_avg_fn(0.9))
    optimizer = optim.SGD(net.parameters(), lr=0.1)

    def step(a):
        optimizer.zero_grad()
        loss = squared(net(a))
        loss.backward()
        optimizer.step()
        average.update_parameters(net)
        return loss.detach()

    return step, batches(3, 4), state_of(net, average)


# Schedules ---------------------------------------------------------------------------------------


def scheduled(name, make, captures, count=8):
    def program_of_schedule():
        net = small_net()
        optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        scheduler = make(optimizer)

        def step(a):
            optimizer.zero_grad()
            loss = squared(net(a))
            loss.backward()
            optimizer.step()
            scheduler.step()
            return loss.detach(), optimizer.param_groups[0]["lr"]

        observe = lambda: (state_of(net)(), scheduler.get_last_lr())  # noqa: E731
        return step, batches(3, 4, count=count), observe

    program_of_schedule.__name__ = f"{name}_schedule"
    training(program_of_schedule, captures)


schedules = optim.lr_scheduler
scheduled("exponential", lambda o: schedules.ExponentialLR(o, 0.9), 2)
scheduled("step", lambda o: schedules.StepLR(o, 2), 4)
scheduled("multi_step", lambda o: schedules.MultiStepLR(o, [2, 4]), 5)
scheduled("cosine", lambda o: schedules.CosineAnnealingLR(o, 10), 2)
scheduled("one_cycle", lambda o: schedules.OneCycleLR(o, 0.2, total_steps=30), 4)
scheduled("warm_restarts", lambda o: schedules.CosineAnnealingWarmRestarts(o, 3, 2), 4)
scheduled(
    "warm_up_and_cosine",
    lambda o: schedules.SequentialLR(
        o, [schedules.LinearLR(o, 0.1, total_iters=3), schedules.CosineAnnealingLR(o, 9)], [3]
    ),
    6,
    count=12,
)


@training(captures=4)
def schedule_in_an_array():
    net = small_net()
    optimizer = optim.AdamW(net.parameters(), lr=0.1)

    def step(a, rate, scale, number):
        if number % 2 == 0:
            scale = scale * 2
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss = squared(net(a)) * scale
        loss.backward()
        optimizer.step()
        return loss.detach(), rate, number

    rates, numbers = np.linspace(0.1, 0.01, 8), np.arange(8)
    calls = [(x(3, 4, seed=k), rates[k], np.float32(0.5 + k), numbers[k]) for k in range(8)]
    return step, calls, lambda: (state_of(net)(), optimizer.param_groups[0]["lr"])


@training(captures=6)
def accumulation_by_count():
    net = small_net()
    optimizer = optim.Adam(net.parameters(), lr=0.01)

    def step(a, number):
        loss = squared(net(a)) / 3
        loss.backward()
        if (number + 1) % 3 == 0:
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    return step, [(x(3, 4, seed=k), k) for k in range(12)], state_of(net)


@training(captures=4)
def numbers_as_keys():
    rates = {0: 1.0, 3: 2.0}

    def f(a, k):
        return a * rates.get(k, 0.5), k in rates, bisect.bisect_right([2, 4], k)

    return f, [(x(2), k) for k in (1, 5, 6, 7, 8, 9)], None


# Decisions on numbers that the call finds in tensors ---------------------------------------------


@training(captures=3)
def every_third_step():
    net, count = small_net(), torch.tensor(0)

    def step(a):
        count.add_(1)
        if count.item() % 3 == 0:
            return net(a) * 2
        if count == 100:
            return net(a) * 3
        return net(a)

    return step, batches(3, 4, count=7), lambda: count.clone()


@program
def count_written_twice_io():
    count = torch.tensor([0.0])

    def f(a):
        count.add_(0.1)
        view = count.view(())
        view.mul_(2)
        if count > 1:
            return a * 2
        return a

    return f, batches(2, count=4), lambda: count.clone()


@training(captures=8)
def largest_of_two_counts():
    first, second = torch.tensor(3), torch.tensor(1)

    def f(a):
        second.add_(1)
        return a * max(first.item(), second.item()), min(1, second.item() / 4)

    return f, batches(2, count=5), lambda: second.clone()


# Forward passes that run again -------------------------------------------------------------------


class Checkpointed(nn.Module):
    def __init__(self, use_reentrant, rate):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.rest = nn.Sequential(nn.Linear(4, 8), nn.Dropout(rate), nn.ReLU(True), nn.Linear(8, 4))
        self.use_reentrant = use_reentrant

    def forward(self, a):
        run = torch.utils.checkpoint.checkpoint
        h = F.dropout(self.first(a), 0.1)
        return F.dropout(run(self.rest, h, use_reentrant=self.use_reentrant), 0.1)


def checkpointed(use_reentrant, rate):
    def step():
        return trained(seeded(lambda: Checkpointed(use_reentrant, rate)))

    kind = "reentrant" if use_reentrant else "replayed"
    step.__name__ = f"{kind}_checkpoint_with_dropout_{int(rate * 100)}"
    training(step)


for again in (True, False):
    checkpointed(again, 0.0)
    checkpointed(again, 0.5)


@training
def sequential_checkpoint():
    net = seeded(lambda: nn.Sequential(*[nn.Linear(4, 4) for _ in range(4)]))

    def run(a):
        return torch.utils.checkpoint.checkpoint_sequential(net, 2, a, use_reentrant=False)

    optimizer = optim.SGD(net.parameters(), lr=0.1)

    def step(a):
        optimizer.zero_grad()
        loss = squared(run(a))
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, batches(3, 4), state_of(net)


@training
def saved_tensors_on_the_cpu():
    net = small_net()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    seen = []

    def pack(t):
        seen.append(t.shape)
        return t * 2

    def step(a):
        optimizer.zero_grad()
        with torch.autograd.graph.save_on_cpu():
            h = net[0](a)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t / 2):
            loss = squared(net[2](net[1](h)))
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, batches(3, 4), state_of(net)


@program
def anomaly_mode_io():
    net = small_net()

    def step(a):
        net.zero_grad()
        with torch.autograd.set_detect_anomaly(True):
            loss = squared(net(a)).sqrt()
            loss.backward()
        return loss.detach(), torch.is_anomaly_enabled()

    return step, batches(3, 4, count=3), lambda: torch.is_anomaly_enabled()


# Tasks whose library code checks values ----------------------------------------------------------


@training
def generative_adversarial_step():
    maker = small_net()
    judge = seeded(
        lambda: nn.Sequential(nn.Linear(2, 4), nn.LeakyReLU(0.2), nn.Linear(4, 1), nn.Sigmoid()), 1
    )
    first = optim.Adam(maker.parameters(), lr=0.02, betas=(0.5, 0.999))
    second = optim.Adam(judge.parameters(), lr=0.02, betas=(0.5, 0.999))
    criterion = nn.BCELoss()

    def step(noise, real):
        judge.zero_grad()
        goal = torch.full((real.size(0),), 1.0, device=real.device)
        on_real = criterion(judge(real).view(-1), goal)
        on_real.backward()
        fake = maker(noise)
        goal.fill_(0.0)
        on_fake = criterion(judge(fake.detach()).view(-1), goal)
        on_fake.backward()
        second.step()
        maker.zero_grad()
        goal.fill_(1.0)
        fooled = criterion(judge(fake).view(-1), goal)
        fooled.backward()
        first.step()
        return (on_real + on_fake).item(), fooled.item()

    calls = [(x(3, 4, seed=k), x(3, 2, seed=k + 9)) for k in range(3)]
    return step, calls, state_of(maker, judge)


@training
def variational_autoencoder_step():
    encode, decode = seeded(lambda: nn.Linear(4, 4)), seeded(lambda: nn.Linear(2, 4), 1)
    optimizer = optim.Adam([*encode.parameters(), *decode.parameters()], lr=0.01)

    def step(a):
        mean, log_variance = encode(a).chunk(2, -1)
        deviation = torch.exp(0.5 * log_variance)
        hidden = mean + torch.randn_like(deviation) * deviation
        seen = F.binary_cross_entropy(decode(hidden).sigmoid(), a.sigmoid(), reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        optimizer.zero_grad()
        (seen + divergence).backward()
        optimizer.step()
        return seen.item()

    return step, batches(3, 4), state_of(encode, decode)


@training
def policy_gradient_step():
    policy = small_net()
    optimizer = optim.Adam(policy.parameters(), lr=0.01)

    def step(states, actions, old, advantages):
        choice = torch.distributions.Categorical(logits=policy(states))
        ratio = (choice.log_prob(actions) - old).exp()
        clipped = torch.clamp(ratio, 0.8, 1.2)
        loss = -torch.min(ratio * advantages, clipped * advantages).mean()
        loss = loss - 0.01 * choice.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()
        return loss.detach()

    calls = [
        (x(3, 4, seed=k), torch.tensor([0, 1, k % 2]), -x(3, seed=k).abs(), x(3, seed=k + 1))
        for k in range(4)
    ]
    return step, calls, state_of(policy)


@training
def variational_inference_step():
    mean, log_scale = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))
    optimizer = optim.Adam([mean, log_scale], lr=0.01)
    normal = torch.distributions.Normal

    def step(a):
        guess = normal(mean, log_scale.exp())
        prior = normal(torch.zeros(3), torch.ones(3))
        loss = torch.distributions.kl_divergence(guess, prior).sum() + guess.rsample().sum()
        loss = loss - torch.distributions.Independent(guess, 1).log_prob(a).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, batches(4, 3), lambda: (mean.detach().clone(), log_scale.detach().clone())


@training
def masked_encoder_step():
    layer = seeded(lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True))
    net = nn.TransformerEncoder(layer, 2)
    mask = nn.Transformer.generate_square_subsequent_mask(3)

    def loss_of(a):
        return squared(net(a, mask=mask, src_key_padding_mask=torch.zeros(2, 3)))

    optimizer = optim.SGD(net.parameters(), lr=0.1)

    def step(a):
        optimizer.zero_grad()
        loss = loss_of(a)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, batches(2, 3, 8), state_of(net)


# Weights that change hands -----------------------------------------------------------------------


@training
def target_network_step():
    net = small_net()
    target = copy.deepcopy(net)
    optimizer = optim.AdamW(net.parameters(), lr=0.01, amsgrad=True)

    def step(states, actions, rewards, following):
        chosen = net(states).gather(1, actions)
        with torch.no_grad():
            expected = target(following).max(1).values * 0.9 + rewards
        loss = F.smooth_l1_loss(chosen, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 100)
        optimizer.step()
        slow, fast = target.state_dict(), net.state_dict()
        for key in fast:
            slow[key] = fast[key] * 0.1 + slow[key] * 0.9
        target.load_state_dict(slow)
        return loss.detach()

    calls = [
        (x(3, 4, seed=k), torch.tensor([[0], [1], [k % 2]]), x(3, seed=k), x(3, 4, seed=k + 9))
        for k in range(4)
    ]
    return step, calls, state_of(net, target)


@training
def average_by_count_step():
    net = small_net()
    average = optim.swa_utils.AveragedModel(net)

    def update(a):
        with torch.no_grad():
            for p in net.parameters():
                p.add_(a)
        average.update_parameters(net)
        return average(torch.ones(1, 4)).detach()

    return update, [(torch.tensor(float(k)),) for k in range(4)], state_of(average)


@training
def memory_that_is_exchanged():
    one, other = nn.Parameter(x(3)), nn.Parameter(x(3, seed=1))

    def f(a):
        loss = (one * a).sum() - (other * a).sum()
        loss.backward()
        for p in (one, other):
            p.data = p.data - 0.1 * p.grad
            p.grad = None
        kept = one.data
        one.data = other.data
        other.data = kept
        one.data.mul_(2)
        with torch.no_grad():
            other.add_(1)
        return one * 1, kept.sum()

    return f, batches(3), lambda: [one.detach().clone(), other.detach().clone()]


@training
def flat_parameters_step():
    net = small_net()

    def step(a):
        net.zero_grad()
        loss = squared(net(a))
        loss.backward()
        slope = nn.utils.parameters_to_vector([p.grad for p in net.parameters()])
        flat = nn.utils.parameters_to_vector(net.parameters())
        nn.utils.vector_to_parameters((flat - 0.1 * slope).detach(), net.parameters())
        return loss.detach()

    return step, batches(3, 4), state_of(net)


@training
def clipping_that_checks():
    net = small_net()
    optimizer = optim.SGD(net.parameters(), lr=0.1)

    def step(a):
        optimizer.zero_grad()
        squared(net(a)).backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 0.1, error_if_nonfinite=True)
        optimizer.step()
        return norm

    return step, batches(3, 4), state_of(net)


@program
def function_transforms_io():
    net = small_net()
    fixed = {name: p.detach() for name, p in net.named_parameters()}

    def loss(weights, a):
        return squared(torch.func.functional_call(net, weights, (a,)))

    def f(a):
        each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(fixed, a)
        return each, torch.func.grad(loss)(fixed, a)

    return f, batches(3, 4, count=3), None


@training
def embedding_bag_step():
    net = seeded(lambda: nn.EmbeddingBag(10, 4, mode="mean"))
    offsets = [torch.tensor(o) for o in ([0, 2], [0, 0], [0, 4], [0, 1])]
    calls = [(torch.tensor([1, 2, k, 4]), o) for k, o in enumerate(offsets)]
    return trained(net, calls)


@program
def quotient_that_loses_its_meaning_io():
    count = torch.tensor(2.0)

    def f(a, k):
        count.fill_(k)
        return a

    def g(a, k):
        if k and 1 / count.item() < 1:
            return a * 2
        return a

    def both(a, k):
        torch.compiler.disable(f)(a, k)
        return g(a, k)

    return both, [(x(2), k) for k in (2, 4, 0, 2)], None
