"""Depthwise convolution and its gradients on channels-first pictures.

A chunk is one plane, or one channel for the weight gradient. The plane is staged with zero borders
and room for whole vectors behind every row; a vector is some neighbouring positions of a row, and
the weights are scalars.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import cast

from flambeau.codegen.target import Target
from flambeau.codegen.templates import microkernel
from flambeau.codegen.templates.conv_direct import Problem
from flambeau.codegen.templates.conv_spec import ConvSpec
from flambeau.codegen.templates.conv_walk import Phase, Walk, forward_walk
from flambeau.codegen.templates.depthwise_last import CHUNK, GFLOPS, SOURCE, TARGET, WEIGHT
from flambeau.codegen.templates.entry import Kernel, slot, thread_memory
from flambeau.codegen.templates.epilogue import Pointwise
from flambeau.codegen.templates.gemm_plan import ELEMENTS
from flambeau.codegen.templates.strided import load_strided, store_strided
from flambeau.codegen.text import Function, Module, Operand, Value, size_of, vector, zero

BIAS = 3  # its slot


@dataclass(slots=True)
class Planes:
    """A staged plane and how vectors of positions read it."""

    module: Module
    name: str
    dtype: str
    target: Target
    element: str = field(init=False)
    type: str = field(init=False)
    lanes: int = field(init=False)

    def __post_init__(self) -> None:
        self.element = ELEMENTS[self.dtype]
        self.lanes = self.target.lanes(self.element)
        self.type = vector(self.lanes, self.element)

    @property
    def size(self) -> int:
        return size_of(self.element)

    def width(self, walk: Walk) -> int:
        """Columns of the stage: whole vectors of positions may be read."""
        vectors = math.ceil(walk.positions / self.lanes) * self.lanes
        return walk.extent(vectors) + self.lanes

    def stage_bytes(self, rows: Walk, columns: Walk) -> int:
        return rows.extent(rows.positions) * self.width(columns) * self.size

    def stage(self, f: Function, plane: Value, staged: Value, rows: Walk, columns: Walk) -> None:
        """Copy a plane of the source; what lies outside is zero."""
        width, count = self.width(columns), rows.extent(rows.positions)
        f.clear(staged, count * width * self.size)
        top, left = max(0, -rows.low), max(0, -columns.low)
        high = min(count - top, rows.source - top - rows.low)
        wide = min(width - left, columns.source - left - columns.low)
        if high <= 0 or wide <= 0:
            return
        with f.loop(0, high) as row:
            line = f.add(f.mul(row.index, columns.source), (top + rows.low) * columns.source)
            source = f.gep(plane, f.add(line, left + columns.low), self.element)
            target = f.gep(staged, f.add(f.mul(row.index, width), top * width + left), self.element)
            f.copy(target, source, wide * self.size)

    def tap(self, f: Function, row: Value, column: Operand, step: int) -> Value:
        """A vector of staged elements `step` apart from `column` on."""
        at = f.gep(row, column, self.element)
        if step == 2 and self.lanes > 1:
            a = f.load(self.type, at)
            b = f.load(self.type, f.gep(at, self.lanes, self.element))
            return f.shuffle(a, b, range(0, 2 * self.lanes, 2))
        return load_strided(f, self.type, at, step)


@dataclass(slots=True)
class DepthwiseFirst(Planes):
    """Emits the convolution, or its input gradient. Pointers: source, weight, target, bias."""

    problem: Problem = field(kw_only=True)

    @property
    def epilogue(self) -> Pointwise:
        """A plane has one bias; other operands of an epilogue are not for this kernel."""
        return cast(Pointwise, self.problem.epilogue or Pointwise("none"))

    @property
    def pointers(self) -> int:
        return 3 + self.epilogue.pointers

    def emit(self) -> Kernel:
        problem = self.problem
        chunk = self._emit_plane()
        f = self.module.function(self.name, [("ptr", "slots")])
        planes = problem.n * problem.groups
        taps = problem.window[0] * problem.window[1]
        pixels = problem.rows.target * problem.columns.target
        work = int(2.0 * planes * pixels * taps / GFLOPS)
        f.parallel_for(chunk, f.arguments[0], planes, work)
        f.ret()
        own = self.stage_bytes(problem.rows, problem.columns)
        return Kernel(self.name, self.pointers, self.pointers + 1, 0, own, work)

    def _emit_plane(self) -> str:
        problem, name = self.problem, f"{self.name}_plane"
        rows, columns = problem.rows, problem.columns
        f = self.module.function(name, CHUNK)
        slots, i, thread = f.arguments
        own = self.stage_bytes(rows, columns)
        staged = thread_memory(f, slot(f, slots, self.pointers), 0, own, thread)
        start = f.mul(i, rows.source * columns.source)
        self.stage(f, f.gep(slot(f, slots, SOURCE), start, self.element), staged, rows, columns)
        channel = f.urem(i, problem.groups)
        weight = f.gep(slot(f, slots, WEIGHT), f.mul(channel, problem.weight_group), self.element)
        start = f.mul(i, rows.target * columns.target)
        target = f.gep(slot(f, slots, TARGET), start, self.element)
        first = zero(self.type)
        if self.epilogue.bias:
            bias = f.load(self.element, f.gep(slot(f, slots, BIAS), channel, self.element))
            first = f.splat(bias, self.lanes)
        for down in rows.phases:
            for across in columns.phases:
                self._phase(f, (staged, weight, target), first, down, across)
        f.ret()
        return name

    def _phase(
        self, f: Function, memory: tuple[Value, ...], first: Value, down: Phase, across: Phase
    ) -> None:
        """All positions of one phase; sums start from `first`."""
        staged, weight, target = memory
        rows, columns = self.problem.rows, self.problem.columns
        _, _, r_stride, s_stride = self.problem.weight_strides
        taps = [(n, r, t, s) for n, r in enumerate(down.taps) for t, s in enumerate(across.taps)]
        weights = [
            f.load(self.element, f.gep(weight, r * r_stride + s * s_stride, self.element))
            for _, r, _, s in taps
        ]
        with f.loop(0, down.count) as i:
            line = f.add(f.mul(i.index, rows.in_step), down.offset)
            row = f.gep(staged, f.mul(line, self.width(columns)), self.element)
            h = f.add(f.mul(i.index, rows.out_step), down.first)
            out = f.gep(target, f.add(f.mul(h, columns.target), across.first), self.element)

            def block(j: Operand, count: int) -> None:
                total = first
                column = f.add(f.mul(j, columns.in_step), across.offset)
                for (n, _, t, _), w in zip(taps, weights, strict=True):
                    offset = n * rows.step * self.width(columns) + t * columns.step
                    x = self.tap(f, row, f.add(column, offset), columns.in_step)
                    total = f.fma(x, f.splat(w, self.lanes), total)
                if self.epilogue.function:
                    total = self.epilogue.function(f, total)
                at = f.gep(out, f.mul(j, columns.out_step), self.element)
                store_strided(f, total, at, columns.out_step, count)

            whole = across.count // self.lanes * self.lanes
            if whole:
                with f.loop(0, whole, self.lanes) as j:
                    block(j.index, self.lanes)
            if across.count > whole:
                block(whole, across.count - whole)


@dataclass(slots=True)
class DepthwiseWeightFirst(Planes):
    """Emits dw. Pointers: x, dy, dw."""

    spec: ConvSpec = field(kw_only=True)

    def walks(self) -> tuple[Walk, Walk]:
        spec = self.spec
        sizes = zip(
            (spec.h, spec.w),
            (spec.out_h, spec.out_w),
            (spec.r, spec.s),
            spec.stride,
            spec.padding,
            spec.dilation,
            strict=True,
        )
        rows, columns = (forward_walk(*s) for s in sizes)
        return rows, columns

    @property
    def sums_bytes(self) -> int:
        return -(-self.spec.r * self.spec.s * self.lanes * self.size // 64) * 64

    def emit(self) -> Kernel:
        chunk = self._emit_channel()
        f = self.module.function(self.name, [("ptr", "slots")])
        work = int(self.spec.flops / GFLOPS)
        f.parallel_for(chunk, f.arguments[0], self.spec.c, work)
        f.ret()
        own = self.sums_bytes + self.stage_bytes(*self.walks())
        return Kernel(self.name, 3, 4, 0, own, work)

    def _emit_channel(self) -> str:
        """A chunk is one channel of all images: vectors of partial sums, added up at the end."""
        spec, name = self.spec, f"{self.name}_channel"
        rows, columns = self.walks()
        f = self.module.function(name, CHUNK)
        slots, channel, thread = f.arguments
        own = self.sums_bytes + self.stage_bytes(rows, columns)
        sums = thread_memory(f, slot(f, slots, 3), 0, own, thread)
        staged = f.gep(sums, self.sums_bytes, "i8")
        f.clear(sums, self.sums_bytes)
        with f.loop(0, spec.n) as image:
            plane = f.add(f.mul(image.index, spec.c), channel)
            x = f.gep(slot(f, slots, 0), f.mul(plane, spec.h * spec.w), self.element)
            self.stage(f, x, staged, rows, columns)
            start = f.mul(plane, spec.out_h * spec.out_w)
            dy = f.gep(slot(f, slots, 1), start, self.element)
            together = max(1, 12 // spec.s)
            for first in range(0, spec.r, together):
                taps = [
                    (r, s)
                    for r in range(first, min(first + together, spec.r))
                    for s in range(spec.s)
                ]
                self._add_plane(f, staged, dy, sums, taps)
        k, _, r_stride, s_stride = spec.w_strides
        target = f.gep(slot(f, slots, 2), f.mul(channel, k), self.element)
        for r in range(spec.r):
            for s in range(spec.s):
                at = f.gep(sums, (r * spec.s + s) * self.lanes, self.element)
                total = microkernel.horizontal_sum(f, f.load(self.type, at))
                f.store(total, f.gep(target, r * r_stride + s * s_stride, self.element))
        f.ret()
        return name

    def _add_plane(
        self, f: Function, staged: Value, dy: Value, sums: Value, taps: list[tuple[int, int]]
    ) -> None:
        """Add a plane's products to the partial sums of some taps."""
        spec, (_, columns) = self.spec, self.walks()
        width = self.width(columns)
        places = [f.gep(sums, (r * spec.s + s) * self.lanes, self.element) for r, s in taps]
        start = [f.load(self.type, p) for p in places]
        whole = spec.out_w // self.lanes * self.lanes

        def block(row: Value, line: Value, j: Operand, count: int, totals: list[Value]):
            value = f.load_lanes(self.type, f.gep(line, j, self.element), count)
            out = []
            for (r, s), total in zip(taps, totals, strict=True):
                offset = r * spec.dilation[0] * width + s * spec.dilation[1]
                column = f.add(f.mul(j, spec.stride[1]), offset)
                out.append(f.fma(self.tap(f, row, column, spec.stride[1]), value, total))
            return out

        with f.loop(0, spec.out_h, carry=start) as i:
            row = f.gep(staged, f.mul(i.index, spec.stride[0] * width), self.element)
            line = f.gep(dy, f.mul(i.index, spec.out_w), self.element)
            totals = list(i.carried)
            if whole:
                with f.loop(0, whole, self.lanes, carry=totals) as j:
                    j.next = block(row, line, j.index, self.lanes, list(j.carried))
                totals = j.results
            if spec.out_w > whole:
                totals = block(row, line, whole, spec.out_w - whole, totals)
            i.next = totals
        for p, total in zip(places, i.results, strict=True):
            f.store(total, p)
