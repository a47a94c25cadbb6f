"""Depthwise convolution and its gradients on channels-last pictures.

A vector is some channels of one pixel; channels do not meet. Rows are staged with zero borders, and
the weight is turned to [tap][channel] beforehand. A tile is some neighbouring positions of a row:
each staged pixel is loaded once per row of taps and used for every tap that meets it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from flambeau.codegen.target import Target
from flambeau.codegen.templates import microkernel
from flambeau.codegen.templates.conv_direct import Problem
from flambeau.codegen.templates.conv_spec import ConvSpec
from flambeau.codegen.templates.conv_stage import Stage
from flambeau.codegen.templates.conv_walk import Phase
from flambeau.codegen.templates.entry import Kernel, slot, thread_memory
from flambeau.codegen.templates.epilogue import Place
from flambeau.codegen.templates.gemm_plan import ELEMENTS
from flambeau.codegen.templates.strided import load_strided, store_strided
from flambeau.codegen.templates.winograd_transform import each_group
from flambeau.codegen.text import (
    Function,
    Module,
    Operand,
    Value,
    element_of,
    lanes_of,
    size_of,
    vector,
    zero,
)
from flambeau.runtime import pool

CHUNK = [("ptr", "slots"), ("i64", "i"), ("i64", "thread")]
SOURCE, WEIGHT, TARGET = range(3)
GFLOPS = 20.0  # of one thread, to estimate the time of a call
STAGE_BYTES = 256 * 1024
MOST_SHARES = 8


def emit_turned_weight(
    module: Module, name: str, problem_strides: tuple[int, int, int], channels: int,
    window: tuple[int, int], type: str, memory_slot: int,
) -> str:  # fmt: skip
    """A chunk that turns the weight to [r, s][channel] at the start of the working memory."""
    f = module.function(name, CHUNK)
    slots, tap, _ = f.arguments
    k, r, s = problem_strides
    place = f.add(f.mul(f.udiv(tap, window[1]), r), f.mul(f.urem(tap, window[1]), s))
    element, lanes = element_of(type), lanes_of(type)
    source = f.gep(slot(f, slots, WEIGHT), place, element)
    target = f.gep(slot(f, slots, memory_slot), f.mul(tap, channels), element)

    def group(c: Operand, count: int) -> None:
        x = load_strided(f, type, f.gep(source, f.mul(c, k), element), k, count)
        f.store_lanes(x, f.gep(target, c, element), count)

    each_group(f, channels, lanes, group)
    f.ret()
    return name


@dataclass(slots=True)
class DepthwiseLast:
    """Emits the convolution, or its input gradient, of a problem with one channel a group."""

    module: Module
    name: str
    problem: Problem
    target: Target
    element: str = field(init=False)
    type: str = field(init=False)
    lanes: int = field(init=False)
    band: int = field(init=False)  # positions of a chunk along the rows

    def __post_init__(self) -> None:
        self.element = ELEMENTS[self.problem.dtype]
        self.lanes = self.target.lanes(self.element)
        self.type = vector(self.lanes, self.element)
        row = self.stage_width * self.channels * self.size
        fits = max(1, STAGE_BYTES // row // self.problem.rows.in_step)
        chunks = math.ceil(2 * pool.get_num_threads() / self.problem.n)
        even = math.ceil(self.problem.rows.positions / chunks)
        self.band = max(1, min(fits, even))

    @property
    def channels(self) -> int:
        return self.problem.groups

    @property
    def size(self) -> int:
        return size_of(self.element)

    @property
    def wide(self) -> int:
        """Positions of a tile."""
        return 12 if self.target.vector_registers >= 32 else 6

    @property
    def bands(self) -> int:
        return math.ceil(self.problem.rows.positions / self.band)

    @property
    def stage_width(self) -> int:
        walk = self.problem.columns
        return walk.extent(walk.positions)

    @property
    def stage_bytes(self) -> int:
        rows = self.problem.rows.extent(self.band)
        return (rows * self.stage_width * self.channels + self.lanes) * self.size

    @property
    def weight_bytes(self) -> int:
        taps = self.problem.window[0] * self.problem.window[1]
        return -(-taps * self.channels * self.size // 64) * 64

    @property
    def pointers(self) -> int:
        return 3 + (self.problem.epilogue.pointers if self.problem.epilogue else 0)

    def emit(self) -> Kernel:
        """Add the kernel; its pointers: source, weight, target, then the epilogue's."""
        problem = self.problem
        _, _, r, s = problem.weight_strides
        strides = (problem.weight_group, r, s)
        weights = emit_turned_weight(
            self.module, f"{self.name}_weights", strides, self.channels, problem.window, self.type,
            self.pointers,
        )  # fmt: skip
        chunk = self._emit_band()
        f = self.module.function(self.name, [("ptr", "slots")])
        (slots,) = f.arguments
        taps = problem.window[0] * problem.window[1]
        pixels = problem.rows.target * problem.columns.target
        work = int(2.0 * problem.n * self.channels * pixels * taps / GFLOPS)
        f.parallel_for(weights, slots, taps, self.weight_bytes // 4)
        f.parallel_for(chunk, slots, problem.n * self.bands, work)
        f.ret()
        return Kernel(
            self.name, self.pointers, self.pointers + 1, self.weight_bytes, self.stage_bytes, work
        )

    def _emit_band(self) -> str:
        problem, name = self.problem, f"{self.name}_band"
        f = self.module.function(name, CHUNK)
        slots, i, thread = f.arguments
        image, first = f.udiv(i, self.bands), f.mul(f.urem(i, self.bands), self.band)
        rows, columns, c = problem.rows, problem.columns, self.channels
        memory = slot(f, slots, self.pointers)
        staged = thread_memory(f, memory, self.weight_bytes, self.stage_bytes, thread)
        count = f.minimum(f.sub(rows.positions, first), self.band)
        stage = Stage(
            self.module, f"{self.name}_stage", self.type, "NHWC", rows.source, columns.source, c,
            columns.low, self.stage_width, c, c,
        )  # fmt: skip
        start = f.mul(image, c * rows.source * columns.source)
        source = f.gep(slot(f, slots, SOURCE), start, self.element)
        need = f.add(f.mul(f.sub(count, 1), rows.in_step), rows.reach)
        stage.emit(f, source, staged, f.add(f.mul(first, rows.in_step), rows.low), need)
        for down in rows.phases:
            for across in columns.phases:
                limit = f.minimum(f.sub(down.count, first), count)
                with f.loop(0, limit) as loop:
                    self._row(f, slots, memory, staged, image, first, loop.index, down, across)
        f.ret()
        return name

    def _row(
        self, f: Function, slots: Value, weights: Value, staged: Value, image: Operand,
        first: Operand, row: Value, down: Phase, across: Phase,
    ) -> None:  # fmt: skip
        """All positions of one row of a phase."""
        problem, c = self.problem, self.channels
        line = f.add(f.mul(row, problem.rows.in_step), down.offset)
        a = f.gep(staged, f.add(f.mul(line, self.stage_width * c), across.offset * c), self.element)
        h = f.add(f.mul(f.add(first, row), problem.rows.out_step), down.first)
        pixel = f.mul(f.add(f.mul(image, problem.rows.target), h), problem.columns.target)
        pixel = f.add(pixel, across.first)
        done = 0
        parts = microkernel.even_parts(across.count, self.wide)
        for wide in dict.fromkeys(parts):
            kernel = self._tile_kernel(wide, down, across)
            with f.loop(0, parts.count(wide)) as loop:
                j = f.add(f.mul(loop.index, wide), done)
                at = f.gep(a, f.mul(j, problem.columns.in_step * c), self.element)
                place = f.add(pixel, f.mul(j, problem.columns.out_step))
                target = f.gep(slot(f, slots, TARGET), f.mul(place, c), self.element)
                f.call(kernel, "void", slots, at, weights, target, place)
            done += parts.count(wide) * wide

    def _tile_kernel(self, wide: int, down: Phase, across: Phase) -> str:
        """``tile(slots, a, weights, target, pixel)``: all channels of `wide` positions."""
        taps = "_".join(map(str, (*down.taps, "x", *across.taps)))
        name = f"{self.name}_tile{wide}_{taps}"
        if name in self.module:
            return name
        parameters = [("ptr", "slots"), ("ptr noalias readonly", "a")]
        parameters += [("ptr noalias readonly", "w"), ("ptr noalias", "c"), ("i64", "pixel")]
        f = self.module.function(name, parameters)
        slots, a, w, target, pixel = f.arguments
        pointers = tuple(slot(f, slots, 3 + i) for i in range(self.pointers - 3))
        step = self.problem.columns.out_step

        def group(c: Operand, count: int) -> None:
            sums = self._sums(f, a, w, c, count, wide, down, across)
            for j, x in enumerate(sums):
                if self.problem.epilogue is not None:
                    place = Place(f.add(pixel, j * step), c, count, pointers, self.element)
                    x = self.problem.epilogue.apply(f, x, place)
                at = f.gep(target, f.add(c, j * step * self.channels), self.element)
                f.store_lanes(x, at, count)

        each_group(f, self.channels, self.lanes, group)
        f.ret()
        return name

    def _sums(
        self, f: Function, a: Value, w: Value, c: Operand, count: int, wide: int, down: Phase,
        across: Phase,
    ) -> list[Value]:  # fmt: skip
        """Sums over the taps; the rows of taps are evenly apart, in the window and staged."""
        problem, channels = self.problem, self.channels
        in_step, step = problem.columns.in_step, problem.columns.step
        sums = [zero(self.type)] * wide
        for n, r in enumerate(down.taps):
            row = f.gep(a, n * problem.rows.step * self.stage_width * channels, self.element)
            weights = [
                f.load_lanes(
                    self.type,
                    f.gep(w, f.add(c, (r * problem.window[1] + s) * channels), self.element),
                    count,
                )
                for s in across.taps
            ]
            users: dict[int, list[tuple[int, int]]] = {}
            for j in range(wide):
                for t in range(len(across.taps)):
                    users.setdefault(j * in_step + t * step, []).append((j, t))
            for place in sorted(users):
                at = f.gep(row, f.add(c, place * channels), self.element)
                x = f.load_lanes(self.type, at, count)
                for j, t in users[place]:
                    sums[j] = f.fma(x, weights[t], sums[j])
        return sums


@dataclass(slots=True)
class DepthwiseWeightLast:
    """Emits dw[c, r, s]: the sum over pixels of x moved by (r, s) times dy. x, dy, dw.

    Shares of the images are summed apart and added in order.
    """

    module: Module
    name: str
    spec: ConvSpec
    target: Target
    element: str = field(init=False)
    type: str = field(init=False)
    lanes: int = field(init=False)

    def __post_init__(self) -> None:
        self.element = ELEMENTS[self.spec.dtype]
        self.lanes = self.target.lanes(self.element)
        self.type = vector(self.lanes, self.element)

    @property
    def size(self) -> int:
        return size_of(self.element)

    @property
    def taps(self) -> int:
        return self.spec.r * self.spec.s

    @property
    def shares(self) -> int:
        return min(self.spec.n, 2 * min(pool.machine_cpus(), MOST_SHARES))

    @property
    def stage_width(self) -> int:
        spec = self.spec
        return (spec.out_w - 1) * spec.stride[1] + (spec.s - 1) * spec.dilation[1] + 1

    @property
    def reach(self) -> int:
        return (self.spec.r - 1) * self.spec.dilation[0] + 1

    @property
    def band(self) -> int:
        """Rows of dy whose rows of x are staged together."""
        row = self.stage_width * self.spec.c * self.size
        fits = max(1, (STAGE_BYTES // row - self.reach) // self.spec.stride[0] + 1)
        return min(fits, self.spec.out_h)

    @property
    def stage_bytes(self) -> int:
        rows = (self.band - 1) * self.spec.stride[0] + self.reach
        count = rows * self.stage_width * self.spec.c + self.lanes
        return -(-count * self.size // 64) * 64

    @property
    def sums_bytes(self) -> int:
        return -(-self.shares * self.taps * self.spec.c * self.size // 64) * 64

    def emit(self) -> Kernel:
        chunk, store = self._emit_chunk(), self._emit_store()
        f = self.module.function(self.name, [("ptr", "slots")])
        (slots,) = f.arguments
        work = int(self.spec.flops / GFLOPS)
        f.parallel_for(chunk, slots, self.shares, work)
        f.parallel_for(store, slots, self.taps, self.sums_bytes // 4)
        f.ret()
        return Kernel(self.name, 3, 4, self.sums_bytes, self.stage_bytes, work)

    def _emit_chunk(self) -> str:
        """A share of the images, row by row."""
        spec, name = self.spec, f"{self.name}_share"
        f = self.module.function(name, CHUNK)
        slots, i, thread = f.arguments
        memory = slot(f, slots, 3)
        sums = f.gep(memory, f.mul(i, self.taps * spec.c), self.element)
        f.clear(sums, self.taps * spec.c * self.size)
        staged = thread_memory(f, memory, self.sums_bytes, self.stage_bytes, thread)
        stage = Stage(
            self.module, f"{self.name}_stage", self.type, "NHWC", spec.h, spec.w, spec.c,
            -spec.padding[1], self.stage_width, spec.c, spec.c,
        )  # fmt: skip
        low = f.udiv(f.mul(i, spec.n), self.shares)
        high = f.udiv(f.mul(f.add(i, 1), spec.n), self.shares)
        with f.loop(low, high) as image, f.loop(0, spec.out_h, self.band) as band:
            start = f.mul(image.index, spec.c * spec.h * spec.w)
            x = f.gep(slot(f, slots, 0), start, self.element)
            begin = f.sub(f.mul(band.index, spec.stride[0]), spec.padding[0])
            count = f.minimum(f.sub(spec.out_h, band.index), self.band)
            rows = f.add(f.mul(f.sub(count, 1), spec.stride[0]), self.reach)
            stage.emit(f, x, staged, begin, rows)
            pixel = f.mul(f.add(f.mul(image.index, spec.out_h), band.index), spec.out_w)
            dy = f.gep(slot(f, slots, 1), f.mul(pixel, spec.c), self.element)
            self._add_band(f, staged, dy, sums, count)
        f.ret()
        return name

    def _add_band(self, f: Function, staged: Value, dy: Value, sums: Value, rows: Operand) -> None:
        """Add rows of dy to the sums; as many rows of taps at a time as have registers."""
        spec = self.spec
        together = max(1, 12 // spec.s)
        starts = range(0, spec.r, together)

        def group(c: Operand, count: int) -> None:
            for first in starts:
                taps = [
                    (r, s)
                    for r in range(first, min(first + together, spec.r))
                    for s in range(spec.s)
                ]
                self._add_taps(f, staged, dy, sums, rows, c, count, taps)

        each_group(f, spec.c, self.lanes, group)

    def _add_taps(
        self, f: Function, staged: Value, dy: Value, sums: Value, rows: Operand, c: Operand,
        count: int, taps: list[tuple[int, int]],
    ) -> None:  # fmt: skip
        spec = self.spec
        places = [f.gep(sums, f.add(c, (r * spec.s + s) * spec.c), self.element) for r, s in taps]
        start = [f.load_lanes(self.type, p, count) for p in places]
        line = spec.stride[0] * self.stage_width * spec.c
        with f.loop(0, rows, carry=start) as i:
            x_row = f.gep(staged, f.add(f.mul(i.index, line), c), self.element)
            dy_row = f.gep(dy, f.add(f.mul(i.index, spec.out_w * spec.c), c), self.element)
            with f.loop(0, spec.out_w, carry=i.carried) as j:
                at = f.gep(dy_row, f.mul(j.index, spec.c), self.element)
                value = f.load_lanes(self.type, at, count)
                x_at = f.gep(x_row, f.mul(j.index, spec.stride[1] * spec.c), self.element)
                out = []
                for (r, s), total in zip(taps, j.carried, strict=True):
                    offset = r * spec.dilation[0] * self.stage_width + s * spec.dilation[1]
                    x = f.load_lanes(self.type, f.gep(x_at, offset * spec.c, self.element), count)
                    out.append(f.fma(x, value, total))
                j.next = out
            i.next = j.results
        for p, total in zip(places, i.results, strict=True):
            f.store_lanes(total, p, count)

    def _emit_store(self) -> str:
        """Add the shares of one tap and store the weight's layout."""
        spec, name = self.spec, f"{self.name}_store"
        k, _, r, s = spec.w_strides
        f = self.module.function(name, CHUNK)
        slots, tap, _ = f.arguments
        place = f.add(f.mul(f.udiv(tap, spec.s), r), f.mul(f.urem(tap, spec.s), s))
        target = f.gep(slot(f, slots, 2), place, self.element)
        sums = f.gep(slot(f, slots, 3), f.mul(tap, spec.c), self.element)

        def group(c: Operand, count: int) -> None:
            total = zero(self.type)
            for share in range(self.shares):
                at = f.gep(sums, f.add(c, share * self.taps * spec.c), self.element)
                total = f.fadd(total, f.load_lanes(self.type, at, count))
            store_strided(f, total, f.gep(target, f.mul(c, k), self.element), k, count)

        each_group(f, spec.c, self.lanes, group)
        f.ret()
        return name
