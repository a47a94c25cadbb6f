"""Running the examples, and comparing what two runs printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted(file.stem for file in (ROOT / "examples").glob("*.py"))
SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[+-]?\d+)?")


def run_example(name: str, *, on_flambeau: bool) -> str:
    """What examples/<name>.py prints, on flambeau or on PyTorch."""
    return run_script(ROOT / "examples" / f"{name}.py", on_flambeau=on_flambeau)


def run_script(path: Path, *, on_flambeau: bool) -> str:
    """What an unmodified PyTorch script prints, on flambeau or on PyTorch."""
    launcher = ["-m", "flambeau", "run"] if on_flambeau else []
    command = [sys.executable, "-W", "error", *launcher, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines_without_times(text: str) -> list[str]:
    return [line for line in text.splitlines() if "time" not in line]


def difference(ours: str, theirs: str, tolerance: float) -> str:
    """The first line that differs in words, or in a number by more than `tolerance` (relative, and
    absolute below 1); empty where there is none. Lines about time are left out."""
    one, other = lines_without_times(ours), lines_without_times(theirs)
    for line, expected in zip(one, other):
        if _NUMBER.sub("#", line) != _NUMBER.sub("#", expected):
            return f"{line!r}, expected {expected!r}"
        for got, wanted in zip(_NUMBER.findall(line), _NUMBER.findall(expected)):
            if abs(float(got) - float(wanted)) > tolerance * max(1, abs(float(wanted))):
                return f"{line!r}, expected {expected!r}"
    return "" if len(one) == len(other) else f"{len(one)} lines, expected {len(other)}"
