"""state_dict and load_state_dict."""

from collections import OrderedDict

import pytest

import flambeau as fb
from flambeau import nn


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


def test_state_dict_shares_memory_and_carries_versions():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    state = net.state_dict()
    assert isinstance(state, OrderedDict)
    assert state._metadata["1"] == {"version": 2}
    assert not state["0.weight"].requires_grad
    state["0.bias"].fill_(4)
    assert net[0].bias.tolist() == [4, 4]
    assert net.state_dict(prefix="a.", keep_vars=True)["a.0.bias"] is net[0].bias
    into = {"x": 1}
    assert net.state_dict(destination=into) is into and "0.weight" in into


def test_round_trip():
    source, target = nn.Linear(3, 2), nn.Linear(3, 2)
    result = target.load_state_dict(source.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    assert target.weight.tolist() == source.weight.tolist()
    assert target.weight is not source.weight


def test_strictness():
    net = nn.Sequential(nn.Linear(2, 2))
    state = net.state_dict()
    state["1.weight"] = state.pop("0.bias")
    state["0.x"] = fb.ones(1)
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(state)
    text = str(error.value)
    assert 'Missing key(s) in state_dict: "0.bias"' in text
    assert 'Unexpected key(s) in state_dict: "0.x", "1.weight"' in text or "1.weight" in text
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["0.bias"]
    assert sorted(result.unexpected_keys) == ["0.x", "1.weight"]


def test_wrong_shapes_and_kinds_are_listed_and_the_rest_is_loaded():
    net = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match=r"size mismatch for weight.*\(3, 2\).*\(2, 2\)"):
        net.load_state_dict({"weight": fb.ones(3, 2), "bias": fb.ones(2)})
    assert net.bias.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="a Tensor is expected; got int"):
        net.load_state_dict({"weight": 3, "bias": fb.ones(2)})
    with pytest.raises(TypeError, match="mapping"):
        net.load_state_dict([1])


def test_a_scalar_takes_a_one_element_vector():
    module = nn.Module()
    module.register_buffer("n", fb.tensor(1.0))
    module.load_state_dict({"n": fb.tensor([3.0])})
    assert module.n == 3


def test_assign_puts_the_tensors_in_place():
    net = nn.Linear(2, 2)
    weight = fb.ones(2, 2, dtype=fb.float64)
    net.bias.requires_grad_(False)
    net.load_state_dict({"weight": weight, "bias": fb.ones(2)}, assign=True)
    assert net.weight.dtype is fb.float64 and isinstance(net.weight, nn.Parameter)
    assert net.weight.requires_grad and not net.bias.requires_grad
    weight[0, 0] = 9
    assert net.weight[0, 0] == 9


def test_assign_fills_a_meta_module():
    net = nn.Linear(2, 2, device="meta")
    net.load_state_dict(nn.Linear(2, 2).state_dict(), assign=True)
    assert net.weight.device.type == "cpu"
    with pytest.warns(UserWarning, match="assign=True"):
        nn.Linear(2, 2, device="meta").load_state_dict(net.state_dict())


def test_extra_state():
    module = nn.Sequential(Counter())
    module[0].count = 7
    state = module.state_dict()
    assert state["0._extra_state"] == {"count": 7}
    other = nn.Sequential(Counter())
    other.load_state_dict(state)
    assert other[0].count == 7
    with pytest.raises(RuntimeError, match="_extra_state"):
        other.load_state_dict({})
    with pytest.raises(RuntimeError, match="_extra_state"):
        nn.Sequential(nn.ReLU()).load_state_dict(state)


def test_hooks_around_saving_and_loading():
    net, seen = nn.Linear(1, 1), []
    net.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append("before save"))
    net.register_state_dict_post_hook(
        lambda m, state, prefix, meta: state.update({prefix + "x": fb.ones(1)})
    )
    net.register_load_state_dict_pre_hook(lambda m, state, prefix, *rest: state.pop(prefix + "x"))
    net.register_load_state_dict_post_hook(lambda m, keys: seen.append(keys.missing_keys))
    state = net.state_dict()
    assert "x" in state
    net.load_state_dict(state)
    assert seen == ["before save", []]
    net.register_state_dict_post_hook(lambda m, state, prefix, meta: state)
    with pytest.raises(RuntimeError, match="must return None"):
        net.state_dict()


def test_an_older_batch_norm_has_no_count():
    net = nn.BatchNorm1d(2)
    state = net.state_dict()
    del state["num_batches_tracked"], state._metadata[""]["version"]
    net.load_state_dict(state)
    assert net.num_batches_tracked == 0


def test_a_checkpoint_gives_a_lazy_module_its_shapes():
    lazy, full = nn.LazyLinear(3), nn.Linear(4, 3)
    assert "weight" in lazy.state_dict()
    lazy.load_state_dict(full.state_dict())
    assert lazy.weight.tolist() == full.weight.tolist()
