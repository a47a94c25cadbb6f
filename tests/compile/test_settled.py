"""A program that compares words of memory notices whatever a program that reads would notice."""

import gc
import types
import weakref

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.capture import words

pytestmark = pytest.mark.skipif(words.hold() is None, reason="another layout of memory")


class Net(nn.Module):
    scale = 2.0

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)
        self.register_buffer("shift", torch.zeros(2))
        self.power = 1
        self.extras = [1.0, {"bias": 0.5}]

    def activation(self, x):
        return torch.relu(x)

    def forward(self, x):
        y = self.second(self.activation(self.first(x)))
        y = y * self.scale + self.shift + self.extras[0] + self.extras[1]["bias"]
        return y**self.power if self.training else y * 10 ** (SETTINGS["offset"] + 1)


SETTINGS = {"offset": 0}


def made():
    torch.manual_seed(0)
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    factor = 1.5

    def step(x):
        opt.zero_grad()
        loss = (net(x) * factor).square().sum()
        loss.backward()
        opt.step()
        return loss

    return types.SimpleNamespace(net=net, opt=opt, step=step)


def cell(function, name):
    return function.__closure__[function.__code__.co_freevars.index(name)]


def settled(region):
    return [e for s in region.sites.values() for e in s.entries if e.settled is not None]


CHANGES = {
    "attribute": lambda w: setattr(w.net, "power", 2),
    "instance dictionary": lambda w: w.net.__dict__.update(power=3),
    "new attribute hides a class's": lambda w: setattr(w.net, "scale", 3.0),
    "class attribute": lambda w: setattr(Net, "scale", 4.0),
    "method of the object": lambda w: setattr(w.net, "activation", torch.tanh),
    "method of the class": lambda w: setattr(Net, "activation", lambda self, x: torch.sin(x)),
    "list element": lambda w: w.net.extras.__setitem__(0, 7.0),
    "nested dictionary": lambda w: w.net.extras[1].update(bias=9.0),
    "mode": lambda w: w.net.eval(),
    "mode of a part": lambda w: w.net.first.eval(),
    "module exchanged": lambda w: setattr(w.net, "first", nn.Linear(3, 4)),
    "module exchanged below": lambda w: w.net._modules.update(first=nn.Linear(3, 4)),
    "parameter exchanged": lambda w: w.net.first._parameters.update(
        bias=nn.Parameter(torch.ones(4))
    ),
    "parameter's data": lambda w: setattr(w.net.first.bias, "data", torch.ones(4)),
    "parameter's values": lambda w: w.net.first.bias.data.fill_(1),
    "parameter frozen": lambda w: w.net.first.weight.requires_grad_(False),
    "buffer": lambda w: setattr(w.net, "shift", torch.ones(2)),
    "buffer's shape": lambda w: setattr(w.net, "shift", torch.ones(1)),
    "one storage": lambda w: setattr(w.net.second.bias, "data", w.net.first.bias.data[:2]),
    "forward hook": lambda w: w.net.first.register_forward_hook(lambda m, a, out: out * 2),
    "learning rate": lambda w: w.opt.param_groups[0].update(lr=0.01),
    "momentum": lambda w: w.opt.param_groups[0].update(momentum=0),
    "another group": lambda w: w.opt.param_groups.append(w.opt.param_groups.pop()),
    "fewer parameters": lambda w: w.opt.param_groups[0]["params"].pop(),
    "optimizer's state": lambda w: w.opt.state.clear(),
    "optimizer loaded": lambda w: w.opt.load_state_dict(w.opt.state_dict()),
    "closure variable": lambda w: setattr(cell(w.step, "factor"), "cell_contents", 2.5),
    "module loaded": lambda w: w.net.load_state_dict(Net().state_dict()),
    "converted": lambda w: w.net.double() and None,
    "global": lambda w: SETTINGS.update(offset=1),
}


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    monkeypatch.setattr(Net, "scale", Net.scale)
    monkeypatch.setattr(Net, "activation", Net.activation)
    monkeypatch.setitem(SETTINGS, "offset", 0)


def losses(change, transform):
    """Twelve steps, in the middle of which something changes."""
    w = made()
    step = transform(w.step)
    found = []
    x = torch.arange(6.0).reshape(2, 3) / 10
    for k in range(12):
        if k == 6:
            torch.manual_seed(1)
            change(w)
        try:
            found.append(step(x).item())
        except RuntimeError as error:
            found.append(type(error).__name__)
    found += [p.detach().sum().item() for p in w.net.parameters()]
    if transform is not plain:
        assert settled(step.region)
    return found


def plain(function):
    return function


@pytest.mark.parametrize("name", CHANGES)
def test_change_is_noticed(name, monkeypatch):
    want = losses(CHANGES[name], plain)
    monkeypatch.undo()
    got = losses(CHANGES[name], lambda f: torch.compile(f, backend="eager"))
    assert repr(got) == repr(want)  # NaN included


def test_switches_of_the_thread():
    net = Net()
    compiled = torch.compile(lambda x: net(x), backend="eager")
    x = torch.ones(2, 3)
    for _ in range(5):
        assert compiled(x).requires_grad
    assert settled(compiled.region)
    with torch.no_grad():
        assert not compiled(x).requires_grad
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert compiled.function(x).dtype == compiled(x).dtype
        assert net.first(x).dtype == torch.bfloat16
    assert compiled(x).requires_grad


def test_one_program_stays_settled_between_training_and_evaluation():
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.0), nn.Linear(4, 2))
    compiled = torch.compile(lambda x: net(x), backend="eager")
    x = torch.ones(2, 3)
    for _ in range(4):
        for mode in (True, False):
            net.train(mode)
            for _ in range(25):
                compiled(x)
    (site,) = compiled.region.sites.values()
    assert len(site.entries) == 2
    assert site.entries[0].settled is not None or site.entries[1].settled is not None
    assert not any(e.volatile for e in site.entries)


def test_a_module_passed_as_an_argument_is_not_kept_alive():
    compiled = torch.compile(lambda net, x: net(x), backend="eager")
    x = torch.ones(2, 3)
    net = Net()
    for _ in range(5):
        compiled(net, x)
    assert settled(compiled.region)
    alive = weakref.ref(net)
    del net
    gc.collect()
    assert alive() is None
    assert not settled(compiled.region)
    other = Net()
    assert compiled(other, x).tolist() == other(x).tolist()


def test_two_callers_in_turn():
    compiled = torch.compile(lambda net, x: net(x), backend="eager")
    nets, x = [Net(), Net()], torch.ones(2, 3)
    for k in range(12):
        assert compiled(nets[k % 2], x).tolist() == nets[k % 2](x).tolist()
    (site,) = compiled.region.sites.values()
    assert len(site.entries) == 1


def test_a_rate_that_changes_in_every_call_leaves_the_rest_settled():
    w = made()
    schedule = torch.optim.lr_scheduler.ExponentialLR(w.opt, 0.9)
    step = torch.compile(w.step, backend="eager")
    for _ in range(20):
        step(torch.ones(2, 3))
        schedule.step()
    assert any(e.settled.calls > 5 for e in settled(step.region))
