"""How a window walks over a picture, in one dimension: a convolution and its input gradient.

Both are one pattern: position j of a phase reads the source at ``j * in_step + low + offset + t *
step`` for its taps t, and writes the target at ``j * out_step + first``. A convolution has one
phase. The input gradient of stride s has s, one for each remainder of the target's coordinate: each
meets its own subset of the taps, reversed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phase:
    """Positions that read the same taps."""

    taps: tuple[int, ...]  # indices into the window, in ascending order of source coordinate
    offset: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Walk:
    """One dimension: sizes of source and target, and the phases."""

    source: int
    target: int
    low: int
    in_step: int
    out_step: int
    step: int  # source elements between neighbouring taps, the same in all phases
    phases: tuple[Phase, ...]

    @property
    def positions(self) -> int:
        return max(p.count for p in self.phases)

    @property
    def reach(self) -> int:
        """Source elements from the first to the last tap of one position, over all phases."""
        ends = [p.offset + self.step * (len(p.taps) - 1) + 1 for p in self.phases if p.taps]
        return max(ends, default=1)

    def extent(self, positions: int) -> int:
        """Source elements that so many neighbouring positions need."""
        return (positions - 1) * self.in_step + self.reach


def forward_walk(size: int, out: int, window: int, stride: int, padding: int, step: int) -> Walk:
    """The walk of a convolution over a picture of `size`; `step` is the dilation."""
    phase = Phase(tuple(range(window)), 0, 0, out)
    return Walk(size, out, -padding, stride, 1, step, (phase,))


def gradient_walk(size: int, out: int, window: int, stride: int, padding: int, step: int) -> Walk:
    """The walk over dy (of `out`) that makes dx (of `size`).

    dx[y] sums dy[(y + padding - t * step) / stride] w[t] over the taps that divide evenly.
    """
    found = []
    for first in range(min(stride, size)):
        rest = (first + padding) % stride
        start = (first + padding - rest) // stride
        taps = [t for t in range(window) if (t * step - rest) % stride == 0]
        places = [start - (t * step - rest) // stride for t in taps]
        found.append((taps[::-1], places[::-1], first))
    low = min((p[0] for _, p, _ in found if p), default=0)
    phases = []
    for taps, places, first in found:
        offset = places[0] - low if places else 0
        count = (size - first + stride - 1) // stride
        phases.append(Phase(tuple(taps), offset, first, count))
    return Walk(out, size, low, 1, stride, step // math.gcd(step, stride), tuple(phases))
