"""A missing public name answers with the nearest name that exists.

A package whose names a PyTorch script may reach for ends with

    __getattr__ = missing_name(__name__)

and `torch.nn.Linaer` then raises an AttributeError that names `nn.Linear`. The search runs only
when the message is read, so that `hasattr(torch, "something")` stays cheap.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_PUBLIC: set[str] = set()  # modules that called missing_name: those a script imports from


class MissingName(AttributeError):
    """`module.name` does not exist; the text names what is nearest."""

    def __init__(self, module: str, name: str):
        # obj=None keeps the interpreter from appending a second suggestion of its own.
        super().__init__(module, name, name=name, obj=None)
        self.module = module

    def __str__(self) -> str:
        text = f"module {self.module!r} has no attribute {self.name!r}"
        near = nearest_name(self.module, str(self.name))
        return f"{text}. The nearest name is {near!r}." if near else f"{text}."

    def __reduce__(self) -> tuple[Any, ...]:
        return MissingName, (self.module, self.name)


def missing_name(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a public module: raises MissingName for every name."""
    _PUBLIC.add(module)

    def __getattr__(name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise MissingName(module, name)

    return __getattr__


def nearest_name(module: str, name: str) -> str | None:
    """The dotted public name nearest to `module.name`: the same name in another package of ours,
    the closest spelling in this module, a very close one in another package, or None."""
    others = list(_public_packages(module))
    for other, names in others:
        if name in names:
            return f"{other}.{name}"
    close = closest(name, _public_names(module))
    if close:
        return f"{module}.{close}"
    dotted = {n: f"{other}.{n}" for other, names in reversed(others) for n in names}
    return dotted.get(closest(name, dotted, cutoff=0.8) or "")


def closest(name: str, candidates: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The candidate spelled most like `name`, or None where none is similar. Case counts only
    between candidates that differ in nothing else."""
    import difflib

    spellings: dict[str, list[str]] = {}
    for candidate in candidates:
        spellings.setdefault(candidate.casefold(), []).append(candidate)
    found = difflib.get_close_matches(name.casefold(), spellings, n=1, cutoff=cutoff)
    return difflib.get_close_matches(name, spellings[found[0]], 1, 0.0)[0] if found else None


def _public_names(module: str) -> list[str]:
    loaded = sys.modules.get(module)
    return [n for n in vars(loaded) if not n.startswith("_")] if loaded else []


def _public_packages(asking: str) -> Iterator[tuple[str, list[str]]]:
    """The other packages that scripts import from, the shortest dotted name first."""
    for name in sorted(_PUBLIC - {asking}, key=lambda n: (n.count("."), n)):
        yield name, _public_names(name)
