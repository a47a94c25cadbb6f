"""Optimizer state in checkpoint form: parameters become numbers, and numbers parameters again."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import chain
from typing import Any

from flambeau.tensor import Tensor


def numbered_groups(groups: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[Tensor, int]]:
    """The groups with each parameter replaced by its number, and the numbering.

    A parameter's number is its first position, counted through all groups.
    """
    numbers: dict[Tensor, int] = {}
    for position, param in enumerate(chain.from_iterable(group["params"] for group in groups)):
        numbers.setdefault(param, position)
    out = []
    for group in groups:
        packed = {key: value for key, value in group.items() if key != "params"}
        packed["params"] = [numbers[param] for param in group["params"]]
        out.append(packed)
    return out, numbers


def numbered_state(state: Mapping, numbers: Mapping[Tensor, int]) -> dict[Any, Any]:
    """The state keyed by parameter number; keys that are no tensors stay as they are."""
    return {numbers[k] if isinstance(k, Tensor) else k: v for k, v in state.items()}


def cast_state(
    packed: Mapping, by_number: Mapping[int, Tensor], groups: list[dict[str, Any]]
) -> defaultdict[Any, Any]:
    """The state keyed by parameter again, tensors in their parameter's dtype and device."""
    keeps_step_here = {
        id(param)
        for group in groups
        if not (group.get("capturable") or group.get("fused"))
        for param in group["params"]
    }
    state: defaultdict[Any, Any] = defaultdict(dict)
    for number, value in packed.items():
        param = by_number.get(number)
        if param is None:
            state[number] = value
        else:
            state[param] = _cast(value, param, "", id(param) in keeps_step_here)
    return state


def _cast(value: Any, param: Tensor, key: Any, keeps_step_here: bool) -> Any:
    if isinstance(value, Tensor):
        if key == "step":
            return value if keeps_step_here else value.float().to(device=param.device)
        if param.is_floating_point() or param.is_complex():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {k: _cast(v, param, k, keeps_step_here) for k, v in value.items()}
    if isinstance(value, list | tuple | set):
        return type(value)(_cast(v, param, key, keeps_step_here) for v in value)
    return value
