"""Segments: memory that a worker process writes and the program reads, and both forget safely.

A segment is an anonymous file mapped in both processes. It has no name: the kernel frees it when
the last mapping goes, however the processes end, so nothing can be left behind in /dev/shm and no
limit on /dev/shm applies. Neither side keeps a file descriptor open.

The program hands segments back when the tensors in them are gone, and the worker fills them again:
pages are faulted in once, not once a batch.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import tempfile
from collections import deque
from typing import Any

import numpy as np

from flambeau.core.errors import OutOfMemoryError, complaint

AVAILABLE = os.name == "posix"  # descriptors travel over Unix sockets

_FAILED = ctypes.c_void_p(-1).value


class Mapping:
    """`size` bytes of a file at `address`, unmapped with the object."""

    def __init__(self, descriptor: int, size: int):
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        address = _libc().mmap(None, size, protection, mmap.MAP_SHARED, descriptor, 0)
        if address in (None, _FAILED):
            raise OutOfMemoryError(complaint(
                "DataLoader", "shared memory must be mapped",
                dict(bytes=size, reason=repr(os.strerror(ctypes.get_errno()))),
                "Use smaller batches or fewer workers."))
        self.address: int = address
        self.size = size
        self._unmap = _libc().munmap  # module globals may be gone when the interpreter ends

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self._unmap(self.address, self.size)

    def bytes(self, count: int) -> np.ndarray:
        """The first `count` bytes, valid while this object lives."""
        return np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(self.address))


@functools.cache
def _libc() -> ctypes.CDLL:
    # mmap.mmap would do, but it keeps a descriptor open per mapping: a program that holds a
    # thousand batches would run out of them.
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                          ctypes.c_int, ctypes.c_ssize_t]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


def _anonymous_file(size: int) -> int:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("flambeau-batch", os.MFD_CLOEXEC)
    else:
        descriptor, path = tempfile.mkstemp()
        os.unlink(path)
    os.ftruncate(descriptor, size)
    return descriptor


def _capacity(size: int) -> int:
    """Whole pages, with an eighth to spare so that batches of varying size fit again."""
    return -(-(size + size // 8) // mmap.PAGESIZE) * mmap.PAGESIZE


class Writer:
    """A worker's segments by number: those free to be filled again, and those out on loan."""

    def __init__(self) -> None:
        self.free: dict[int, Mapping] = {}
        self.lent: dict[int, Mapping] = {}
        self._next = 0

    def take_back(self, reuse: list[int], drop: list[int]) -> None:
        for number in drop:
            self.lent.pop(number, None)
        for number in reuse:
            self.free[number] = self.lent.pop(number)

    def write(self, data: np.ndarray, news: News) -> int:
        """Put bytes into a segment, a free one where one is large enough; its number."""
        fitting = [n for n, mapping in self.free.items() if mapping.size >= data.nbytes]
        if fitting:
            number = min(fitting, key=lambda n: self.free[n].size)
            mapping = self.free.pop(number)
        else:
            number, mapping = self._create(data.nbytes, news)
        self.lent[number] = mapping
        mapping.bytes(data.nbytes)[:] = data
        return number

    def _create(self, size: int, news: News) -> tuple[int, Mapping]:
        if self.free:  # too small, all of them: let one go, or they would pile up
            smallest = min(self.free, key=lambda n: self.free[n].size)
            del self.free[smallest]
            news.gone.append(smallest)
        number, self._next = self._next, self._next + 1
        capacity = _capacity(size)
        descriptor = _anonymous_file(capacity)
        news.descriptors.append(descriptor)
        news.made.append((number, capacity))
        return number, Mapping(descriptor, capacity)


class News:
    """What changed in a worker's segments with one message; closes its descriptors at the end."""

    def __init__(self) -> None:
        self.made: list[tuple[int, int]] = []  # (number, capacity), in the descriptors' order
        self.gone: list[int] = []
        self.descriptors: list[int] = []

    def close(self) -> None:
        close(self.descriptors)
        self.descriptors.clear()


def close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


class Reader:
    """The program's view of one worker's segments."""

    def __init__(self, most_free: int):
        self.most_free = most_free
        self.mappings: dict[int, Mapping] = {}
        self.free: set[int] = set()  # handed back and not seen filled again
        self.returned: deque[int] = deque()  # appended to by whatever thread drops a tensor

    def learn(self, made: list[tuple[int, int]], gone: list[int], descriptors: list[int]) -> None:
        for (number, capacity), descriptor in zip(made, descriptors, strict=True):
            self.mappings[number] = Mapping(descriptor, capacity)
        for number in gone:
            self.mappings.pop(number, None)
            self.free.discard(number)

    def lease(self, number: int, size: int) -> np.ndarray:
        """The bytes of a filled segment; it goes back when the array and its views are gone."""
        self.free.discard(number)
        return np.asarray(Lease(self.mappings[number], size, number, self.returned))

    def give_back(self) -> tuple[list[int], list[int]]:
        """Segments that the worker may fill again, and those it should forget."""
        reuse: list[int] = []
        drop: list[int] = []
        while self.returned:
            number = self.returned.popleft()
            if len(self.free) < self.most_free:
                self.free.add(number)
                reuse.append(number)
            else:
                self.mappings.pop(number, None)
                drop.append(number)
        return reuse, drop


class Lease:
    """Keeps a segment from being filled again while any array over it lives."""

    def __init__(self, mapping: Mapping, size: int, number: int, returned: deque[int]):
        self.mapping = mapping
        self.number = number
        self.returned = returned
        self.__array_interface__: dict[str, Any] = dict(
            version=3, typestr="|u1", shape=(size,), data=(mapping.address, False))

    def __del__(self) -> None:
        self.returned.append(self.number)
