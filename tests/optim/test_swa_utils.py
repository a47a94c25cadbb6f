"""Averaged models and their batch statistics."""

import pytest

import flambeau as fb
from flambeau.optim.swa_utils import (
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)


def linear(value):
    model = fb.nn.Linear(2, 1, bias=False)
    with fb.no_grad():
        model.weight.fill_(value)
    return model


def set_to(model, value):
    with fb.no_grad():
        for p in model.parameters():
            p.fill_(value)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 2.0),
        ({"avg_fn": get_swa_avg_fn()}, 2.0),
        ({"multi_avg_fn": get_swa_multi_avg_fn()}, 2.0),
        ({"avg_fn": get_ema_avg_fn(0.5)}, 2.25),
        ({"multi_avg_fn": get_ema_multi_avg_fn(0.5)}, 2.25),
    ],
)
def test_averages_of_one_two_three(options, expected):
    model = linear(1.0)
    averaged = AveragedModel(model, **options)
    for value in (1.0, 2.0, 3.0):
        set_to(model, value)
        averaged.update_parameters(model)
    assert averaged.module.weight.flatten().tolist() == pytest.approx([expected] * 2)
    assert averaged.n_averaged.item() == 3
    assert averaged(fb.ones(1, 2)).item() == pytest.approx(2 * expected)
    assert model.weight.flatten().tolist() == [3.0, 3.0]


def test_the_count_is_part_of_the_checkpoint():
    averaged = AveragedModel(linear(1.0))
    averaged.update_parameters(linear(1.0))
    assert sorted(averaged.state_dict()) == ["module.weight", "n_averaged"]


@pytest.mark.parametrize("use_buffers", [False, True])
def test_buffers_are_copied_or_averaged(use_buffers):
    norm = fb.nn.BatchNorm1d(1)
    averaged = AveragedModel(norm, use_buffers=use_buffers)
    for value in (1.0, 3.0):
        norm.running_mean.fill_(value)
        averaged.update_parameters(norm)
    assert averaged.module.running_mean.item() == (2.0 if use_buffers else 3.0)


def test_update_bn_measures_anew():
    model = fb.nn.Sequential(fb.nn.BatchNorm1d(1)).eval()
    model[0].running_mean.fill_(100.0)
    update_bn([fb.tensor([[1.0], [3.0]]), (fb.tensor([[4.0], [8.0]]), "label")], model)
    assert model[0].running_mean.item() == pytest.approx(4.0)
    assert model[0].momentum == 0.1
    assert not model.training


def test_models_without_batch_norm_are_left_alone():
    class Model(fb.nn.Module):
        def forward(self, x):
            raise AssertionError("not called")

    update_bn([fb.ones(1)], Model())


def test_refusals():
    with pytest.raises(AssertionError, match="exclude each other"):
        AveragedModel(linear(1.0), avg_fn=get_swa_avg_fn(), multi_avg_fn=get_swa_multi_avg_fn())
    for make in (get_ema_avg_fn, get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match=r"decay must be in \[0, 1\]; got decay=1.5"):
            make(1.5)
