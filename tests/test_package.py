"""What a user installs: light to import, and one wheel for every platform."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Heavy, and needed only by some programs: loaded on first use.
LAZY = ["llvmlite", "ml_dtypes", "bytecode", "safetensors", "tqdm", "PIL", "mpi4py", "scipy"]
LAZY += ["multiprocessing", "asyncio", "difflib", "unittest", "flambeau.cli", "torch"]


def python(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, **options)


def test_import_loads_nothing_heavy():
    code = "import sys, flambeau; print('\\n'.join(sys.modules))"
    loaded = set(python("-c", code, cwd=ROOT).stdout.split())
    assert "flambeau" in loaded
    assert not loaded & set(LAZY)


def test_the_version_is_written_once():
    from flambeau.version import __version__

    code = "import flambeau; print(flambeau.__version__)"
    assert python("-c", code, cwd=ROOT).stdout.strip() == __version__
    assert python("-m", "flambeau", "--version", cwd=ROOT).stdout == f"flambeau {__version__}\n"


def test_the_wheel_is_pure(tmp_path):
    pytest.importorskip("hatchling")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "flambeau", tmp_path / "flambeau")
    build = "from hatchling.build import build_wheel; print(build_wheel('dist'))"
    name = python("-c", build, cwd=tmp_path).stdout.split()[-1]
    assert name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(tmp_path / "dist" / name) as wheel:
        suffixes = {Path(entry).suffix for entry in wheel.namelist() if "dist-info" not in entry}
    assert suffixes <= {".py", ".pyi", ".typed", ""}
