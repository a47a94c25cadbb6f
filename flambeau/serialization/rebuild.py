"""Tensors made from what a file or a pickle says about them, checked against their memory.

The functions whose names begin with an underscore stand for PyTorch's of the same name: files refer
to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.core.device import CPU, META
from flambeau.core.device import device as Device
from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import complaint
from flambeau.core.spec import Size, spec
from flambeau.nn.parameter import Parameter
from flambeau.random import Generator
from flambeau.serialization.errors import DamagedFile
from flambeau.tensor.storage import Storage
from flambeau.tensor.tensor import Tensor, alias, array_at, make

_LARGEST = 2**63 - 1  # a size, stride or offset that PyTorch can hold


class LoadedStorage:
    """Memory with the dtype under which the file names it."""

    __slots__ = ("storage", "dtype", "device")

    def __init__(self, storage: Storage, dtype: DType, device: Device = CPU):
        self.storage = storage
        self.dtype = dtype
        self.device = device

    def tensor(self, offset: int, shape: Sequence[int], strides: Sequence[int],
               dtype: DType) -> Tensor:
        """A view of this memory; offset and strides in elements."""
        _check_layout(offset, shape, strides, self.storage.nbytes // dtype.itemsize)
        of = spec(dtype, shape, strides, self.device)
        made = make(array_at(self.storage, of, offset), of)
        made._storage, made._offset = self.storage, offset
        return made


def _check_layout(
    offset: Any, shape: Sequence[int], strides: Sequence[int], available: int
) -> None:
    """Every element must lie in the storage; nothing here trusts the file."""
    facts = dict(shape=shape, stride=strides, offset=offset, storage_elements=available)
    for numbers in (shape, strides):
        if not isinstance(numbers, tuple | list):
            raise _damaged("shape and stride must be tuples", facts)
    for number in (offset, *shape, *strides):
        if type(number) is not int or not 0 <= number <= _LARGEST:
            raise _damaged("shape, stride and offset must be ints from 0", facts)
    if len(shape) != len(strides) or len(shape) > 64:
        raise _damaged("there must be one stride for each of at most 64 dimensions", facts)
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    inside = offset <= available if 0 in shape else last < available
    if not inside:
        raise _damaged("a tensor must lie inside its storage", facts)


def _damaged(must: str, facts: dict) -> DamagedFile:
    return DamagedFile(complaint("load", must, facts, "The file is damaged: save or fetch it "
                                 "again."))


def _require(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise _damaged(f"{what} must be a {kind.__name__}", dict(got=type(value).__name__))
    return value


def _rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    _require(storage, LoadedStorage, "a tensor's storage")
    return storage.tensor(offset, size, stride, storage.dtype)


def _rebuild_tensor_v2(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any,
                       backward_hooks: Any, metadata: Any = None) -> Tensor:
    made = _rebuild_tensor(storage, offset, size, stride)
    return _finished(made, requires_grad, metadata)


def _rebuild_tensor_v3(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any,
                       backward_hooks: Any, dtype: Any, metadata: Any = None) -> Tensor:
    _require(storage, LoadedStorage, "a tensor's storage")
    made = storage.tensor(offset, size, stride, _require(dtype, DType, "a dtype"))
    return _finished(made, requires_grad, metadata)


def _finished(made: Tensor, requires_grad: Any, metadata: Any) -> Tensor:
    for name in metadata or ():
        made = _lazy_bit(made, name)
    return made.requires_grad_(bool(requires_grad))


def _lazy_bit(t: Tensor, name: str) -> Tensor:
    """Apply what PyTorch had put off: here the elements themselves are changed."""
    if name == "conj":
        return t.conj().clone()
    if name == "neg":
        return t.neg()
    raise _damaged("a tensor's metadata may only be conj or neg", dict(metadata=name))


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any,
                                    requires_grad: Any) -> Tensor:
    _check_layout(0, size, stride, _LARGEST)
    made = make(None, spec(_require(dtype, DType, "a dtype"), size, stride, META))
    return made.requires_grad_(bool(requires_grad))


def _rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Parameter:
    return Parameter(_require(data, Tensor, "a parameter's data"), bool(requires_grad))


def _rebuild_parameter_with_state(data: Any, requires_grad: Any, backward_hooks: Any,
                                  state: Any) -> Parameter:
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    _set_attributes(parameter, state)
    return parameter


_REBUILDERS = (_rebuild_tensor, _rebuild_tensor_v2, _rebuild_tensor_v3, _rebuild_parameter,
               _rebuild_parameter_with_state, _rebuild_meta_tensor_no_storage)


def _rebuild_from_type_v2(function: Any, kind: Any, arguments: Any, state: Any) -> Tensor:
    """A tensor of a subclass, or with attributes."""
    if function not in _REBUILDERS:
        raise _damaged("a tensor must be rebuilt by a function made for it",
                       dict(function=function))
    made = function(*_require(arguments, tuple, "arguments"))
    if kind is not type(made) and kind is not Tensor:
        _require(kind, type, "a tensor's class")
        made = alias(made, kind)
    _set_attributes(made, state)
    return made


def _set_attributes(made: Tensor, state: Any) -> None:
    slots: Any = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    for name, value in {**(state or {}), **(slots or {})}.items():
        made.__dict__[_require(name, str, "an attribute's name")] = value


def _get_layout(name: Any) -> Any:
    from flambeau.tensor import layout

    found = getattr(layout, str(name).removeprefix("torch."), None)
    return _require(found, layout.layout, "a layout")


def size_from(numbers: Any = ()) -> Size:
    for n in _require(numbers, tuple | list, "a Size"):  # type: ignore[arg-type]
        _require(n, int, "an entry of a Size")
    return Size(numbers)


def set_generator_state(generator: Generator, state: Any) -> None:
    """Continue where the saved generator stood: (seed, offset, state)."""
    if not isinstance(state, tuple) or len(state) != 3:
        raise _damaged("the state of a generator must be (seed, offset, state)", {})
    generator.set_state(_require(state[2], Tensor, "a generator's state"))
