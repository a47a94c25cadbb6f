"""Words of the Mersenne twister in vectors: NumPy's words, NumPy's state."""

import numpy as np
import pytest

from flambeau.runtime import twister


@pytest.mark.parametrize("given", [0, 1, 100, 623, 624, 1000])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 226, 227, 228, 623, 624, 625, 5000])
def test_the_words_and_the_state_are_numpys(given, count):
    mine, theirs = np.random.MT19937(5), np.random.MT19937(5)
    for bits in (mine, theirs):
        bits.random_raw(given)
    want = np.random.Generator(theirs).integers(0, 1 << 32, count, dtype=np.uint32)
    assert np.array_equal(twister.words(mine.ctypes.state_address, count), want)
    mine, theirs = mine.state["state"], theirs.state["state"]
    assert mine["pos"] == theirs["pos"]
    assert np.array_equal(mine["key"], theirs["key"])
