"""How many threads NumPy's matrix products use: a call into the OpenBLAS that NumPy brings."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np

_PREFIXES = ("scipy_openblas_", "openblas_")
_SUFFIXES = ("64_", "")


@functools.cache
def _setter() -> Callable[[int], None] | None:
    """`openblas_set_num_threads` of the library that NumPy has loaded, or None."""
    for path in _libraries():
        library = ctypes.CDLL(str(path))
        for name in (f"{p}set_num_threads{s}" for p in _PREFIXES for s in _SUFFIXES):
            if hasattr(library, name):
                setter = getattr(library, name)
                setter.argtypes, setter.restype = [ctypes.c_int], None
                return setter
    return None


def _libraries() -> list[Path]:
    package = Path(np.__file__).parent
    folders = (package.parent / "numpy.libs", package / ".dylibs")
    return [path for folder in folders for path in sorted(folder.glob("*openblas*"))]


def set_blas_threads(count: int) -> None:
    """Let BLAS use `count` threads; without effect where NumPy was built on another library."""
    setter = _setter()
    if setter is not None:
        setter(count)
