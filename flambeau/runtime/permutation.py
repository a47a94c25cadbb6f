"""Random permutations: the shuffles that PyTorch's randperm does."""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import OpError, complaint
from flambeau.runtime import trading
from flambeau.runtime.mersenne import Engine

INSIDE_OUT_FROM = 0xFFFFFFFF // 20  # from this size on PyTorch takes wide words, another order
NATIVE_FROM = 600  # below, a plain loop needs no compiler
PIECE = 1 << 20  # steps of the inside-out shuffle whose words are drawn at a time


def permutation(engine: Engine, n: int) -> np.ndarray:
    """0 .. n-1 in random order, int64. Draws n - 1 words."""
    if n < 0:
        raise OpError(complaint("randperm", "n must not be negative; "
                                f"Trying to create tensor with negative dimension {n}", {"n": n}))
    if n >= INSIDE_OUT_FROM:
        return drawn_inside_out(engine, n)
    words = engine.words(max(n - 1, 0))
    return traded(words, n)


def traded(words: np.ndarray, n: int) -> np.ndarray:
    """0 .. n-1 after place i has traded with place i + words[i] mod (n - i), for each i in turn."""
    if n >= NATIVE_FROM:
        return trading.traded(words, n)
    partners = np.arange(n, dtype=np.uint32)
    if n > 1:
        partners[:-1] += words % np.arange(n, 1, -1, dtype=np.uint32)
    return trades_one_by_one(partners)


def trades_one_by_one(partners: np.ndarray) -> np.ndarray:
    """Place i trades with place partners[i] >= i, for each i in turn."""
    order = list(range(len(partners)))
    for i, j in enumerate(partners.tolist()):
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)


def drawn_inside_out(engine: Engine, n: int) -> np.ndarray:
    """For i in 0 .. n-1: place i gets what place z = wide word mod (i + 1) holds; z gets i."""
    out = np.arange(n, dtype=np.int64)
    with engine.lock:
        for start in range(0, n, PIECE):
            stop = min(start + PIECE, n)
            sizes = np.arange(start + 1, stop + 1, dtype=np.uint64)
            place_inside_out(out, start, engine.wide_words(stop - start) % sizes)
    return out


def place_inside_out(out: np.ndarray, start: int, chosen: np.ndarray) -> None:
    """Steps start, start + 1, ... of the inside-out shuffle, with the places they chose."""
    cells = out.data
    for i, z in enumerate(chosen.tolist(), start):
        cells[i] = cells[z]
        cells[z] = i
