"""Gradients of pooling on channels-first pictures, by elements of the picture.

An element sums what the windows that hold it pass on: the whole cotangent to a maximum, a share to
everyone in an average. Elements of a row that are a stride apart lie at the same place in their
windows, so a vector of them reads vectors of neighbouring windows, and vectors of all places in a
stride are interleaved when they are stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from flambeau.codegen.templates.entry import Kernel, slot
from flambeau.codegen.templates.pool_spec import PoolSpec
from flambeau.codegen.templates.pooling import CHUNK, Pooling
from flambeau.codegen.templates.strided import store_strided
from flambeau.codegen.text import Function, Operand, Value, constant, constants, vector, zero

MOST_TAPS = 32  # of a window: code is made for each
Reach = list[tuple[int, int]]  # (tap, how many windows ahead)


def suits_planes(spec: PoolSpec) -> bool:
    """Whether rows are worth vectors, and windows small enough."""
    return spec.layout == "NCHW" and spec.window[0] * spec.window[1] <= MOST_TAPS


def equal_share(spec: PoolSpec) -> float:
    """What an average gives to each element, where all windows give the same; else 0."""
    if spec.divisor:
        return 1 / spec.divisor
    last = [
        (n - 1) * s + w - 2 * p
        for n, s, w, p in zip(
            (spec.out_h, spec.out_w), spec.stride, spec.window, spec.padding, strict=True
        )
    ]
    inside = last[0] <= spec.h and last[1] <= spec.w
    whole = spec.count_padding or spec.padding == (0, 0)
    return 1 / (spec.window[0] * spec.window[1]) if inside and whole else 0.0


@dataclass(slots=True)
class PlaneGradient(Pooling):
    """A chunk is one plane. Pointers: dy, indices unless there is a share, dx."""

    share: float = 0.0

    def emit(self) -> Kernel:
        """Add the kernel."""
        work = self.work if self.share else 2 * self.work
        chunk = self._emit_plane()
        f = self.module.function(self.name, [("ptr", "slots")])
        f.parallel_for(chunk, f.arguments[0], self.spec.n * self.spec.c, work)
        f.ret()
        pointers = 2 if self.share else 3
        return Kernel(self.name, pointers, pointers, nanoseconds=work)

    def _emit_plane(self) -> str:
        spec, name = self.spec, f"{self.name}_plane"
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        start = f.mul(i, self.out_plane)
        dy = f.gep(slot(f, slots, 0), start, self.element)
        where = dy if self.share else f.gep(slot(f, slots, 1), start, self.index_type)
        last = slot(f, slots, 1 if self.share else 2)
        dx = f.gep(last, f.mul(i, self.plane), self.element)
        for phase in range(min(spec.stride[0], spec.h)):
            with f.loop(0, math.ceil((spec.h - phase) / spec.stride[0])) as k:
                y = f.add(f.mul(k.index, spec.stride[0]), phase)
                line = f.mul(y, spec.w)
                windows = [self._row(f, k.index, ahead, line) for _, ahead in self.reach(0, phase)]
                row = f.gep(dx, line, self.element)
                self._whole_row(f, row, [(dy, where, *w) for w in windows])
        f.ret()
        return name

    def reach(self, axis: int, phase: int) -> Reach:
        """Windows that hold elements of a phase of an axis."""
        spec = self.spec
        found = []
        for tap in range(spec.window[axis]):
            ahead = phase + spec.padding[axis] - tap * spec.dilation[axis]
            if ahead % spec.stride[axis] == 0:
                found.append((tap, ahead // spec.stride[axis]))
        return found

    def _row(self, f: Function, k: Value, ahead: int, line: Operand) -> tuple[Value, ...]:
        """(offset of a row of windows, first index of the picture's row, is there such a row?)."""
        place = f.add(k, ahead)
        inside = f.compare("ult", place, self.spec.out_h)  # negative places count as large
        offset = f.mul(f.select(inside, place, 0), self.spec.out_w)
        return offset, f.select(inside, line, -2 * self.plane), inside

    def _whole_row(self, f: Function, row: Value, windows: list[tuple]) -> None:
        """All elements of a row: vectors inside, and blocks at its ends."""
        spec, step = self.spec, self.spec.stride[1]
        aheads = [ahead for q in range(step) for _, ahead in self.reach(1, q)] or [0]
        count = math.ceil(spec.w / step)
        low = min(count, max(0, -min(aheads)))
        high = max(low, min(spec.out_w - max(aheads), spec.w // step))
        high = low + (high - low) // self.lanes * self.lanes
        for first in (*range(0, low, self.lanes), *range(high, count, self.lanes)):
            end = low if first < low else count
            self._block(f, row, windows, first, min(self.lanes, end - first), True)
        if low < high:
            with f.loop(low, high, self.lanes) as j:
                self._block(f, row, windows, j.index, self.lanes, False)

    def _block(
        self, f: Function, row: Value, windows: list[tuple], first: Operand, count: int, end: bool
    ) -> None:
        """Vectors of elements a stride apart, one for each place in the stride."""
        step = self.spec.stride[1]
        sums = []
        for phase in range(step):
            total = zero(self.type)
            for window in windows:
                for _, ahead in self.reach(1, phase):
                    total = f.fadd(total, self._passed(f, window, first, phase, ahead, end))
            sums.append(f.fmul(total, constant(self.share, self.type)) if self.share else total)
        self._store(f, sums, row, first, count)

    def _passed(
        self, f: Function, window: tuple, first: Operand, phase: int, ahead: int, end: bool
    ) -> Value:
        """What a row of windows passes on to a vector of elements."""
        dy, where, offset, line, inside = window
        at, mask = f.add(offset, f.add(first, ahead)), None
        if end:
            assert isinstance(first, int)
            places = range(first + ahead, first + ahead + self.lanes)
            mask = constants([0 <= p < self.spec.out_w for p in places], "i1")
        value = self._read(f, self.type, f.gep(dy, at, self.element), mask)
        if self.share:
            return f.select(f.splat(inside, self.lanes), value, zero(self.type))
        kind = vector(self.lanes, self.index_type)
        index = self._read(f, kind, f.gep(where, at, self.index_type), mask)
        index = f.cast("trunc", index, vector(self.lanes, "i32"))
        start = f.add(f.add(line, phase), f.mul(first, self.spec.stride[1]))
        steps = constants([k * self.spec.stride[1] for k in range(self.lanes)], "i32")
        mine = f.binary("add", f.splat(f.cast("trunc", start, "i32"), self.lanes), steps)
        return f.select(f.compare("eq", index, mine), value, zero(self.type))

    def _read(self, f: Function, kind: str, at: Value, mask: Value | None) -> Value:
        return f.load(kind, at) if mask is None else f.load_masked(kind, at, mask)

    def _store(
        self, f: Function, sums: list[Value], row: Value, first: Operand, count: int
    ) -> None:
        """The elements from stride `first` on, those that the row has."""
        step, lanes, width = self.spec.stride[1], self.lanes, self.spec.w
        start = f.mul(first, step)
        left = min(count * step, width - first * step) if isinstance(first, int) else lanes * step
        if step == 2 and lanes > 1:
            order = [k // 2 + lanes * (k % 2) for k in range(2 * lanes)]
            for half in range(2):
                part = f.shuffle(*sums, order[half * lanes : (half + 1) * lanes])
                if left > half * lanes:
                    at = f.gep(row, f.add(start, half * lanes), self.element)
                    f.store_lanes(part, at, min(lanes, left - half * lanes))
            return
        for phase, total in enumerate(sums):
            if left > phase:
                at = f.gep(row, f.add(start, phase), self.element)
                store_strided(f, total, at, step, min(lanes, math.ceil((left - phase) / step)))
