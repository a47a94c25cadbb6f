"""Moving modules between dtypes, devices and memory formats."""

import pytest

import flambeau as fb
from flambeau import nn


def test_casts_touch_floating_point_only_and_keep_identity():
    net = nn.BatchNorm1d(2)
    weight = net.weight
    net(fb.ones(3, 2)).sum().backward()
    assert net.double() is net
    assert net.weight is weight and weight.dtype is fb.float64 and weight.grad.dtype is fb.float64
    assert net.running_mean.dtype is fb.float64 and net.num_batches_tracked.dtype is fb.int64
    assert net.half().weight.dtype is fb.float16
    assert net.bfloat16().weight.dtype is fb.bfloat16
    assert net.float().weight.dtype is fb.float32


@pytest.mark.parametrize(
    "how",
    [
        lambda m: m.to(fb.float64),
        lambda m: m.to("cpu", fb.float64),
        lambda m: m.to(dtype=fb.float64),
        lambda m: m.to(fb.ones(1, dtype=fb.float64)),
        lambda m: m.to(device="cpu", dtype=fb.float64, non_blocking=True),
    ],
)
def test_ways_to_call_to(how):
    assert how(nn.Linear(2, 2)).weight.dtype is fb.float64


def test_to_refuses_integers_and_nonsense():
    with pytest.raises(TypeError, match="floating-point"):
        nn.Linear(2, 2).to(fb.int64)
    with pytest.raises(TypeError):
        nn.Linear(2, 2).to("cpu", fb.float64, False, 3, 4)


def test_meta_and_back():
    net = nn.Linear(2, 2, device="meta")
    assert net.weight.device.type == "meta"
    with pytest.raises(NotImplementedError, match="to_empty"):
        net.to("cpu")
    net.to_empty(device="cpu")
    assert net.weight.device.type == "cpu" and isinstance(net.weight, nn.Parameter)
    assert tuple(net.weight.shape) == (2, 2)
    assert nn.Linear(2, 2).to("meta").weight.device.type == "meta"


def test_memory_format():
    net = nn.Conv2d(3, 4, 3).to(memory_format=fb.channels_last)
    assert net.weight.is_contiguous(memory_format=fb.channels_last)
    assert net.bias.is_contiguous()


def test_an_optimizer_keeps_updating_after_a_cast():
    net = nn.Linear(2, 1)
    optimizer = fb.optim.SGD(net.parameters(), lr=0.5)
    net.double()
    before = net.bias.item()
    net(fb.ones(1, 2, dtype=fb.float64)).sum().backward()
    optimizer.step()
    assert net.bias.item() == pytest.approx(before - 0.5)
