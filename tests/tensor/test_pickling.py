"""Tensors through pickle and copy."""

import copy
import pickle

import pytest

import flambeau as torch
from flambeau import nn


class Marked(torch.Tensor):
    """A subclass with attributes."""


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("make", [
    lambda x: x, lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[0, 0], lambda x: x[2:2],
    lambda x: x.to(torch.bfloat16), lambda x: x[:1].expand(3, 4), lambda x: x > 3,
    lambda x: x.clone().requires_grad_(), lambda x: nn.Parameter(x), lambda x: nn.Buffer(x)])
def test_pickle(make, protocol):
    x = make(torch.arange(12.0).reshape(3, 4))
    got = pickle.loads(pickle.dumps(x, protocol))
    assert type(got) is type(x)
    assert got.dtype == x.dtype
    assert got.shape == x.shape
    assert got.tolist() == x.tolist()
    assert got.requires_grad == x.requires_grad
    with torch.no_grad():
        got.zero_()  # its own memory, and it may be written


def test_a_small_view_makes_a_small_pickle():
    assert len(pickle.dumps(torch.zeros(100_000)[:3])) < 1000


def test_dense_strides_survive():
    x = torch.rand(2, 3, 4).permute(2, 0, 1)
    assert pickle.loads(pickle.dumps(x)).stride() == x.stride()


def test_memory_may_travel_outside_of_the_pickle():
    buffers = []
    data = pickle.dumps(torch.arange(1000), 5, buffer_callback=buffers.append)
    assert len(data) < 1000
    assert pickle.loads(data, buffers=buffers).tolist() == list(range(1000))


def test_subclasses_and_attributes():
    x = torch.ones(2).as_subclass(Marked)
    x.mark = ["kept"]
    for got in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert type(got) is Marked
        assert got.mark == ["kept"]
        assert got.mark is not x.mark


def test_meta_tensors():
    x = torch.ones(2, 3, device="meta")
    for got in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert got.device.type == "meta"
        assert got.shape == (2, 3)


def test_modules():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())
    x = torch.rand(5, 3)
    for got in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        assert got(x).tolist() == net(x).tolist()
        assert not {id(p) for p in got.parameters()} & {id(p) for p in net.parameters()}
        assert list(got.state_dict()) == list(net.state_dict())


def test_tied_parameters_stay_tied():
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight
    for got in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        assert got[1].weight is got[0].weight


def test_deep_copies_of_views_share_a_copy():
    x = torch.zeros(4)
    a, b = copy.deepcopy([x, x[1:]])
    a[1] = 5.0
    assert b.tolist() == [5, 0, 0]
    assert x.tolist() == [0, 0, 0, 0]


def test_deep_copy_keeps_the_gradient():
    x = torch.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    got = copy.deepcopy(x)
    assert got.grad.tolist() == [3, 3]
    assert got.grad is not x.grad


def test_what_is_computed_cannot_be_deep_copied():
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(torch.ones(2, requires_grad=True) * 2)
