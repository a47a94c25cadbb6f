"""Walking the tree of modules."""

import types

import pytest

import flambeau as fb
from flambeau import nn


def tied():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2))
    net[2].weight = net[0].weight
    return net


def names(pairs):
    return [name for name, _ in pairs]


def test_names_come_in_order_and_shared_ones_once():
    net = tied()
    assert names(net.named_parameters()) == ["0.weight", "0.bias", "1.weight", "1.bias", "2.bias"]
    assert "2.weight" in names(net.named_parameters(remove_duplicate=False))
    assert names(net.named_parameters(prefix="net", recurse=False)) == []
    assert names(net.named_parameters("net"))[0] == "net.0.weight"
    assert names(net.named_buffers()) == [
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
    ]
    assert names(net.named_modules()) == ["", "0", "1", "2"]
    assert names(net.named_children()) == ["0", "1", "2"]
    assert len(list(net.parameters())) == 5 and len(list(net.buffers())) == 3


def test_traversals_are_lazy():
    net = tied()
    for walk in (net.parameters, net.named_modules, net.children, net.buffers):
        assert isinstance(walk(), types.GeneratorType)


def test_a_shared_child_is_met_once():
    shared = nn.ReLU()
    net = nn.Sequential(shared, shared)
    assert names(net.named_children()) == ["0"]
    assert names(net.named_modules()) == ["", "0"]
    assert names(net.named_modules(remove_duplicate=False)) == ["", "0", "1"]


def test_look_up_by_path():
    net = nn.Sequential(nn.Sequential(nn.Linear(2, 2)))
    assert net.get_submodule("") is net and net.get_submodule("0.0") is net[0][0]
    assert net.get_parameter("0.0.bias") is net[0][0].bias
    norm = nn.Sequential(nn.BatchNorm1d(2))
    assert norm.get_buffer("0.running_mean") is norm[0].running_mean
    for path in ("1", "0.x", "0.0.weight"):
        with pytest.raises(AttributeError):
            net.get_submodule(path)
    with pytest.raises(AttributeError, match=r"not an nn\.Parameter"):
        norm.get_parameter("0.running_mean")
    with pytest.raises(AttributeError, match="not a buffer"):
        norm.get_buffer("0.weight")


def test_set_submodule():
    net = nn.Sequential(nn.Sequential(nn.Linear(2, 2)))
    net.set_submodule("0.0", nn.ReLU())
    assert isinstance(net[0][0], nn.ReLU)
    net.set_submodule("new", nn.Tanh())
    assert isinstance(net.new, nn.Tanh)
    with pytest.raises(AttributeError):
        net.set_submodule("other", nn.Tanh(), strict=True)
    with pytest.raises(ValueError):
        net.set_submodule("", nn.Tanh())


def test_apply_visits_children_first():
    seen = []
    net = nn.Sequential(nn.Linear(1, 1))
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "Sequential"]


def test_train_eval_requires_grad_zero_grad():
    net = tied()
    assert net.eval() is net and not any(m.training for m in net.modules())
    assert net.train().training
    with pytest.raises(ValueError, match="must be a bool"):
        net.train(1)
    net(fb.ones(4, 2)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad(set_to_none=False)
    assert all(p.grad.abs().sum() == 0 for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())
