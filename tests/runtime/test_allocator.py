"""Blocks come back when their last view is gone."""

from __future__ import annotations

import gc
import os
import threading

import numpy as np
import pytest

from flambeau.core.errors import OutOfMemoryError
from flambeau.runtime import allocator


@pytest.fixture(autouse=True)
def clean():
    gc.collect()
    allocator.empty_cache()
    yield
    gc.collect()
    allocator.empty_cache()


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 1000, 70_000, 5_000_000])
def test_owner_is_aligned_and_as_long_as_asked(nbytes):
    owner = allocator.allocate(nbytes)
    assert owner.dtype == np.uint8 and owner.shape == (nbytes,)
    assert owner.ctypes.data % allocator.ALIGNMENT == 0
    owner[...] = 7
    assert (owner == 7).all()


def test_size_classes_waste_at_most_a_quarter():
    sizes = list(range(1, 5000)) + [10**k + 1 for k in range(4, 10)]
    for nbytes in sizes:
        size = allocator.size_class(nbytes)
        assert nbytes <= size and size % 64 == 0
        assert size == allocator.size_class(size)
        assert size <= max(64 + nbytes, nbytes * 1.25 + 1)


def test_views_keep_the_block():
    before = allocator.stats()["live_bytes"]
    owner = allocator.allocate(4000)
    address = owner.ctypes.data
    view = owner.view(np.float32).reshape(10, 100)[2:].T[1:]
    del owner
    assert allocator.stats()["live_bytes"] == before + 4096
    other = allocator.allocate(4000)
    assert other.ctypes.data != address
    part = view[1:]
    del view
    assert allocator.stats()["live_bytes"] > before
    del part, other
    assert allocator.stats()["live_bytes"] == before


def test_blocks_are_reused():
    first = allocator.allocate(100_000)
    address = first.ctypes.data
    del first
    assert allocator.allocate(99_000).ctypes.data == address
    made = allocator.stats()["new_blocks"]
    for _ in range(10):
        allocator.allocate(100_000)
    assert allocator.stats()["new_blocks"] == made


def test_cycles_return_their_block():
    before = allocator.stats()["live_bytes"]
    holder = [allocator.allocate(1000)]
    holder.append(holder)
    del holder
    gc.collect()
    assert allocator.stats()["live_bytes"] == before


def test_empty_cache():
    del_me = allocator.allocate(1 << 20)
    del del_me
    assert allocator.stats()["free_bytes"] >= 1 << 20
    allocator.empty_cache()
    assert allocator.stats()["free_bytes"] == 0


def test_kept_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(allocator, "FLOOR", 1 << 20)
    allocator._counts.peak = 0
    for size in range(1, 40):
        owner = allocator.allocate(size << 16)
        del owner
    free, peak = (allocator.stats()[n] for n in ("free_bytes", "peak_bytes"))
    assert free <= allocator.SLACK * peak + (1 << 20)


def test_impossible_request():
    with pytest.raises(OutOfMemoryError, match="memory must be available"):
        allocator.allocate(1 << 60)


def test_threads():
    before = allocator.stats()["live_bytes"]
    failures = []

    def work(mark: int) -> None:
        for i in range(500):
            owner = allocator.allocate(64 + 100 * (i % 20))
            owner[...] = mark
            kept = owner[1:]
            del owner
            if not (kept == mark).all():
                failures.append(mark)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert allocator.stats()["live_bytes"] == before


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_forked_child_has_its_own_memory():
    owner = allocator.allocate(1000)
    owner[...] = 1
    pid = os.fork()
    if not pid:
        other = allocator.allocate(1000)
        owner[...] = 2
        other[...] = 3
        os._exit(0 if (owner == 2).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (owner == 1).all()


def test_it_does_not_load_llvm(child):
    program = """
import sys
from flambeau.runtime import allocator
kept = allocator.allocate(100)
print("llvmlite" in sys.modules)
"""
    assert child(program) == "False"


def test_blocks_that_outlive_the_interpreter(child):
    program = """
import builtins
from flambeau.runtime import allocator
builtins.kept = allocator.allocate(1000)
cycle = [allocator.allocate(1000)]; cycle.append(cycle)
print("fine")
"""
    assert child(program) == "fine"
