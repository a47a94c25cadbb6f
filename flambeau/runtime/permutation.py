"""Random permutations: the shuffles that PyTorch's randperm does, without their loops.

Fisher and Yates' shuffle is a chain of trades, each of which depends on the last. Where a value
comes from can be told without doing them: see `trades_in_bulk`. A native kernel may take the
place of `traded`, which is a pure function of the words.
"""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import OpError, complaint
from flambeau.runtime.mersenne import Engine

INSIDE_OUT_FROM = 0xFFFFFFFF // 20  # from this size on PyTorch takes wide words, another order
BULK_FROM = 600  # below, a plain loop is faster
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
    partners = np.arange(n, dtype=np.uint32)
    if n > 1:
        partners[:-1] += words % np.arange(n, 1, -1, dtype=np.uint32)
    return trades_one_by_one(partners) if n < BULK_FROM else trades_in_bulk(partners)


def trades_one_by_one(partners: np.ndarray) -> np.ndarray:
    """Place i trades with place partners[i] >= i, for each i in turn."""
    order = list(range(len(partners)))
    for i, j in enumerate(partners.tolist()):
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)


def trades_in_bulk(partners: np.ndarray) -> np.ndarray:
    """The same as `trades_one_by_one`.

    Let V(i) be the value at place i just before step i. Only steps t < i with partners[t] = i
    wrote there, the last of them V(t); without any, V(i) = i. So V follows a chain of such
    steps to its end, which doubling finds. Step i takes what is at place j = partners[i] > i:
    V(t) of the last step t < i that had the same partner, or j itself. That holds for j = i too.
    """
    origin = chain_ends(partners)
    steps = np.arange(len(partners), dtype=np.uint64)
    keys = (partners.astype(np.uint64) << np.uint64(32)) | steps
    keys.sort()
    places = (keys >> np.uint64(32)).astype(np.int64)
    times = keys.astype(np.uint32).view(np.int32)
    again = np.flatnonzero(places[1:] == places[:-1])
    values = places  # a place that no step has written to holds its own number
    values[again + 1] = origin.take(times.take(again))
    out = np.empty(len(partners), np.int64)
    out[times] = values
    return out


def chain_ends(partners: np.ndarray) -> np.ndarray:
    """V of `trades_in_bulk`, int32."""
    n = len(partners)
    steps = np.arange(n, dtype=np.int32)
    origin = np.arange(n + 1, dtype=np.int32)  # and a place for trades of a place with itself
    targets = np.where(partners == steps, n, partners).astype(np.intp)
    origin[targets] = steps  # of equal targets the last stays
    origin[n] = n
    open_ends = np.flatnonzero(origin[:n] != steps)
    while len(open_ends):
        near = origin.take(open_ends)
        further = origin.take(near)
        origin[open_ends] = further
        open_ends = open_ends[further != near]
    return origin


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
