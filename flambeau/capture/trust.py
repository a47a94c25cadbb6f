"""Which code is taken as it is, and which is looked into.

*Native* code works on tensors and runs for real on traced ones. *Trusted* code belongs to flambeau
or to Python's library: it is interpreted like the user's, and nobody is expected to replace its
functions while a program runs, so they are not guarded. *Opaque* code always runs as plain Python.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import types
from typing import Any

NATIVE = (
    "flambeau.autograd",
    "flambeau.core",
    "flambeau.eager",
    "flambeau.functional",
    "flambeau.linalg",
    "flambeau.fft",
    "flambeau.special",
    "flambeau.ops",
    "flambeau.random",
    "flambeau.tensor",
    "flambeau.nn.functional",
    "flambeau.nn.init",
    "flambeau.nn.parameter",
    "flambeau.nn.recurrence",
)
INTERPRETED = (
    "flambeau.autograd.function",
    "flambeau.autograd.handles",
    "flambeau.autograd.modes",
)
EAGER_ONLY = ("flambeau.nn.recurrent_kernels",)
"""Library code that computes on arrays."""
SWITCHES = ("flambeau.random.generator", "flambeau.core.dtype", "flambeau.tensor.inspection")
"""Functions that set what the whole process uses: seeds, default types."""
OPAQUE_MODULES = frozenset(
    "asyncio ctypes gc importlib inspect linecache logging multiprocessing os pdb pickle queue "
    "random re signal socket subprocess sys tempfile threading time traceback unittest warnings "
    "weakref".split()
)

LEFT_ALONE = frozenset(
    "numpy scipy ml_dtypes llvmlite bytecode tqdm rich pytest _pytest pluggy hypothesis coverage "
    "matplotlib PIL pandas sklearn torch jax debugpy IPython ipykernel safetensors mpi4py "
    "setuptools _distutils_hack".split()
)
"""Installed packages whose frames never hold tensor code of ours."""

_LIBRARY = tuple(
    os.path.realpath(sysconfig.get_paths()[k]) + os.sep for k in ("stdlib", "platstdlib")
)
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
opaque_codes: set[types.CodeType] = set()
"""Code objects that `disable` was applied to."""


def _below(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == p or name.startswith(p + ".") for p in prefixes)


@functools.lru_cache(maxsize=4096)
def _is_native_module(name: str) -> bool:
    return _below(name, NATIVE) and not _below(name, INTERPRETED)


def module_name(function: types.FunctionType) -> str:
    """The module whose globals the function uses."""
    return function.__globals__.get("__name__", "")


def is_native(function: types.FunctionType) -> bool:
    """Runs for real on traced tensors."""
    return _is_native_module(module_name(function))


def is_native_class(cls: type) -> bool:
    return _is_native_module(getattr(cls, "__module__", "") or "")


@functools.lru_cache(maxsize=4096)
def _is_trusted_file(filename: str) -> bool:
    if filename.startswith((_PACKAGE, "<frozen ")):
        return True
    path = os.path.realpath(filename)
    return path.startswith(_LIBRARY) and "site-packages" not in path


def is_trusted(function: types.FunctionType) -> bool:
    """Belongs to flambeau or to the standard library."""
    return _is_trusted_file(function.__code__.co_filename)


def is_trusted_class(cls: type) -> bool:
    name = (getattr(cls, "__module__", "") or "").partition(".")[0]
    return name == "flambeau" or name in sys.stdlib_module_names and name != "__main__"


def is_trusted_module(module: Any) -> bool:
    name = getattr(module, "__name__", "").partition(".")[0]
    return name == "flambeau" or name in sys.stdlib_module_names and name != "__main__"


def is_opaque(function: types.FunctionType) -> bool:
    """Must run as plain Python: it talks to the world or was marked by the user."""
    if function.__code__ in opaque_codes:
        return True
    if function.__dict__.get("_flambeau_disable"):
        return True
    if module_name(function) in SWITCHES or module_name(function) in EAGER_ONLY:
        return True
    top = module_name(function).partition(".")[0]
    return top in OPAQUE_MODULES and is_trusted(function)


@functools.lru_cache(maxsize=4096)
def offers_frames(code: types.CodeType) -> bool:
    """Whether frames of this code object may be captured when the hook sees them."""
    name = code.co_filename
    if name.startswith("<") and not name.startswith(("<ipython", "<stdin")):
        return False
    if name.startswith(_PACKAGE):
        if name.endswith(("recurrence.py", "recurrent_kernels.py")):
            return False
        return name.startswith((_PACKAGE + "nn" + os.sep, _PACKAGE + "optim" + os.sep))
    _, found, rest = name.partition("site-packages" + os.sep)
    if found and rest.partition(os.sep)[0] in LEFT_ALONE:
        return False
    return not _is_trusted_file(name)
