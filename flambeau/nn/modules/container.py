"""Modules that hold other modules, in order or by name."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from flambeau.core.errors import (
    ArgumentError,
    IndexOutOfRange,
    UnsupportedError,
    ValueRangeError,
    complaint,
)
from flambeau.nn.modules.module import Module, bracketed, indented
from flambeau.nn.modules.parameter_container import ParameterDict, ParameterList

__all__ = [
    "Container",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
]


def checked_index(name: str, index: Any, length: int) -> int:
    """index counted from the start."""
    position = operator.index(index)
    if not -length <= position < length:
        raise IndexOutOfRange(
            complaint(name, f"index {position} is out of range", {"length": length})
        )
    return position % length


class Container(Module):
    """The oldest container: children given as keyword arguments."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        warnings.warn(
            "nn.Container is deprecated; subclass nn.Module instead", FutureWarning, stacklevel=2
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


class _NumberedModules(Module):
    """Children named "0", "1", ... and reached like the entries of a list."""

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._part(index)
        return self._modules[self._key(index)]

    def _part(self, index: slice) -> Any:
        """A container of the same kind with some of the children."""
        return type(self)(list(self._modules.values())[index])

    def _renumber(self, modules: Iterable[Module]) -> None:
        self.__dict__["_modules"] = {str(i): module for i, module in enumerate(modules)}
        self._touch()

    def _key(self, index: int) -> str:
        """The name of the child at a position."""
        position = checked_index(type(self).__name__, index, len(self))
        return next(islice(self._modules, position, None))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: int | slice) -> None:
        keys = list(self._modules)
        chosen = keys[index] if isinstance(index, slice) else [self._key(index)]
        self._renumber(m for key, m in self._modules.items() if key not in set(chosen))

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def pop(self, key: int | slice) -> Any:
        """Remove and return the child at a position."""
        removed = self[key]
        del self[key]
        return removed

    def append(self, module: Module) -> Any:
        """Add a child at the end; returns this container."""
        self.add_module(str(len(self)), module)
        return self


class Sequential(_NumberedModules):
    """Calls its modules in order, each on the output of the one before.

    Made from modules, or from one OrderedDict of named modules.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named: Iterable[tuple[str, Any]] = args[0].items()
        else:
            named = ((str(i), module) for i, module in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def _part(self, index: slice) -> Sequential:
        return type(self)(OrderedDict(list(self._modules.items())[index]))

    def insert(self, index: int, module: Module) -> Sequential:
        """Add a child before a position, moving the others up."""
        if not isinstance(module, Module):
            raise AssertionError(
                complaint("Sequential.insert", "a Module is expected", {"got": type(module)})
            )
        if not -len(self) <= index <= len(self):
            raise IndexOutOfRange(
                complaint(
                    "Sequential.insert",
                    f"index {index} is out of range",
                    {"length": len(self)},
                )
            )
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Add the children of another container at the end."""
        for module in list(sequential):
            self.append(module)
        return self

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueRangeError(
                complaint("Sequential +", "a Sequential is expected", {"other": type(other)})
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueRangeError(
                complaint("Sequential +=", "a Sequential is expected", {"other": type(other)})
            )
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        self._check_factor(other)
        return Sequential(*chain.from_iterable([list(self)] * other))

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Sequential:
        self._check_factor(other)
        self._renumber(list(self) * other)
        return self

    @staticmethod
    def _check_factor(factor: Any) -> None:
        if not isinstance(factor, int):
            raise ArgumentError(
                complaint("Sequential *", "an int is expected", {"other": type(factor)})
            )
        if factor <= 0:
            raise ValueRangeError(
                complaint("Sequential *", "the factor must be positive", {"other": factor})
            )


class ModuleList(_NumberedModules):
    """A list of modules that registers them; it has no forward."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def insert(self, index: int, module: Module) -> None:
        """Add a child before a position, moving the others up."""
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add children at the end."""
        if not isinstance(modules, Iterable):
            raise ArgumentError(
                complaint("ModuleList.extend", "an iterable is expected", {"got": type(modules)})
            )
        for module in modules:
            self.append(module)
        return self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(
            complaint("ModuleList", "a list of modules has no forward", hint="Call its entries.")
        )

    def __repr__(self) -> str:
        """Runs of children that look the same are shown once: `(0-3): 4 x Linear(...)`."""
        runs: list[list[Any]] = []
        for i, child in enumerate(self):
            text = repr(child)
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = []
        for first, last, text in runs:
            shown = indented(text, 2)
            if first == last:
                lines.append(f"({first}): {shown}")
            else:
                lines.append(f"({first}-{last}): {last - first + 1} x {shown}")
        return bracketed(self._get_name(), [], lines)


class ModuleDict(Module):
    """A dictionary of modules that registers them; keeps the order of insertion."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]
        self._touch()

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all children."""
        self._modules.clear()
        self._touch()

    def pop(self, key: str) -> Module:
        """Remove a child and return it."""
        removed = self[key]
        del self[key]
        return removed

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """(name, module) pairs."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add or replace children from a mapping or (name, module) pairs."""
        if not isinstance(modules, Iterable):
            raise ArgumentError(
                complaint(
                    "ModuleDict.update",
                    "a mapping or (name, module) pairs are expected",
                    {"got": type(modules)},
                )
            )
        named = modules.items() if hasattr(modules, "items") else modules
        for i, entry in enumerate(named):
            if not isinstance(entry, (tuple, list)):
                raise ArgumentError(
                    complaint(
                        "ModuleDict.update", "a (name, module) pair is expected", {i: type(entry)}
                    )
                )
            if len(entry) != 2:
                raise ValueRangeError(
                    complaint(
                        "ModuleDict.update", "a pair is expected", {f"length of {i}": len(entry)}
                    )
                )
            self[entry[0]] = entry[1]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(
            complaint("ModuleDict", "a dict of modules has no forward", hint="Call its values.")
        )
