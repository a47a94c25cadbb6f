"""Where sizes go on changing, kernels are not made for each of them.

A kernel takes milliseconds to make, and the next call may want another size: a text that grows by
a token, a batch of another length. A family is an operation with all but its sizes; for a product
with a weight, with that weight. Its first sizes get kernels; those after them only where the work
is worth one, and NumPy computes the rest. What a size gets depends on the order of calls alone, and
stays.
"""

from __future__ import annotations

import math
import threading

from flambeau.core.spec import Spec

FEW, MANY = 8, 64
"""Sizes of a family that get kernels: of little work, and of any."""
BATCHES = 4
"""Sizes of a batch that get a kernel for one weight."""
LITTLE = 1 << 16
"""Elements touched."""
COSTLY = 1 << 28
"""Operations of a product that takes as long as some hundredths of making its kernel."""

_families: dict[tuple, int] = {}
_lock = threading.Lock()


def forget() -> None:
    """Begin anew."""
    with _lock:
        _families.clear()


def _another(family: tuple, limit: int) -> bool:
    """Count one more size of the family, unless `limit` of them have kernels."""
    with _lock:
        count = _families.get(family, 0)
        if count >= limit:
            return False
        _families[family] = count + 1
        return True


def worth_loops(primitive, specs: list[Spec | None], params: dict, work: int) -> bool:
    """Shall a signature that is new get a kernel of loops?"""
    kinds = tuple(s if s is None else (s.dtype, s.ndim, s.is_contiguous) for s in specs)
    little = work < LITTLE
    family = (primitive.name, kinds, tuple(map(type, params.values())), little)
    return _another(family, FEW if little else MANY)


def worth_product(primitive, specs: list[Spec | None], params: dict) -> bool:
    """Shall a product whose signature is new get a kernel?"""
    a, b = specs[0], specs[1]
    assert a is not None and b is not None
    columns = b.shape[0 if primitive.name == "linear" else -1]
    if 2.0 * math.prod(a.shape) * columns >= COSTLY:
        return True
    if primitive.name == "linear":
        return _another(("linear", b, a.dtype, a.ndim), BATCHES)
    return _another(("matmul", a.dtype, a.ndim, b.ndim, a.is_contiguous, b.is_contiguous), FEW)
