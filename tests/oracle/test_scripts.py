"""What is recorded of the training scripts is what PyTorch prints."""

import pytest

from tests.examples.test_scripts import RECORDED
from tests.examples.transcript import SCRIPTS, difference, run_script

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_recorded(path):
    recorded = (RECORDED / f"{path.stem}.txt").read_text()
    assert difference(run_script(path, on_flambeau=False), recorded, 2e-3) == ""
