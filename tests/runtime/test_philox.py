"""Philox against the known answers that its authors publish, and as a random-access stream."""

import numpy as np
import pytest

from flambeau.runtime.philox import philox4x32, philox_uniform, philox_words

ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def numbers(text):
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "answer"), ANSWERS)
def test_known_answers(counter, key, answer):
    counters = np.array([numbers(counter)] * 3, np.uint32)
    words = philox4x32(counters, tuple(numbers(key)))
    assert words.dtype == np.uint32
    assert (words == numbers(answer)).all()


def test_any_piece_of_a_stream_can_be_had():
    whole = philox_words(7, 2, 0, 100)
    for start, count in ((0, 0), (0, 1), (3, 1), (3, 2), (5, 90), (99, 1)):
        assert np.array_equal(philox_words(7, 2, start, count), whole[start:start + count])


def test_words_beyond_2_to_the_32_blocks():
    start = 4 << 33
    counter = np.array([0, 2, 5, 0], np.uint32)
    assert np.array_equal(philox_words(1 << 40, 5, start, 4), philox4x32(counter, (0, 1 << 8)))


def test_seeds_and_streams_differ():
    streams = {philox_words(seed, stream, 0, 4).tobytes()
               for seed in (0, 1, 1 << 32, -1) for stream in (0, 1, 1 << 32)}
    assert len(streams) == 12


def test_uniforms():
    units = philox_uniform(0, 0, 0, 100_000)
    assert units.dtype == np.float32
    assert units.min() >= 0
    assert units.max() < 1
    assert abs(units.mean() - 0.5) < 0.005
    assert abs(units.var() - 1 / 12) < 0.001
