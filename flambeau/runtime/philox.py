"""Philox 4x32-10: random words as a function of a counter, for programs that draw in any order.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Compiled
programs compute the same function element by element; this file is what they are checked by.

Word i of a stream is lane i mod 4 of the block at counter (i // 4, stream), two 32-bit halves
each, low half first, under the seed as key.
"""

from __future__ import annotations

import numpy as np

ROUNDS = 10
MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL = 0x9E3779B9, 0xBB67AE85  # what the key grows by each round: the golden ratio, sqrt(3) - 1
LANES = 4
HALF = np.uint64(32)


def philox4x32(counters: np.ndarray, key: tuple[int, int]) -> np.ndarray:
    """Counters (..., 4) uint32 -> words (..., 4) uint32."""
    a, b, c, d = (counters[..., i].copy() for i in range(LANES))
    for step in range(ROUNDS):
        first, second = (np.uint32((k + step * w) & 0xFFFFFFFF) for k, w in zip(key, WEYL))
        left, right = a.astype(np.uint64) * MULTIPLIERS[0], c.astype(np.uint64) * MULTIPLIERS[1]
        a, b, c, d = (
            (right >> HALF).astype(np.uint32) ^ b ^ first, right.astype(np.uint32),
            (left >> HALF).astype(np.uint32) ^ d ^ second, left.astype(np.uint32))
    return np.stack([a, b, c, d], axis=-1)


def philox_words(seed: int, stream: int, start: int, count: int) -> np.ndarray:
    """Words start .. start + count - 1 of a stream, uint32. seed and stream have 64 bits."""
    first, last = start // LANES, -(-(start + count) // LANES)
    blocks = np.arange(first, last, dtype=np.uint64)
    counters = np.empty((len(blocks), LANES), np.uint32)
    counters[:, 0], counters[:, 1] = blocks.astype(np.uint32), blocks >> HALF
    counters[:, 2], counters[:, 3] = stream & 0xFFFFFFFF, stream >> 32 & 0xFFFFFFFF
    words = philox4x32(counters, (seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF)).reshape(-1)
    return words[start - first * LANES:][:count]


def philox_uniform(seed: int, stream: int, start: int, count: int) -> np.ndarray:
    """float32 in [0, 1): the high 24 bits of a word each."""
    units = (philox_words(seed, stream, start, count) >> np.uint32(8)).astype(np.float32)
    return units * np.float32(2.0**-24)
