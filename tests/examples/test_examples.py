"""The examples run unchanged on flambeau and do what they say."""

import re
from pathlib import Path

import pytest

from tests.examples.transcript import difference, run_example

RECORDED = Path(__file__).parent / "recorded"


def last_number(text: str, label: str) -> float:
    return float(re.findall(rf"{label}\s+([\d.]+)", text)[-1])


@pytest.mark.parametrize("name, tolerance", [("tensor_basics", 1e-6), ("simple_nn", 1e-3)])
def test_output_is_what_was_recorded(name, tolerance):
    """Recorded from PyTorch: same seed, same numbers."""
    recorded = (RECORDED / f"{name}.txt").read_text()
    assert difference(run_example(name, on_flambeau=True), recorded, tolerance) == ""


def test_simple_nn_prints_its_training_time():
    assert re.search(r"training time: \d+\.\d\d s", run_example("simple_nn", on_flambeau=True))


def test_custom_function_finds_the_weights_on_the_grid():
    said = run_example("custom_function", on_flambeau=True)
    assert said.count("gradient right: True") == 2
    assert said.endswith("tensor([ 0.7500, -0.5000,  0.2500])\n")


def test_digits_cnn_reads():
    said = run_example("digits_cnn", on_flambeau=True)
    assert last_number(said, "read right") > 0.9


def test_lstm_beats_guessing_the_mean():
    """The variance of the sum of two uniform numbers is 1/6."""
    assert last_number(run_example("lstm", on_flambeau=True), "mean loss") < 0.05


def test_char_gpt_recites():
    said = run_example("char_gpt", on_flambeau=True)
    assert last_number(said, "loss") < 0.4
    assert "In the forests of the night" in said


@pytest.mark.parametrize(
    "ours, theirs, same",
    [
        ("a 1.00\n", "a 1.001\n", True),
        ("a 1.00\n", "a 1.1\n", False),
        ("a 1\n", "b 1\n", False),
        ("a 1\n", "a 1\na 2\n", False),
        ("time 1\na 1\n", "time 2\na 1\n", True),
        ("[1e-05, 2]\n", "[1.1e-05, 2]\n", True),
    ],
)
def test_difference(ours, theirs, same):
    assert (difference(ours, theirs, 1e-2) == "") is same
