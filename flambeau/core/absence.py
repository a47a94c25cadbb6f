"""Names that exist so that programs can be imported, and refuse when they are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core.errors import OpError, complaint


def refused_function(op: str, must: str, hint: str, error: type[Exception] = OpError,
                     name: str = "") -> Callable[..., Any]:
    """A function that raises when it is called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        raise error(complaint(op, must, {}, hint))

    call.__name__ = call.__qualname__ = name or op.rpartition(".")[2]
    call.__doc__ = f"Not offered: {must}."
    return call


def refused_class(op: str, must: str, hint: str, error: type[Exception] = OpError) -> type:
    """A class for annotations and isinstance; building one raises."""

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        raise error(complaint(op, must, {}, hint))

    module, _, name = op.rpartition(".")
    space = {"__new__": new, "__doc__": f"Not offered: {must}.", "__module__": f"flambeau.{module}"}
    return type(name, (), space)


def refused_names(module: str, names: str, must: str, hint: str) -> dict[str, Any]:
    """Both kinds for a module: names that start with a capital letter are classes."""
    return {
        name: (refused_class if name[0].isupper() else refused_function)(
            f"{module}.{name}", must, hint)
        for name in names.split()
    }
