"""Working memory that is handed around."""

from __future__ import annotations

import ctypes

import pytest

from flambeau.runtime import scratch


@pytest.fixture
def take_give():
    library = scratch.library()
    scratch.empty_cache()
    take = library.function("flambeau_scratch_take", ctypes.c_void_p, ctypes.c_int64)
    give = library.function("flambeau_scratch_give", None, ctypes.c_void_p)
    yield take, give
    scratch.empty_cache()


def test_blocks_are_reused_and_distinct(take_give):
    take, give = take_give
    a, b = take(1000), take(1000)
    assert a != b and a % 64 == 0 and b % 64 == 0
    ctypes.memset(a, 1, 1000)
    give(a)
    assert take(500) == a
    give(a)
    give(b)


def test_larger_requests_replace_smaller_blocks(take_give):
    take, give = take_give
    give(take(1000))
    big = take(1 << 20)
    ctypes.memset(big, 1, 1 << 20)
    give(big)
    assert take(1 << 20) == big
    give(big)


def test_more_blocks_than_slots(take_give):
    take, give = take_give
    blocks = [take(100) for _ in range(3 * scratch.SLOTS)]
    assert len(set(blocks)) == len(blocks)
    for block in blocks:
        give(block)


def test_no_memory_is_null(take_give):
    assert take_give[0](1 << 60) is None
