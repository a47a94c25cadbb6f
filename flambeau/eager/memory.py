"""Memory for results: small arrays from NumPy, large ones from the caching allocator."""

from __future__ import annotations

import numpy as np

from flambeau.core.spec import Spec
from flambeau.runtime.allocator import allocate

LARGE = 1 << 15  # bytes


def empty_array(s: Spec) -> np.ndarray:
    """Uninitialised memory with the layout of `s`."""
    if s.reach >= LARGE:
        return np.ndarray(s.shape, s.numpy, allocate(s.reach), 0, s.byte_strides)
    if s.is_contiguous:
        return np.empty(s.shape, s.numpy)
    return np.ndarray(s.shape, s.numpy, np.empty(s.reach, np.uint8), 0, s.byte_strides)


def laid_out(array: np.ndarray, s: Spec, operands: tuple = ()) -> np.ndarray:
    """`array` itself if it has the dtype and strides of `s` and is no operand's; else a copy."""
    if array.dtype == s.numpy and array.flags.writeable and (
            array.flags.c_contiguous if s.is_contiguous else _same_strides(array, s)) and (
            array.base is None or not any(np.may_share_memory(array, x) for x in operands
                                          if isinstance(x, np.ndarray))):
        return array
    out = empty_array(s)
    np.copyto(out, array, casting="unsafe")
    return out


def _same_strides(array: np.ndarray, s: Spec) -> bool:
    return all(n == 1 or a == b for n, a, b in zip(s.shape, array.strides, s.byte_strides))
