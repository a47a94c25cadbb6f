"""Calling a module with other parameters and buffers than its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flambeau.core.errors import ArgumentError, OpError, ValueRangeError, complaint
from flambeau.nn.modules.module import Module
from flambeau.tensor import Tensor

__all__ = ["functional_call"]

Tensors = Mapping[str, Tensor]


def functional_call(
    module: Module,
    parameters_and_buffers: Tensors | tuple[Tensors, ...],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with the tensors given by path in place of its own.

    tie_weights: a tensor that the module has under several names is replaced under all of them.
    strict: all parameters and buffers, and no others, must be given.
    """
    replacements = merged(parameters_and_buffers)
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with replaced(module, replacements, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def merged(tensors: Tensors | tuple[Tensors, ...]) -> dict[str, Tensor]:
    """One dictionary of one or several; no key may come twice."""
    if isinstance(tensors, Mapping):
        return dict(tensors)
    if not isinstance(tensors, (tuple, list)) or not all(
        isinstance(part, Mapping) for part in tensors
    ):
        raise ValueRangeError(
            complaint(
                "functional_call",
                "parameters_and_buffers must be a dict or a sequence of dicts",
                {"got": type(tensors)},
            )
        )
    result: dict[str, Tensor] = {}
    for part in tensors:
        twice = sorted(result.keys() & part.keys())
        if twice:
            raise ValueRangeError(
                complaint("functional_call", "a key must not come twice", {"keys": twice})
            )
        result.update(part)
    return result


def place_of(module: Module, path: str) -> tuple[Module, dict[str, Any], str]:
    """The owner of the parameter or buffer at a path, its table, and the name there."""
    parent, _, name = path.rpartition(".")
    owner = module.get_submodule(parent)
    for table in (owner._parameters, owner._buffers):
        if name in table:
            return owner, table, name
    raise AttributeError(
        complaint(
            "functional_call", f"{type(owner).__name__} has no such tensor", {"name": repr(path)}
        )
    )


def tied_groups(module: Module) -> dict[str, list[str]]:
    """Every path whose tensor has other names too, with all of them."""
    names: dict[int, list[str]] = {}
    for members in (
        module.named_parameters(remove_duplicate=False),
        module.named_buffers(remove_duplicate=False),
    ):
        for path, tensor in members:
            names.setdefault(id(tensor), []).append(path)
    return {path: group for group in names.values() if len(group) > 1 for path in group}


def with_tied(module: Module, replacements: dict[str, Tensor]) -> dict[str, Tensor]:
    """replacements, extended to the other names of the same tensors."""
    groups = tied_groups(module)
    result = dict(replacements)
    for path, tensor in replacements.items():
        for other in groups.get(path, ()):
            given = replacements.get(other, tensor)
            if given is not tensor:
                raise ValueRangeError(
                    complaint(
                        "functional_call",
                        "tied names must be given the same tensor",
                        {"names": sorted([path, other])},
                        "Pass tie_weights=False to treat them apart.",
                    )
                )
            result[other] = tensor
    return result


def check_complete(module: Module, replacements: dict[str, Tensor]) -> None:
    """Refuse missing and unknown names."""
    known = {path for path, _ in module.named_parameters(remove_duplicate=False)}
    known |= {path for path, _ in module.named_buffers(remove_duplicate=False)}
    missing, unexpected = sorted(known - set(replacements)), sorted(set(replacements) - known)
    if missing or unexpected:
        raise OpError(
            complaint(
                "functional_call",
                "with strict=True every parameter and buffer must be given",
                {"Missing key(s)": missing, "Unexpected key(s)": unexpected},
            )
        )


@contextmanager
def replaced(
    module: Module, replacements: dict[str, Tensor], tie_weights: bool, strict: bool
) -> Iterator[None]:
    """Within the block the module holds other tensors; what it assigns itself is lost."""
    if tie_weights:
        replacements = with_tied(module, replacements)
    if strict:
        check_complete(module, replacements)
    places = []
    for path, tensor in replacements.items():
        if not isinstance(tensor, Tensor):
            raise ArgumentError(
                complaint("functional_call", "a Tensor is expected", {path: type(tensor)})
            )
        places.append((*place_of(module, path), tensor))
    before = [(owner, table, name, table[name]) for owner, table, name, _ in places]
    try:
        put(places)
        yield
    finally:
        put(before)


def put(places: list[tuple[Module, dict[str, Any], str, Tensor]]) -> None:
    """Set entries of modules' tables, letting the modules know."""
    for owner, table, name, tensor in places:
        table[name] = tensor
        owner._touch()
