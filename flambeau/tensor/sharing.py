"""Memory shared with the processes that are forked from this one."""

from __future__ import annotations

import mmap

import numpy as np

from flambeau.core.errors import OpError, complaint
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor, array_at, storage_of


def mapping(array: np.ndarray | None) -> mmap.mmap | None:
    """The shared mapping that an array lies in, or None."""
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, memoryview):
        array = array.obj
    return array if isinstance(array, mmap.mmap) else None


@public(function=False, out=False)
def is_shared(self):
    """Is its memory shared with forked processes?"""
    return mapping(storage_of(self).flat) is not None


@public(function=False, out=False)
def share_memory_(self):
    """Move the memory to where forked processes see what is written; views made before keep the
    old memory, so call it first."""
    storage = storage_of(self)
    if storage.flat is None or not storage.nbytes or mapping(storage.flat) is not None:
        return self
    if self._base is not None:
        raise OpError(complaint("share_memory_", "the tensor must not be a view", dict(
            shape=list(self.shape)), "Share its base."))
    flat = np.frombuffer(mmap.mmap(-1, storage.nbytes), np.uint8)
    flat[:] = storage.flat
    storage.flat = flat
    self._array = array_at(storage, self._spec, self._offset)
    return self


Tensor.is_pinned = lambda self, device=None: False
