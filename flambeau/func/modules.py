"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flambeau.core.errors import OpError, ValueRangeError, complaint
from flambeau.nn import Module
from flambeau.tensor import Tensor, stack


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`module(*args, **kwargs)` with some parameters and buffers replaced by given tensors.

    With tie_weights, a replaced tensor replaces all that share it; with strict, every parameter
    and buffer must be given and every given name must exist. In-place writes that the module
    makes to a replaced buffer appear in the given dict.
    """
    given = _merged(parameter_and_buffer_dicts)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with replaced(module, given, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def _merged(dicts: Any) -> dict[str, Tensor]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, list | tuple) or not all(isinstance(d, dict) for d in dicts):
        must, facts = "parameters must be a dict or dicts", {"got": type(dicts).__name__}
        raise ValueRangeError(complaint("functional_call", must, facts))
    names = [name for d in dicts for name in d]
    if len(names) != len(set(names)):
        twice = sorted({name for name in names if names.count(name) > 1})
        must = "no name may be in two of the dicts"
        raise ValueRangeError(complaint("functional_call", must, {"twice": twice}))
    return {name: value for d in dicts for name, value in d.items()}


@contextmanager
def replaced(
    module: Module, given: dict[str, Tensor], tie_weights: bool = True, strict: bool = False
) -> Iterator[None]:
    """Within the block the module holds the given tensors; in-place state is read back after."""
    slots = _slots(module)
    missing, unknown = set(slots) - set(given), set(given) - set(slots)
    tied = _tied(slots, given) if tie_weights else {}
    if strict and (missing - set(tied) or unknown):
        must = "with strict, the given names must be the module's"
        facts = {"missing": sorted(missing - set(tied)), "unknown": sorted(unknown)}
        raise OpError(complaint("functional_call", must, facts))
    if unknown:
        must, facts = "the module must have what is given", {"unknown": sorted(unknown)}
        raise AttributeError(complaint("functional_call", must, facts))
    swapped = [(slots[name], name, value) for name, value in {**given, **tied}.items()]
    before = [(place, place.table[place.key]) for place, _, _ in swapped]
    try:
        for place, _, value in swapped:
            place.table[place.key] = value
        yield
    finally:
        for place, name, _ in swapped:
            if name in given:
                given[name] = place.table[place.key]
        for place, value in before:
            place.table[place.key] = value


class _Place:
    """Where a module keeps a tensor: a table of a submodule, and the key in it."""

    __slots__ = ("key", "table")

    def __init__(self, table: dict[str, Any], key: str) -> None:
        self.table, self.key = table, key


def _slots(module: Module) -> dict[str, _Place]:
    """Every parameter and buffer of the module tree by its dotted name, shared ones repeatedly."""
    out = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for table in (part._parameters, part._buffers):
            for key, value in table.items():
                if value is not None:
                    out[f"{prefix}.{key}" if prefix else key] = _Place(table, key)
    return out


def _tied(slots: dict[str, _Place], given: dict[str, Tensor]) -> dict[str, Tensor]:
    """For names that are not given but share a tensor with a given one: that one's replacement."""
    by_tensor: dict[int, Tensor] = {}
    for name, value in given.items():
        if name not in slots:
            continue
        old = id(slots[name].table[slots[name].key])
        if by_tensor.setdefault(old, value) is not value:
            must = "names of one shared tensor must get the same replacement"
            hint = "Pass tie_weights=False to untie them."
            raise ValueRangeError(complaint("functional_call", must, {"name": name}, hint))
    return {
        name: by_tensor[id(place.table[place.key])]
        for name, place in slots.items()
        if name not in given and id(place.table[place.key]) in by_tensor
    }


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of models of one class, stacked along a new first dimension.

    Made for `vmap(functional_call ...)` over an ensemble; the stacked parameters are new leaves.
    """
    models = list(models)
    if not models:
        raise OpError(complaint("stack_module_state", "at least one model must be given"))
    training = {model.training for model in models}
    kinds = {type(model) for model in models}
    if len(training) > 1 or len(kinds) > 1:
        must = "models must have one class and one training mode"
        facts = {"classes": sorted(kind.__name__ for kind in kinds), "training": training}
        raise OpError(complaint("stack_module_state", must, facts))
    params = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    stacked = {name: _stacked([p[name] for p in params]) for name in params[0]}
    return stacked, {name: stack([b[name] for b in buffers]) for name in buffers[0]}


def _stacked(values: list[Tensor]) -> Tensor:
    needs = {value.requires_grad for value in values}
    if len(needs) > 1:
        must = "a parameter must require grad in all models or in none"
        raise OpError(complaint("stack_module_state", must))
    out = stack([value.detach() for value in values])
    return out.requires_grad_(needs.pop())
