import pytest

import flambeau as torch
from flambeau.cli.demo import checkpoint
from flambeau.cli.demo.training import Settings, Training

SETTINGS = Settings(epochs=2, batch=50, held_out=60)


@pytest.fixture
def training(blots):
    return Training(*blots, SETTINGS)


def run(training, steps):
    for _ in range(steps):
        training.advance()
    return training


def assert_same_bits(one, other):
    ours, theirs = one.state_dict(), other.state_dict()
    for name, value in ours["model"].items():
        assert torch.equal(value, theirs["model"][name]), name
    assert ours["losses"] == theirs["losses"]
    assert ours["accuracies"] == theirs["accuracies"]
    assert torch.equal(ours["generator"], theirs["generator"])


def test_it_learns(training):
    run(training, training.total_steps)
    assert training.finished
    assert training.losses[-1] < training.losses[0]
    assert training.accuracies[-1][0] == training.total_steps


@pytest.mark.parametrize("stop", [1, 4, 6])
def test_a_resumed_run_ends_with_the_same_bits(blots, tmp_path, stop):
    """Stopped in the middle of an epoch, and at its end."""
    whole = run(Training(*blots, SETTINGS), 8)
    half = run(Training(*blots, SETTINGS), stop)
    checkpoint.save(half.state_dict(), tmp_path / "half.pt")
    torch.manual_seed(99)
    torch.randn(7)
    state = checkpoint.load(tmp_path / "half.pt")
    resumed = Training(*blots, Settings(**state["settings"]))
    resumed.load_state_dict(state)
    assert_same_bits(whole, run(resumed, 8 - stop))


def test_every_image_comes_once_an_epoch(training):
    seen = 0
    for _ in range(training.steps_per_epoch):
        seen += training.advance()
    assert seen == len(training.labels) == 200
    assert len(training.held_out[1]) == 60


def test_held_out_digits_do_not_depend_on_the_seed(blots):
    one, other = (Training(*blots, Settings(seed=seed, held_out=60)) for seed in (0, 5))
    assert torch.equal(one.held_out[1], other.held_out[1])
