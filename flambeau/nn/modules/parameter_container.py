"""Lists and dictionaries of parameters. Tensors become parameters; other values are kept as is."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flambeau.core.errors import (
    ArgumentError,
    IndexOutOfRange,
    OpError,
    ValueRangeError,
    complaint,
)
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.tensor import Tensor

__all__ = ["ParameterDict", "ParameterList"]


def as_entry(value: Any) -> Any:
    """A tensor as a Parameter, anything else unchanged."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def described(value: Any, kind: str) -> str:
    """One line about an entry: what it is, its type and size."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(str(n) for n in value.shape)
    device = "" if value.device.type == "cpu" else f" ({value.device})"
    label = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{label} containing: [{kind} of size {size}{device}]"


class ParameterList(Module):
    """A list whose tensors are registered as parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _position(self, index: int) -> int:
        if not -self._size <= index < self._size:
            raise IndexOutOfRange(
                complaint("ParameterList", f"index {index} is out of range", {"length": self._size})
            )
        return index % self._size

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(getattr(self, str(i)) for i in range(*index.indices(self._size)))
        return getattr(self, str(self._position(index)))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(self._position(index)), as_entry(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._size))

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> ParameterList:
        """Add an entry at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add entries at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise ArgumentError(
                complaint("ParameterList.extend", "an iterable is expected", {"got": type(values)})
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(
            f"  ({i}): {described(value, str(getattr(value, 'dtype', '')))}"
            for i, value in enumerate(self)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise OpError(complaint("ParameterList", "a list of parameters cannot be called"))


class ParameterDict(Module):
    """A dictionary whose tensors are registered as parameters; keeps the order of insertion."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _attribute(key: Any) -> str:
        if not isinstance(key, str):
            raise ArgumentError(complaint("ParameterDict", "keys must be str", {"key": repr(key)}))
        return key

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._attribute(key)
        self._keys[name] = None
        setattr(self, name, as_entry(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary with the same entries."""
        return ParameterDict({key: self[key] for key in self._keys})

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The entry at key, which becomes default if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all entries."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove an entry and return it."""
        removed = self[key]
        del self[key]
        return removed

    def popitem(self) -> tuple[str, Any]:
        """Remove the last entry and return (key, value)."""
        key = next(reversed(list(self._keys)))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The entry at key, or default."""
        if key not in self:
            return default
        return self[key]

    @staticmethod
    def fromkeys(keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary with the same value at every key."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """The keys, in order."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """(key, value) pairs, in order."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values, in order."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add or replace entries from a mapping (plain ones in order of key) or pairs."""
        if not isinstance(parameters, Iterable):
            raise ArgumentError(
                complaint(
                    "ParameterDict.update",
                    "a mapping or (key, value) pairs are expected",
                    {"got": type(parameters)},
                )
            )
        pairs: Iterable = parameters
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            pairs = parameters.items()
        elif isinstance(parameters, Mapping):
            pairs = sorted(parameters.items())
        for pair in pairs:
            if len(pair) != 2:
                raise ValueRangeError(
                    complaint("ParameterDict.update", "a pair is expected", {"length": len(pair)})
                )
            self[pair[0]] = pair[1]

    def extra_repr(self) -> str:
        return "\n".join(
            f"  ({key}): {described(value, legacy_name(value))}" for key, value in self.items()
        )

    def __call__(self, input: Any) -> Any:
        raise OpError(complaint("ParameterDict", "a dictionary of parameters cannot be called"))

    def __or__(self, other: ParameterDict) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self


def legacy_name(value: Any) -> str:
    """A tensor's kind by its old type name, such as torch.FloatTensor."""
    return value.type() if isinstance(value, Tensor) else ""
