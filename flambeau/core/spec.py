"""`Spec`: everything about a tensor except its memory, as one interned immutable record.

Two tensors of equal dtype, shape, strides and device share one Spec object, so a per-signature
cache needs only identities. Identity is a fast path and never a proof of difference: the
intern table may be emptied when it grows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from flambeau.core import dtype as dtypes
from flambeau.core.device import CPU
from flambeau.core.device import device as Device
from flambeau.core.dtype import dtype as DType

LIMIT = 200_000  # interned specs; a program with more distinct shapes starts over


class Size(tuple):
    """A shape. A tuple that also answers `numel()`."""

    __slots__ = ()

    def __new__(cls, sizes=()):
        return tuple.__new__(cls, sizes)

    def numel(self) -> int:
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, i):
        got = tuple.__getitem__(self, i)
        return Size(got) if isinstance(i, slice) else got

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return Size(tuple.__add__(tuple(other), self))

    def __mul__(self, n):
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __reduce__(self):
        return (Size, (tuple(self),))


class Spec:
    """dtype, shape, strides (in elements), device; `weak` marks a Python number.

    `shape` is a plain tuple, which is quick to take apart; `size` is what users see of it.
    """

    __slots__ = ("dtype", "shape", "size", "strides", "device", "weak", "ndim", "numel", "itemsize",
                 "numpy", "byte_strides", "is_contiguous", "reach", "__weakref__")

    def __init__(self, dtype: DType, shape: tuple, strides: tuple, device: Device, weak: bool):
        self.dtype, self.shape, self.strides, self.device = dtype, shape, strides, device
        self.size = Size(shape)
        self.weak = weak
        self.ndim = len(shape)
        self.numel = math.prod(shape)
        self.itemsize = dtype.itemsize
        self.numpy = dtype.numpy
        self.byte_strides = tuple(s * dtype.itemsize for s in strides)
        self.is_contiguous = is_contiguous(shape, strides)

        self.reach = self.nbytes if self.is_contiguous else reach(shape, strides, dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return self.numel * self.itemsize

    def __repr__(self) -> str:
        where = "" if self.device == CPU else f"@{self.device}"
        laid = "" if self.is_contiguous else f"{list(self.strides)}"
        return f"{self.dtype.name}{list(self.shape)}{laid}{where}"

    def like(self, *, dtype=None, shape=None, strides=None, device=None) -> Spec:
        """A spec with some fields replaced; a new shape without strides is contiguous."""
        if shape is None:
            shape = self.shape
            strides = self.strides if strides is None else strides
        return spec(dtype or self.dtype, shape, strides, device or self.device)

    def preserved(self, dtype: DType | None = None) -> Spec:
        """The spec of a fresh result that keeps this one's memory order where it is dense."""
        d = dtype or self.dtype
        if self.is_contiguous:
            return self if d is self.dtype and not self.weak else spec(
                d, self.shape, None, self.device)
        return spec(d, self.shape, dense_strides(self.shape, self.strides), self.device)


_interned: dict[tuple, Spec] = {}


def spec(dtype: DType, shape: Sequence[int], strides: Sequence[int] | None = None,
         device: Device = CPU) -> Spec:
    """The interned Spec; `strides=None` means contiguous."""
    shape = tuple(shape)
    strides = contiguous_strides(shape) if strides is None else tuple(strides)
    key = (dtype, shape, strides, device)
    found = _interned.get(key)
    if found is None:
        if len(_interned) > LIMIT:
            _interned.clear()
        found = _interned.setdefault(key, Spec(dtype, shape, strides, device, False))
    return found


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides; an empty dimension counts as one, as PyTorch has it."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Row-major without gaps; strides of dimensions of size one do not matter."""
    step = 1
    for n, s in zip(reversed(shape), reversed(strides)):
        if n != 1:
            if s != step:
                return 0 in shape
            step *= n
    return True


def reach(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """Bytes from the first element to the last, gaps included."""
    if 0 in shape:
        return 0
    return (1 + sum((n - 1) * s for n, s in zip(shape, strides))) * itemsize


def memory_order(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Dimensions from the widest stride to the narrowest; those of size 1 or stride 0 stay put."""
    order = list(range(len(shape)))[::-1]  # innermost first
    for i in range(1, len(order)):
        at = i
        for j in range(i - 1, -1, -1):
            verdict = _wider(order[j], order[at], shape, strides)
            if verdict > 0:
                order[j], order[at] = order[at], order[j]
                at = j
            elif verdict < 0:
                break
    return tuple(reversed(order))


def _wider(a: int, b: int, shape: Sequence[int], strides: Sequence[int]) -> int:
    """1 if dimension a lies outside of b, -1 if inside, 0 if strides do not tell."""
    if 1 in (shape[a], shape[b]) or 0 in (strides[a], strides[b]):
        return 0
    if strides[a] != strides[b]:
        return 1 if strides[a] > strides[b] else -1
    return 1 if shape[a] > shape[b] else 0


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Non-overlapping and without gaps in some order of the dimensions."""
    step = 1
    for d in sorted((d for d, n in enumerate(shape) if n != 1), key=lambda d: strides[d]):
        if strides[d] != step:
            return False
        step *= shape[d]
    return True


def overlaps_itself(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """May two different indices reach one element? Exact for expanded tensors, safe otherwise."""
    if 0 in shape:
        return False
    dims = sorted((abs(s), n) for n, s in zip(shape, strides) if n > 1)
    reach = 0
    for stride, n in dims:
        if stride <= reach:
            return True
        reach += stride * (n - 1)
    return False


def dense_strides(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Strides of a fresh tensor in the same memory order as (shape, strides)."""
    if is_dense(shape, strides) and 0 not in shape:
        return tuple(strides)
    return _ordered(shape, memory_order(shape, strides))


def _ordered(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def channels_last_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of an (N, C, *spatial) tensor stored as (N, *spatial, C)."""
    return _ordered(shape, (0, *range(2, len(shape)), 1))


# Python numbers as operands: one spec per type, so a changing value never misses a cache.

WEAK = {
    bool: Spec(dtypes.bool, Size(), (), CPU, True),
    int: Spec(dtypes.int64, Size(), (), CPU, True),
    float: Spec(dtypes.float64, Size(), (), CPU, True),
    complex: Spec(dtypes.complex128, Size(), (), CPU, True),
}
