"""Scripting and tracing return what runs as before."""

import pytest

import flambeau as torch


class Net(torch.nn.Module):
    scale: torch.jit.Final[int]

    def __init__(self):
        super().__init__()
        self.scale = 3
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x):
        if x.sum() > 0:
            return self.layer(x) * self.scale
        return x

    @torch.jit.export
    def twice(self, x):
        return self.forward(self.forward(x))

    @torch.jit.ignore
    def python_only(self):
        return "python"


def test_a_scripted_module_is_the_module():
    net = Net()
    scripted = torch.jit.script(net)
    x = torch.ones(1, 2)
    assert isinstance(scripted, torch.jit.ScriptModule) and scripted.original_name == "Net"
    assert torch.equal(scripted(x), net(x)) and torch.equal(scripted.twice(x), net.twice(x))
    assert list(scripted.state_dict()) == list(net.state_dict())
    assert scripted.layer.weight is net.layer.weight and scripted.python_only() == "python"
    scripted.eval()
    assert not net.training and not scripted.training
    scripted.load_state_dict({k: v * 0 for k, v in net.state_dict().items()})
    assert net.layer.weight.abs().sum() == 0


def test_a_trace_keeps_branches_open():
    net = Net()
    traced = torch.jit.trace(net, torch.ones(1, 2))
    assert torch.equal(traced(-torch.ones(1, 2)), -torch.ones(1, 2))
    assert torch.equal(torch.jit.trace(torch.neg, (torch.ones(2),))(torch.ones(1)), -torch.ones(1))


def test_a_scripted_function():
    @torch.jit.script
    def add(x: torch.Tensor, n: int = 2) -> torch.Tensor:
        return x + n

    assert add(torch.zeros(1)).item() == 2 and add.__name__ == "add"


def test_programs_are_not_archived(tmp_path):
    with pytest.raises(RuntimeError, match="state_dict"):
        torch.jit.script(Net()).save(str(tmp_path / "net.pt"))
    with pytest.raises(RuntimeError, match="eval"):
        torch.jit.freeze(torch.jit.script(Net()))


def test_tasks_and_futures():
    task = torch.jit.fork(lambda n: n + 1, 2)
    assert torch.jit.wait(task) == 3
    assert task.then(lambda done: done.value() * 2).wait() == 6
    assert torch.futures.wait_all([torch.jit.fork(abs, -n) for n in range(3)]) == [0, 1, 2]
    empty = torch.futures.Future()
    with pytest.raises(RuntimeError, match="done"):
        empty.value()
    empty.set_exception(KeyError("a"))
    with pytest.raises(KeyError):
        empty.wait()
