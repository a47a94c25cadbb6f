"""One arena for buffers that live at different times.

Each buffer has a size and the first and last step at which it is used; two that are never alive
together may share bytes. Larger buffers are placed first, each at the lowest place that is free for
its whole life: within a few per cent of the best on the graphs of networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64  # bytes: a cache line, and the widest vector


@dataclass(frozen=True, slots=True)
class Lifetime:
    """`nbytes` are needed from step `first` to step `last`, both included."""

    nbytes: int
    first: int
    last: int

    def overlaps(self, other: Lifetime) -> bool:
        return self.first <= other.last and other.first <= self.last


def aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def offsets(lifetimes: Sequence[Lifetime]) -> tuple[tuple[int, ...], int]:
    """(the offset of every buffer, the bytes of the arena)."""
    order = sorted(range(len(lifetimes)), key=lambda k: (-lifetimes[k].nbytes, lifetimes[k].first))
    placed: list[int] = []
    found = [0] * len(lifetimes)
    for k in order:
        mine = lifetimes[k]
        taken = sorted(
            (found[j], found[j] + aligned(lifetimes[j].nbytes))
            for j in placed
            if lifetimes[j].overlaps(mine)
        )
        found[k] = lowest(taken, aligned(mine.nbytes))
        placed.append(k)
    total = max((found[k] + aligned(x.nbytes) for k, x in enumerate(lifetimes)), default=0)
    return tuple(found), total


def lowest(taken: list[tuple[int, int]], nbytes: int) -> int:
    """The first gap of `nbytes` between the taken ranges, which are sorted by start."""
    at = 0
    for start, end in taken:
        if start - at >= nbytes:
            return at
        at = max(at, end)
    return at


def peak(lifetimes: Sequence[Lifetime]) -> int:
    """The most bytes alive at any step: no plan needs less."""
    steps = {x.first for x in lifetimes}
    alive = [sum(aligned(x.nbytes) for x in lifetimes if x.first <= s <= x.last) for s in steps]
    return max(alive, default=0)
