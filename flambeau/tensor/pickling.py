"""Tensors through `pickle` and `copy`.

A pickle holds exactly the elements of a tensor, in its memory order; from protocol 5 they may
travel outside of the pickle. A deep copy keeps what shared memory inside one object sharing it.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np

from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import AutogradError, complaint
from flambeau.core.spec import contiguous_strides, is_dense, memory_order, spec
from flambeau.tensor.storage import Storage
from flambeau.tensor.tensor import Tensor, array_at, make, storage_of


def reduce_ex(self: Tensor, protocol: int) -> tuple:
    """What pickle stores: a call of `restored`."""
    of = self._spec
    dense = is_dense(of.shape, of.strides)
    strides = of.strides if dense else contiguous_strides(of.shape)
    data = None
    if self._array is not None:
        flat = _flat(self._array, memory_order(of.shape, strides))
        data = pickle.PickleBuffer(flat) if protocol >= 5 else flat.tobytes()
    return restored, (data, of.dtype, tuple(of.shape), strides, of.device, self._requires_grad,
                      type(self), self.__dict__ or None)


def _flat(array: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """The elements as bytes, the widest dimension of `order` outermost."""
    return np.ascontiguousarray(array.transpose(order)).reshape(-1).view(np.uint8)


def restored(data: Any, dtype: DType, shape: tuple, strides: tuple, device: Any,
             requires_grad: bool, kind: type, attributes: dict | None) -> Tensor:
    """The inverse of `reduce_ex`; `data` is a buffer, used in place where it may be written."""
    of = spec(dtype, shape, strides, device)
    if data is None:
        made = make(None, of, kind)
    else:
        flat = np.frombuffer(data, np.uint8) if of.numel else np.empty(0, np.uint8)
        storage = Storage(flat if flat.flags.writeable else flat.copy(), flat.nbytes)
        made = make(array_at(storage, of, 0), of, kind)
        made._storage = storage
    made._requires_grad = requires_grad
    if attributes:
        made.__dict__.update(attributes)
    return made


def deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy with memory of its own; views of one storage stay views of one copy of it."""
    if id(self) in memo:
        return memo[id(self)]
    if self._node is not None:
        raise AutogradError(complaint(
            "deepcopy", "Only Tensors created explicitly by the user (graph leaves) support the "
            "deepcopy protocol at the moment", dict(shape=tuple(self.shape)),
            "Copy tensor.detach() instead."))
    of = self._spec
    if self._array is None:
        made = make(None, of, type(self))
    else:
        storage = _copied_storage(storage_of(self), memo)
        made = make(array_at(storage, of, self._offset), of, type(self))
        made._storage, made._offset = storage, self._offset
    made._requires_grad = self._requires_grad
    memo[id(self)] = made
    if self._grad is not None:
        made._grad = copy.deepcopy(self._grad, memo)
    if self.__dict__:
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return made


def _copied_storage(storage: Storage, memo: dict[int, Any]) -> Storage:
    if id(storage) not in memo:
        memo[id(storage)] = Storage(storage.flat.copy(), storage.nbytes)
        memo.setdefault(id(memo), []).append(storage)  # so that its id stays taken
    return memo[id(storage)]


Tensor.__reduce_ex__ = reduce_ex  # type: ignore[assignment]
Tensor.__deepcopy__ = deepcopy  # type: ignore[attr-defined]
