"""Bits of integers; on bools the same as logic."""

from __future__ import annotations

import numpy as np

from flambeau.core.dtype import BOOL
from flambeau.ops.elementwise import pointwise


def _integer_samples(arity: int):
    def samples(rng):
        for shape in [(), (3,), (2, 3), (0,)]:
            yield tuple(rng.integers(0, 8, shape) for _ in range(arity)), {}

    return samples


def bitwise(name: str, ref, arity: int = 2, **facts):
    return pointwise(name, ref, rule="integer", samples=_integer_samples(arity), **facts)


bitwise_and = bitwise("bitwise_and", np.bitwise_and, scalar="and")
bitwise_or = bitwise("bitwise_or", np.bitwise_or, scalar="or")
bitwise_xor = bitwise("bitwise_xor", np.bitwise_xor, scalar="xor")
bitwise_not = bitwise("bitwise_not", np.invert, 1, scalar="not")


def left_shift_ref(x, y):
    """Shifts by the width or more, and by negative amounts, give 0."""
    kind = np.result_type(x, y)
    bad = (y < 0) | (np.asarray(y) >= kind.itemsize * 8)
    return np.where(bad, 0, np.left_shift(x, np.where(bad, 0, y).astype(kind))).astype(kind)


def right_shift_ref(x, y):
    """Arithmetic for signed integers: shifts by the width or more leave the sign."""
    kind = np.result_type(x, y)
    last = kind.itemsize * 8 - (1 if kind.kind == "i" else 0)
    bad = (y < 0) | (np.asarray(y) >= last)
    shifted = np.right_shift(x, np.where(bad, 0, y).astype(kind))
    limit = np.right_shift(x, kind.type(kind.itemsize * 8 - 1)) if kind.kind == "i" else 0
    return np.where(bad, limit, shifted).astype(kind)


bitwise_left_shift = bitwise("bitwise_left_shift", left_shift_ref, refuses=(BOOL,))
bitwise_right_shift = bitwise("bitwise_right_shift", right_shift_ref, refuses=(BOOL,))
