"""CPU memory that keeps its pages: 64-byte aligned blocks, reused by size class.

`allocate` gives an ndarray of bytes, the owner; its views keep it alive, and when it is collected
its block goes back to the free list of its class. Touching a new page costs about as much as
computing on it, so a training loop should fault only in its first steps. Kept memory is bounded:
before a new block is made, free blocks are dropped, largest first, until everything fits into
`SLACK` times the most that was seen in use (or `FLOOR`).

Only single list and dict operations, atomic under the GIL, touch shared state: garbage collection
may return a block in the middle of an allocation, so a lock would deadlock. A forked child owns
copies of all pages and goes on.
"""

from __future__ import annotations

import mmap
from collections import deque
from weakref import ref

import numpy as np

from flambeau.core.errors import OutOfMemoryError, complaint

ALIGNMENT = 64
STEPS = 4  # size classes per doubling: a block is at most a quarter larger than asked
FLOOR = 64 * 1024 * 1024
SLACK = 1.5
MAPPED = 64 * 1024  # from here on a block is its own mapping
HUGE = 4 * 1024 * 1024  # from here on the system may use huge pages
_REMEMBERED_SIZES = 4096
_BYTES = np.dtype(np.uint8)
_ndarray = np.ndarray

# A block is (buffer, offset of its first aligned byte, size, free list it returns to). The buffer
# is not an ndarray, so NumPy ends the chain of bases of a view at the owner and not below it.
Block = tuple[bytearray | mmap.mmap, int, int, deque]
_free: dict[int, deque[Block]] = {}
_homes: dict[int, deque[Block]] = {}
_lent: dict[int, tuple[ref, Block]] = {}


class _Counts:
    """Bytes of all blocks, the most seen in use, and how many blocks were made."""

    __slots__ = ("footprint", "new_blocks", "peak")

    def __init__(self) -> None:
        self.footprint = self.peak = self.new_blocks = 0


_counts = _Counts()


def size_class(nbytes: int) -> int:
    """The block size that serves `nbytes`: the next of 4 steps per power of two, at least 64."""
    if nbytes <= ALIGNMENT:
        return ALIGNMENT
    step = max(ALIGNMENT, 1 << ((nbytes - 1).bit_length() - 3))
    return (nbytes + step - 1) // step * step


def allocate(nbytes: int) -> np.ndarray:
    """An ndarray of `nbytes` bytes, not initialised, aligned to 64; its views keep the block."""
    try:
        block = _homes[nbytes].pop()
    except (KeyError, IndexError):
        block = _find_block(nbytes)
    owner = _ndarray(nbytes, _BYTES, block[0], block[1])
    lease = ref(owner, _give_back)
    _lent[id(lease)] = lease, block
    return owner


def _give_back(lease: ref, lent: dict = _lent) -> None:
    """The callback of a collected owner; its default outlives the module at exit."""
    block = lent.pop(id(lease))[1]
    block[3].append(block)


def _find_block(nbytes: int) -> Block:
    """A free block of the class of `nbytes`, or a new one."""
    size = size_class(nbytes)
    home = _free.get(size)
    if home is None:
        home = _free.setdefault(size, deque())
    if len(_homes) >= _REMEMBERED_SIZES:
        _homes.clear()
    _homes[nbytes] = home
    try:
        return home.pop()
    except IndexError:
        return _new_block(size, home)


def _new_block(size: int, home: deque[Block]) -> Block:
    """Fresh memory of a size class, after making room for it."""
    if size >= MAPPED or _counts.new_blocks % 256 == 0:
        _make_room(size)
    try:
        block = (*_memory(size), size, home)
    except (MemoryError, OSError, OverflowError):
        empty_cache()
        block = (*_last_try(size), size, home)
    _counts.new_blocks += 1
    _counts.footprint += size
    return block


def _memory(size: int) -> tuple[bytearray | mmap.mmap, int]:
    """A buffer and the offset of its first aligned byte."""
    if size >= MAPPED:
        mapped = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE) if _PRIVATE else mmap.mmap(-1, size)
        if size >= HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
            mapped.madvise(mmap.MADV_HUGEPAGE)
        return mapped, 0
    raw = bytearray(size + ALIGNMENT)
    return raw, -_ndarray(1, _BYTES, raw).ctypes.data % ALIGNMENT


_PRIVATE = hasattr(mmap, "MAP_PRIVATE")


def _last_try(size: int) -> tuple[bytearray | mmap.mmap, int]:
    try:
        return _memory(size)
    except (MemoryError, OSError, OverflowError):
        facts = {"bytes": size, "in use": _counts.footprint}
        must = "memory must be available"
        raise OutOfMemoryError(complaint("allocate", must, facts)) from None


def _free_bytes() -> int:
    return sum(size * len(home) for size, home in list(_free.items()))


def _make_room(size: int) -> None:
    """Drop free blocks, largest classes first, until a block of `size` fits into the bound."""
    counts = _counts
    in_use = counts.footprint - _free_bytes() + size
    counts.peak = max(counts.peak, in_use)
    limit = max(FLOOR, int(SLACK * counts.peak)) - size
    if counts.footprint <= limit:
        return
    for kept in sorted(_free, reverse=True):
        while counts.footprint > limit and _drop(kept):
            pass


def _drop(size: int) -> bool:
    """Return the block of this class that was free longest to the system."""
    try:
        _free[size].popleft()
    except IndexError:
        return False
    _counts.footprint -= size
    return True


def empty_cache() -> None:
    """Return every free block to the system."""
    for size in list(_free):
        while _drop(size):
            pass


def stats() -> dict[str, int]:
    """Bytes in use and kept free, the most seen in use, and the number of blocks ever made."""
    return {
        "live_bytes": sum(block[2] for _, block in list(_lent.values())),
        "free_bytes": _free_bytes(),
        "peak_bytes": max(_counts.peak, _counts.footprint - _free_bytes()),
        "new_blocks": _counts.new_blocks,
    }
