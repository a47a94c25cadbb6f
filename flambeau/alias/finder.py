"""The import hook: `torch` and its submodules are flambeau's own module objects.

Invariant: `sys.modules["torch.x"] is sys.modules["flambeau.x"]`, so that a class imported by either
name is one class. The loader hands over a module that is loaded already and puts back its
`__spec__`, which the import machinery overwrites.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from flambeau.alias.names import moved, ours
from flambeau.core.errors import FlambeauError
from flambeau.core.nearest import closest

# Packages built on PyTorch's compiled library: they cannot load on anything else.
_BOUND_TO_PYTORCH = {"torchvision", "torchaudio", "torchtext"}


class MissingModule(FlambeauError, ModuleNotFoundError):
    """PyTorch has a module of this name, or is needed for it, and flambeau has none."""


class _Loader(Loader):
    """Hands over the module of flambeau named `target`."""

    def __init__(self, target: str):
        self.target = target
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.target)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


class _Finder(MetaPathFinder):
    """Finds `torch` and everything below it in flambeau."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "torch" or name.startswith("torch."):
            found = _target(name)
            return ModuleSpec(name, _Loader(found.name), is_package=_is_package(found))
        if name in _BOUND_TO_PYTORCH:
            raise MissingModule(
                f"{name} is built on PyTorch's compiled library and cannot run on flambeau; "
                f"run the script with PyTorch, or without {name}",
                name=name,
            )
        return None


def _target(name: str) -> ModuleSpec:
    """The flambeau module for `name`; where there is none, MissingModule names the nearest."""
    for candidate in (ours(name), moved(name)):
        found = _found(candidate) if candidate else None
        if found is not None:
            return found
    raise MissingModule(_absence(name), name=name)


def _found(module: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(module)
    except ModuleNotFoundError:  # nor is there the package it would be in
        return None


def _is_package(spec: ModuleSpec) -> bool:
    return spec.submodule_search_locations is not None


def _absence(name: str) -> str:
    package, _, leaf = name.rpartition(".")
    near = closest(leaf, _submodules(ours(package)))
    hint = f" The nearest module is {package + '.' + near!r}." if near else ""
    return f"No module named {name!r}: flambeau has no such module.{hint}"


def _submodules(package: str) -> list[str]:
    import pkgutil

    path = getattr(sys.modules.get(package), "__path__", [])
    return [m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_")]


_FINDER = _Finder()


def install() -> None:
    """From here on `import torch` gives flambeau. Calling it again changes nothing.

    Raises RuntimeError where PyTorch itself is loaded already: half a program on each would fail
    later and less clearly.
    """
    loaded = sys.modules.get("torch")
    if loaded is not None and loaded is not sys.modules.get("flambeau"):
        raise RuntimeError(
            "flambeau.alias.install: PyTorch must not be loaded yet; got torch from "
            f"{getattr(loaded, '__file__', 'an unknown place')}. Call install() before the first "
            "import of torch."
        )
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def uninstall() -> None:
    """Undo install(): later imports of `torch` find PyTorch again, if it is there."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
    for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
        if getattr(sys.modules[name], "__name__", "").partition(".")[0] == "flambeau":
            del sys.modules[name]
