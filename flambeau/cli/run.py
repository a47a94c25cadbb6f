"""`flambeau run script.py [args]`: an unmodified PyTorch script runs on flambeau.

The script sees what it sees under `python script.py`: its own `__main__`, `sys.argv`, `sys.path[0]`
and exit code. Only `import torch` differs.
"""

import argparse
import importlib.util
import os
import runpy
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from flambeau import alias
from flambeau.cli.tracebacks import show_user_lines
from flambeau.core.nearest import closest


def main(arguments: list[str]) -> int:
    """Run the script or module named first; everything after it belongs to the script."""
    ours, target, rest = _split(arguments)
    options = _parser().parse_args([*ours, *target])
    if options.module:
        return _run_module(options.script, rest)
    path = Path(options.script)
    if not path.exists():
        print(_absence(path), file=sys.stderr)
        return 2
    if path.is_dir() and not (path / "__main__.py").exists():
        print(f"flambeau run: a folder must hold __main__.py; got {str(path)!r}.", file=sys.stderr)
        return 1
    return _run_path(path, options.script, rest)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flambeau run",
        usage="flambeau run [-m] script [arguments of the script ...]",
        description="Run an unmodified PyTorch script: `import torch` gives flambeau.",
        epilog="Tracebacks show the script's own lines; FLAMBEAU_TRACEBACK=full shows every line.",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="script is a module's name")
    parser.add_argument("script", help="a file, a folder with __main__.py, or after -m a module")
    return parser


def _split(arguments: list[str]) -> tuple[list[str], list[str], list[str]]:
    """(our options, the script, the script's arguments): the first plain word is the script."""
    for at, word in enumerate(arguments):
        if not word.startswith("-"):
            return arguments[:at], [word], arguments[at + 1 :]
    return arguments, [], []


def _absence(path: Path) -> str:
    folder = path.parent
    others = [p.name for p in folder.glob("*.py")] if folder.is_dir() else []
    near = closest(path.name, others)
    hint = f" The nearest name there is {str(folder / near)!r}." if near else ""
    return f"flambeau run: the script must exist; got {str(path)!r}.{hint}"


def _run_module(name: str, rest: list[str]) -> int:
    """What `python -m name` does."""
    _enter(os.getcwd(), ["-m", *rest])
    if not _module_exists(name):
        print(f"flambeau run: the module must exist; got {name!r}.", file=sys.stderr)
        return 1
    runpy.run_module(name, run_name="__main__", alter_sys=True)
    return 0


def _module_exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _run_path(path: Path, as_given: str, rest: list[str]) -> int:
    """What `python path` does, for a source file, or a folder or zip file with a __main__.py."""
    if path.is_dir() or path.suffix in (".zip", ".pyz"):
        _enter(os.path.realpath(path), [as_given, *rest])
        runpy.run_path(as_given, run_name="__main__")
        return 0
    loader = SourceFileLoader("__main__", os.path.abspath(path))
    _enter(os.path.dirname(os.path.realpath(path)), [as_given, *rest])
    module = _fresh_main(loader)
    source = loader.get_data(loader.path)
    exec(loader.source_to_code(source, loader.path), module.__dict__)
    return 0


def _fresh_main(loader: SourceFileLoader) -> ModuleType:
    """A new `__main__`, left in place until the process ends: exit handlers and pickles need it."""
    module = ModuleType("__main__")
    module.__file__ = loader.path
    module.__loader__ = loader
    vars(module).update(__builtins__=__builtins__, __annotations__={}, __cached__=None)
    sys.modules["__main__"] = module
    return module


def _enter(folder: str, argv: list[str]) -> None:
    """Set up the process as the interpreter would for a script in `folder`."""
    sys.argv[:] = argv
    if not sys.flags.safe_path:
        sys.path[0] = _ScriptFolder(folder)
    alias.install()
    sys.excepthook = show_user_lines(sys.excepthook)


class _ScriptFolder(str):
    """The script's folder in `sys.path`, which multiprocessing hands to the processes it spawns
    before they import the script: unpickling it makes `import torch` give flambeau there too."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _folder_of_spawned_process, (str(self),)


def _folder_of_spawned_process(folder: str) -> str:
    alias.install()
    return _ScriptFolder(folder)
