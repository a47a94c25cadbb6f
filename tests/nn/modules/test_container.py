"""Containers of modules and parameters."""

from collections import OrderedDict

import pytest

import flambeau as fb
from flambeau import nn


def kinds(container):
    return [type(m).__name__ for m in container]


def test_sequential_like_a_list():
    net = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    assert len(net) == 3 and isinstance(net[-1], nn.Sigmoid)
    assert kinds(net[1:]) == ["Tanh", "Sigmoid"] and list(net[1:]._modules) == ["1", "2"]
    del net[0]
    assert kinds(net) == ["Tanh", "Sigmoid"] and list(net._modules) == ["0", "1"]
    net[0] = nn.ELU()
    net.insert(1, nn.ReLU()).append(nn.GELU())
    assert kinds(net) == ["ELU", "ReLU", "Sigmoid", "GELU"]
    assert isinstance(net.pop(0), nn.ELU)
    assert kinds(net + net[:1]) == ["ReLU", "Sigmoid", "GELU", "ReLU"]
    assert len(net * 2) == len(2 * net) == 6
    net *= 2
    net += net[:1]
    assert len(net) == 7 and list(net._modules) == [str(i) for i in range(7)]
    del net[1:]
    assert kinds(net) == ["ReLU"]


def test_sequential_of_names():
    net = nn.Sequential(OrderedDict(first=nn.ReLU(), second=nn.Tanh()))
    assert net.first is net[0] and list(net._modules) == ["first", "second"]


def test_sequential_refuses():
    net = nn.Sequential(nn.ReLU())
    with pytest.raises(IndexError, match="index 3 is out of range"):
        _ = net[3]
    with pytest.raises(TypeError):
        net.append(3)
    with pytest.raises(ValueError):
        _ = net + 3
    with pytest.raises(ValueError):
        _ = net * 0
    with pytest.raises(TypeError):
        _ = net * 1.5


def test_module_list():
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    layers.insert(1, nn.ReLU())
    layers += [nn.ReLU()]
    assert kinds(layers) == ["Linear", "ReLU", "Linear", "Linear", "ReLU"]
    assert isinstance(layers[1:3], nn.ModuleList) and len(layers + [nn.ReLU()]) == 6
    assert repr(layers) == (
        "ModuleList(\n"
        "  (0): Linear(in_features=2, out_features=2, bias=True)\n"
        "  (1): ReLU()\n"
        "  (2-3): 2 x Linear(in_features=2, out_features=2, bias=True)\n"
        "  (4): ReLU()\n"
        ")"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"
    with pytest.raises(NotImplementedError):
        layers(fb.ones(2))
    with pytest.raises(TypeError):
        layers.extend(3)


def test_module_dict():
    layers = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
    layers["c"] = nn.ELU()
    layers.update([("d", nn.GELU())])
    assert list(layers) == ["b", "a", "c", "d"] and "a" in layers and len(layers) == 4
    assert isinstance(layers.pop("a"), nn.Tanh) and list(layers.keys()) == ["b", "c", "d"]
    assert [name for name, _ in layers.items()] == ["b", "c", "d"]
    del layers["b"]
    layers.clear()
    assert not len(layers)
    with pytest.raises(TypeError):
        layers.update(3)


def test_parameter_list():
    entries = nn.ParameterList([fb.ones(2), nn.Parameter(fb.zeros(1)), "text"])
    entries.append(fb.ones(3))
    assert [n for n, _ in entries.named_parameters()] == ["0", "1", "3"]
    assert entries[2] == "text" and len(entries[1:3]) == 2 and len(list(entries)) == 4
    entries[-1] = fb.zeros(3)
    assert entries[3].tolist() == [0, 0, 0] and isinstance(entries[3], nn.Parameter)
    with pytest.raises(IndexError):
        _ = entries[4]
    with pytest.raises(RuntimeError):
        entries()


def test_parameter_dict():
    entries = nn.ParameterDict({"b": fb.ones(2), "a": 3})
    assert list(entries) == ["a", "b"] and isinstance(entries["b"], nn.Parameter)
    entries["c"] = fb.zeros(1)
    assert entries.get("x", 5) == 5 and entries.setdefault("a", 9) == 3
    assert list(reversed(entries)) == ["c", "b", "a"]
    assert entries.popitem()[0] == "c" and entries.pop("a") == 3
    merged = entries | nn.ParameterDict({"z": 1})
    assert list(merged) == ["b", "z"] and list(entries) == ["b"]
    with pytest.raises(KeyError):
        _ = entries["nothing"]
    with pytest.raises(TypeError):
        entries[3] = 1
    entries.clear()
    assert not len(entries)
