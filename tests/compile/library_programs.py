"""More of the corpus: idioms of the library, in models and in whole training steps."""

import contextlib
import copy

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn, optim
from tests.compile.programs import program, x


def seeded(make, seed=0):
    torch.manual_seed(seed)
    return make()


def weights(module):
    return lambda: [p.detach().clone() for p in module.parameters()]


@program
def autocast_training_step():
    net = seeded(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))
    optimizer = optim.SGD(net.parameters(), lr=0.1)

    def step(a, y):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = net(a)
            loss = F.cross_entropy(out.float(), y)
        loss.backward()
        optimizer.step()
        return loss.detach(), out.dtype

    return step, [(x(3, 4, seed=k), torch.tensor([0, 1, 1])) for k in range(3)], weights(net)


@program
def gradient_scaler_step():
    net = seeded(lambda: nn.Linear(3, 1))
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)

    def step(a):
        optimizer.zero_grad()
        loss = net(a).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return step, [(x(2, 3, seed=k),) for k in range(3)], weights(net)


@program
def closure_step():
    net = seeded(lambda: nn.Linear(3, 1))
    optimizer = optim.SGD(net.parameters(), lr=0.1)

    def step(a):
        def closure():
            optimizer.zero_grad()
            loss = net(a).pow(2).mean()
            loss.backward()
            return loss

        return optimizer.step(closure).detach()

    return step, [(x(2, 3, seed=k),) for k in range(3)], weights(net)


@program
def parameter_groups():
    net = seeded(lambda: nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)))
    optimizer = optim.AdamW(
        [{"params": net[0].parameters(), "lr": 0.1}, {"params": net[1].parameters()}], lr=0.01
    )

    def step(a):
        for group in optimizer.param_groups:
            group["lr"] *= 0.9
        optimizer.zero_grad()
        net(a).pow(2).mean().backward()
        optimizer.step()
        return optimizer.param_groups[0]["lr"]

    return step, [(x(2, 3, seed=k),) for k in range(5)], weights(net)


@program
def exponential_moving_average():
    net = seeded(lambda: nn.Linear(3, 2))
    average = copy.deepcopy(net)

    @torch.no_grad()
    def update(a):
        for old, new in zip(average.parameters(), net.parameters()):
            old.mul_(0.9).add_(new, alpha=0.1)
        return average(a)

    return update, [(x(2, 3),)] * 3, weights(average)


@program
def embedding_and_attention():
    torch.manual_seed(0)
    embed, attend = nn.Embedding(10, 8), nn.MultiheadAttention(8, 2, batch_first=True)

    def f(tokens):
        h = embed(tokens)
        out, weight = attend(h, h, h)
        return out.mean(), weight.sum()

    return f, [(torch.tensor([[1, 2, 3], [4, 5, 6]]),)] * 2, None


@program
def transformer_layer():
    layer = seeded(lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True))

    def f(a):
        return layer(a)

    return f, [(x(2, 3, 8),)] * 2, None


@program
def recurrent_net():
    net = seeded(lambda: nn.LSTM(3, 4, num_layers=2, batch_first=True))

    def f(a):
        out, (h, c) = net(a)
        return out[:, -1], h, c

    return f, [(x(2, 5, 3),)] * 2, None


@program
def convolution_net():
    net = seeded(
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(64, 2),
        )
    )

    def f(a):
        return net(a)

    return f, [(x(2, 1, 8, 8),)] * 3, lambda: [b.clone() for b in net.buffers()]


@program
def state_dict_inside():
    net = seeded(lambda: nn.Linear(2, 2))

    def f(a):
        total = sum(v.sum() for v in net.state_dict().values())
        return net(a) + total, sorted(net.state_dict())

    return f, [(x(1, 2),)] * 2, None


@program
def freezing_parameters():
    net = seeded(lambda: nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)))

    def f(a):
        for p in net[0].parameters():
            p.requires_grad = False
        net.zero_grad()
        net(a).sum().backward()
        return net[0].weight.grad is None, net[1].weight.grad.clone()

    return f, [(x(3, 2),)] * 2, lambda: [p.requires_grad for p in net.parameters()]


@program
def apply_and_modules():
    net = seeded(lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)))

    def count(a):
        seen = []
        net.apply(lambda m: seen.append(type(m).__name__))
        linear = [m for m in net.modules() if isinstance(m, nn.Linear)]
        return a * len(linear), seen

    return count, [(x(2),)] * 2, None


@program
def stochastic_depth():
    net = seeded(lambda: nn.ModuleList([nn.Linear(2, 2) for _ in range(3)]))

    def f(a, keep):
        for k, layer in enumerate(net):
            if not keep >> k & 1:
                continue
            a = a + layer(a)
        return a

    return f, [(x(1, 2), k) for k in (7, 5, 0, 7)], None


@program
def residual_with_none():
    class Block(nn.Module):
        def __init__(self, down=None):
            super().__init__()
            self.conv = nn.Linear(2, 2)
            self.down = down

        def forward(self, a, mask=None):
            same = a if self.down is None else self.down(a)
            out = self.conv(a)
            if mask is not None:
                out = out.masked_fill(mask, 0.0)
            return out + same

    net = seeded(lambda: nn.Sequential(Block(), Block(nn.Linear(2, 2))))

    def f(a):
        return net(a), net[0](a, mask=a > 0)

    return f, [(x(2, 2),)] * 2, None


@program
def causal_mask_and_positions():
    def f(q):
        n = q.shape[1]
        mask = torch.tril(torch.ones(n, n)).bool()
        score = q @ q.transpose(-1, -2) / q.shape[-1] ** 0.5
        score = score.masked_fill(~mask, float("-inf"))
        return score.softmax(-1) @ q + torch.arange(n)[:, None]

    return f, [(x(2, n, 4),) for n in (3, 5, 4)], None


@program
def hidden_state_carried():
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.Linear(2, 2)
            self.state = None

        def forward(self, a):
            self.state = a if self.state is None else self.mix(self.state).tanh() + a
            return self.state

    cell = seeded(Cell)

    def f(a):
        with torch.no_grad():
            return cell(a)

    return f, [(x(1, 2, seed=k),) for k in range(4)], lambda: cell.state


@program
def losses_collected():
    history, best = [], {"loss": float("inf")}
    net = seeded(lambda: nn.Linear(2, 1))

    def f(a):
        loss = net(a).pow(2).mean()
        history.append(loss.detach())
        best["last"] = loss.detach()
        return loss.detach()

    return f, [(x(2, 2, seed=k),) for k in range(3)], lambda: (list(history), best["last"])


@program
def micro_batches_in_a_loop():
    net = seeded(lambda: nn.Linear(2, 1))
    optimizer = optim.Adam(net.parameters(), lr=0.1)

    def f(batches):
        optimizer.zero_grad()
        total = 0.0
        for a in batches:
            loss = net(a).pow(2).mean() / len(batches)
            loss.backward()
            total = total + loss.detach()
        optimizer.step()
        return total

    return f, [([x(2, 2, seed=k) for k in range(3)],)] * 3, weights(net)


@program
def several_steps_in_one_call():
    net = seeded(lambda: nn.Linear(2, 1))
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def f(a):
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = net(a).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses)

    return f, [(x(2, 2),)] * 2, weights(net)


@program
def inference_mode_use():
    net = seeded(lambda: nn.Linear(2, 2))

    @torch.inference_mode()
    def f(a):
        return net(a)

    return f, [(x(1, 2),)] * 2, None


@program
def nullcontext_and_exit_stack():
    def f(a, record):
        manager = contextlib.nullcontext() if record else torch.no_grad()
        with manager:
            b = a * 2
        with contextlib.suppress(ZeroDivisionError):
            b = b + 1 / 0
        return b

    return f, [(x(2), True), (x(2), False)], None


@program
def functional_composition():
    def compose(*functions):
        def run(a):
            for function in functions:
                a = function(a)
            return a

        return run

    pipeline = compose(torch.relu, lambda a: a * 2, F.softplus, torch.Tensor.exp)

    def f(a):
        return pipeline(a)

    return f, [(x(3),)] * 2, None


@program
def tensor_lists_and_stack():
    def f(a):
        rows = list(a)
        chunks = a.chunk(2)
        parts = torch.split(a, [1, 3])
        return torch.stack(rows[::-1]), torch.cat(chunks[::-1]), parts[1].sum(), a.unbind(1)[0]

    return f, [(x(4, 2),)] * 2, None


@program
def new_tensors_like():
    def f(a):
        return (
            torch.zeros_like(a) + a.new_ones(2),
            torch.full((2,), 3.0),
            torch.tensor([1.0, 2.0]) * a,
            torch.eye(2, dtype=a.dtype, device=a.device),
            torch.linspace(0, 1, 3),
        )

    return f, [(x(2),)] * 2, None


@program
def index_assignment():
    def f(a, index):
        out = torch.zeros(4, 2)
        out[index] = a
        out.index_add_(0, index, a)
        return out, a[index % 2], out.argmax(1)

    return f, [(x(2, 2), torch.tensor([3, 1]))] * 2, None


@program
def boolean_mask_io():
    def f(a):
        out = a.clone()
        out[out > 1] = 1.0
        return out, a[a > 0].sum()

    return f, [(x(3, 2),)] * 2, None
