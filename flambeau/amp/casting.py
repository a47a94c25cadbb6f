"""The mode that sees public functions inside an autocast region and casts their operands.

A function that it has cast for runs with the mode off, so that what it calls is left alone.
"""

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flambeau.amp.policies import ALONE, FLOAT32, LOWER, WIDEST, policy
from flambeau.amp.settings import settings
from flambeau.autograd import is_grad_enabled
from flambeau.core.dtype import dtype, float32, float64
from flambeau.tensor import Tensor
from flambeau.tensor.overrides import TorchFunctionMode, handle


class CastingMode(TorchFunctionMode):
    """Casts for the device types that are enabled; every other call goes on as it is."""

    names = LOWER | FLOAT32 | WIDEST | ALONE | {"pad"}

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        names = policy(func.__name__, args, kwargs)
        if names is None or "out" in kwargs:
            return handle(func, args, kwargs)
        if names is ALONE:
            return func(*args, **kwargs)
        castable = [x for x in tensors((args, kwargs)) if _castable(x)]
        if not castable:
            return handle(func, args, kwargs)
        target = _target(names, castable)
        return func(*cast(args, target), **cast(kwargs, target))


def _castable(x: Tensor) -> bool:
    """Floating, not float64, and on a device type that is enabled."""
    s = x._spec
    return (
        s.dtype.is_floating_point
        and s.dtype is not float64
        and settings.enabled.get(s.device.type, False)
    )


def _target(names: frozenset, castable: list[Tensor]) -> dtype:
    if names is LOWER:
        return settings.dtypes[castable[0].device.type]
    if names is WIDEST:
        lower = settings.dtypes[castable[0].device.type]
        return lower if all(x.dtype is lower for x in castable) else float32
    return float32


def tensors(tree: Any) -> Iterator[Tensor]:
    """The tensors among (nested) arguments."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, list | tuple):
        for x in tree:
            yield from tensors(x)
    elif isinstance(tree, dict):
        yield from tensors(tree.values())
    elif isinstance(tree, type({}.values())):
        for x in tree:
            yield from tensors(x)


def cast(tree: Any, target: dtype) -> Any:
    """Arguments with every castable tensor in dtype `target`."""
    if isinstance(tree, Tensor):
        return _in_dtype(tree, target) if _castable(tree) else tree
    if isinstance(tree, list | tuple):
        parts = [cast(x, target) for x in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if isinstance(tree, dict):
        return {key: cast(x, target) for key, x in tree.items()}
    return tree


def _in_dtype(x: Tensor, target: dtype) -> Tensor:
    """`x` in dtype `target`; a parameter's cast is made once a region, until it is written to."""
    if x._spec.dtype is target:
        return x
    keep = settings.cache_enabled and is_grad_enabled() and x.requires_grad and x.is_leaf
    if not keep or target is float32 or x._base is not None:
        return x.to(target)
    kept = settings.cache.get(id(x))
    if kept is not None:
        of, version, held = kept
        if of() is x and version == x._version and held.dtype is target:
            return held
    held = x.to(target)
    settings.cache[id(x)] = (weakref.ref(x), x._version, held)
    return held


def cast_inputs(values: Iterable[Any], device_type: str, target: dtype) -> Any:
    """Nested values with the floating tensors of a device type (float64 aside) in `target`."""
    if isinstance(values, Tensor):
        fits = values.is_floating_point() and values.device.type == device_type
        return values.to(target) if fits and values.dtype is not float64 else values
    if isinstance(values, str | bytes):
        return values
    if isinstance(values, dict):
        return {
            cast_inputs(k, device_type, target): cast_inputs(v, device_type, target)
            for k, v in values.items()
        }
    if isinstance(values, list | tuple):
        return type(values)(cast_inputs(v, device_type, target) for v in values)
    return values
