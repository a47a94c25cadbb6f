"""Whole training scripts, written for PyTorch and unchanged, print what PyTorch prints."""

from pathlib import Path

import pytest

from tests.examples.transcript import SCRIPTS, difference, run_script

RECORDED = Path(__file__).parent / "recorded"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script_prints_what_was_recorded_from_pytorch(path):
    recorded = (RECORDED / f"{path.stem}.txt").read_text()
    assert difference(run_script(path, on_flambeau=True), recorded, 2e-3) == ""
