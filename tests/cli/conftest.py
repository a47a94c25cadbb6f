import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def flambeau(tmp_path):
    """Runs `python -m flambeau ...` in a folder of its own; gives the finished process."""

    def run(*words, **environment):
        env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        command = [sys.executable, "-m", "flambeau", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)

    return run


@pytest.fixture
def script(tmp_path):
    """Writes a script into that folder; gives its name."""

    def write(text, name="script.py"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)
        return name

    return write
