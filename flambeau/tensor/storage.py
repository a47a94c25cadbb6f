"""The memory that tensors share, with the version counter that in-place writes bump."""

from __future__ import annotations

import numpy as np

from flambeau.core.spec import memory_order


class Storage:
    """Bytes on a device.

    flat     uint8 ndarray over all of the memory; None on devices without host memory
    nbytes   size in bytes
    version  counts in-place writes; shared by every view
    """

    __slots__ = ("flat", "nbytes", "version", "__weakref__")

    def __init__(self, flat: np.ndarray | None, nbytes: int):
        self.flat, self.nbytes, self.version = flat, nbytes, 0

    def alias(self) -> Storage:
        """The same bytes under a version counter of their own (`Tensor.data`)."""
        return Storage(self.flat, self.nbytes)


def storage_of_array(array: np.ndarray) -> Storage:
    """A storage from an array's first element to its last, without a copy."""
    if array.size == 0:
        return Storage(np.empty(0, np.uint8), 0)
    if not array.flags.c_contiguous:
        array = array.transpose(memory_order(array.shape, array.strides))
        if not array.flags.c_contiguous:
            array = spanned(array)
    return Storage(np.ndarray((array.nbytes,), np.uint8, array), array.nbytes)


def spanned(array: np.ndarray) -> np.ndarray:
    """All elements between the first and the last of an array with gaps or repeats."""
    reach = sum((n - 1) * step for n, step in zip(array.shape, array.strides)) // array.itemsize
    strides = (array.itemsize,)
    return np.lib.stride_tricks.as_strided(array, (reach + 1,), strides)
