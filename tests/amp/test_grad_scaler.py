"""What GradScaler does beyond a plain course of training."""

import pickle

import pytest

import flambeau as fb
from flambeau.amp import GradScaler


def parameter(*values):
    p = fb.tensor(list(values), requires_grad=True)
    return p, fb.optim.SGD([p], lr=1.0)


def test_gradients_can_be_clipped_between_unscale_and_step():
    p, optimizer = parameter(1.0, 2.0)
    scaler = GradScaler("cpu", init_scale=4.0)
    scaler.scale((p * 3).sum()).backward()
    assert p.grad.tolist() == [12.0, 12.0]
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [3.0, 3.0]
    p.grad.clamp_(max=1.0)
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [0.0, 1.0]


def test_one_of_two_optimizers_skips():
    a, first = parameter(1.0)
    b, second = parameter(1.0)
    scaler = GradScaler("cpu", init_scale=4.0)
    scaler.scale((a * float("inf")).sum() + b.sum()).backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert a.tolist() == [1.0]
    assert b.tolist() == [0.0]
    assert scaler.get_scale() == 2.0


def test_outputs_are_scaled_in_their_container():
    scaler = GradScaler("cpu", init_scale=2.0)
    one, (two, three) = scaler.scale((fb.ones(1), [fb.ones(2), fb.ones(1)]))
    assert one.tolist() == [2.0]
    assert two.tolist() == [2.0, 2.0]
    assert three.tolist() == [2.0]


def test_step_passes_arguments_and_returns_the_optimizers_result():
    p, _ = parameter(1.0)

    class Optimizer(fb.optim.SGD):
        def step(self, closure=None, *, extra=None):
            super().step()
            return extra

    optimizer = Optimizer([p], lr=1.0)
    scaler = GradScaler("cpu")
    scaler.scale(p.sum()).backward()
    assert scaler.step(optimizer, extra=7) == 7


def test_a_new_scale_by_hand():
    p, optimizer = parameter(1.0)
    scaler = GradScaler("cpu")
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    scaler.update(16.0)
    assert scaler.get_scale() == 16.0
    scaler.update(fb.tensor([32.0]))
    assert scaler.get_scale() == 32.0


def test_the_scale_never_becomes_infinite():
    p, optimizer = parameter(1.0)
    scaler = GradScaler("cpu", init_scale=2.0**127, growth_interval=1)
    scaler.scale((p * 1e-30).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**127


def test_disabled_passes_everything_through():
    p, optimizer = parameter(1.0)
    scaler = GradScaler("cpu", enabled=False)
    loss = p.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [0.0]
    assert scaler.get_scale() == 1.0
    assert scaler.state_dict() == {}
    assert not scaler.is_enabled()


def test_state_travels_by_state_dict_and_pickle():
    p, optimizer = parameter(1.0)
    scaler = GradScaler("cpu", init_scale=8.0, growth_interval=5)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    with pytest.raises(AssertionError, match="at the end of an iteration"):
        pickle.dumps(scaler)
    scaler.update()
    other = GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == scaler.state_dict()


def test_getters_and_setters():
    scaler = GradScaler("cpu")
    for name, value in (("growth_factor", 3.0), ("backoff_factor", 0.25), ("growth_interval", 7)):
        getattr(scaler, f"set_{name}")(value)
        assert getattr(scaler, f"get_{name}")() == value


def test_error_texts_say_what_to_do():
    p, optimizer = parameter(1.0)
    scaler = GradScaler("cpu")
    with pytest.raises(
        AssertionError, match=r"a loss must have been scaled.*scaler\.scale\(loss\)"
    ):
        scaler.step(optimizer)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step comes once an update. Call update\(\) first"):
        scaler.step(optimizer)
