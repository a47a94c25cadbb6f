"""Children that must end well."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.fixture
def child():
    """Run a program in a fresh interpreter; its standard output, stripped."""

    def run(program: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, **environment},
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.strip()

    return run
