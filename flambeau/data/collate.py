"""Collation: a list of samples becomes a batch.

`default_collate_fn_map` says how the leaves of samples are joined; containers are walked here.
Extend the map with `{type: function(batch, *, collate_fn_map)}`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from flambeau.core.dtype import float64
from flambeau.core.errors import ArgumentError, ShapeError, complaint
from flambeau.tensor import Tensor, as_tensor, stack
from flambeau.tensor.interop import tensor

_TEXTUAL = "SaUO"  # kinds of NumPy dtype that no tensor can hold: text and objects


def collate(batch: Any, *, collate_fn_map: Mapping | None = None) -> Any:
    """Join samples leaf by leaf, with the first function of the map whose type fits."""
    first = batch[0]
    join = _joiner(type(first), collate_fn_map or {})
    if join is not None:
        return join(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _like_mapping(first, {
            key: collate([s[key] for s in batch], collate_fn_map=collate_fn_map) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(column, collate_fn_map=collate_fn_map)
                             for column in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in _transposed(batch)]
        return columns if isinstance(first, tuple) else _like_sequence(first, columns)
    raise _refusal(type(first))


def _joiner(kind: type, functions: Mapping) -> Callable | None:
    if kind in functions:
        return functions[kind]
    return next((f for types, f in functions.items() if issubclass(kind, types)), None)


def _transposed(batch: Sequence[Sequence]) -> list[tuple]:
    sizes = {len(sample) for sample in batch}
    if len(sizes) > 1:
        raise ShapeError(complaint(
            "default_collate", "each element in list of batch should be of equal size",
            dict(sizes=sorted(sizes)), "Pad the samples, or pass your own collate_fn."))
    return list(zip(*batch, strict=True))


def _like_mapping(first: Mapping, columns: dict) -> Any:
    try:
        if isinstance(first, MutableMapping):
            joined = copy.copy(first)
            joined.update(columns)
            return joined
        return type(first)(columns)  # type: ignore[call-arg]
    except TypeError:  # a class with its own constructor
        return columns


def _like_sequence(first: Sequence, columns: list) -> Any:
    try:
        if isinstance(first, MutableSequence):
            joined = copy.copy(first)
            joined[:] = columns
            return joined
        return type(first)(columns)  # type: ignore[call-arg]
    except TypeError:  # no such slice, or a class with its own constructor (range)
        return columns


def _refusal(kind: Any) -> ArgumentError:
    return ArgumentError(complaint(
        "default_collate", "batch must contain tensors, numpy arrays, numbers, dicts or lists",
        dict(found=kind), "Convert the samples in the dataset, or pass your own collate_fn."))


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: Mapping | None = None) -> Tensor:
    return stack(list(batch), 0)


def collate_numpy_array_fn(batch: Sequence, *, collate_fn_map: Mapping | None = None) -> Any:
    if batch[0].dtype.kind in _TEXTUAL:
        raise _refusal(batch[0].dtype)
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Sequence, *, collate_fn_map: Mapping | None = None) -> Tensor:
    return as_tensor(np.asarray(batch))


def collate_float_fn(batch: Sequence, *, collate_fn_map: Mapping | None = None) -> Tensor:
    return tensor(batch, dtype=float64)


def collate_int_fn(batch: Sequence, *, collate_fn_map: Mapping | None = None) -> Tensor:
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Mapping | None = None) -> Any:
    return batch


default_collate_fn_map: dict[Any, Callable] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Stack samples into a batch: tensors, arrays and numbers along a new first dimension.

    Dicts, lists and tuples are walked; strings stay a list. Floats become float64, ints int64.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """Turn the NumPy arrays inside a sample into tensors; everything else stays as it is."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, np.ndarray | np.bool_ | np.number):
        return data if data.dtype.kind in _TEXTUAL else as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(part) for part in data))
    if isinstance(data, tuple):
        return [default_convert(part) for part in data]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _like_sequence(data, [default_convert(part) for part in data])
    return data
