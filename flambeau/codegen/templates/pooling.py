"""Maximum and average pooling, forward and backward.

Channels-last, a vector is some channels of one output pixel. Channels-first, it is some
neighbouring pixels of one output row: blocks inside the picture load plain vectors (stride 1),
pairs of vectors (stride 2) or gather; blocks at the borders gather with a mask known beforehand.

A NaN in a window wins, as in PyTorch; among equal values the first in reading order does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from flambeau.codegen.target import Target
from flambeau.codegen.templates.entry import Kernel, slot
from flambeau.codegen.templates.gemm_plan import ELEMENTS
from flambeau.codegen.templates.pool_spec import PoolSpec
from flambeau.codegen.templates.strided import load_gathered, load_strided
from flambeau.codegen.templates.winograd_transform import each_group
from flambeau.codegen.text import (
    Function,
    Module,
    Operand,
    Value,
    constant,
    constants,
    lanes_of,
    size_of,
    vector,
    zero,
)

CHUNK = [("ptr", "slots"), ("i64", "i"), ("i64", "thread")]
X, Y, INDICES = range(3)
BYTES_PER_NANOSECOND = 5
WIDE = 32  # taps along a row that code is made for one by one
Best = tuple[Value, Value]  # values and where they were


@dataclass(slots=True)
class Pooling:
    """Geometry shared by the four kernels."""

    module: Module
    name: str
    spec: PoolSpec
    target: Target
    element: str = field(init=False)
    type: str = field(init=False)
    lanes: int = field(init=False)

    def __post_init__(self) -> None:
        if self.spec.layout == "NCHW" and self.spec.window[1] > WIDE:
            planes = self.spec.n * self.spec.c  # channels-last pictures of one channel
            self.spec = replace(self.spec, n=planes, c=1, layout="NHWC")
        self.element = ELEMENTS[self.spec.dtype]
        self.lanes = self.target.lanes(self.element)
        self.type = vector(self.lanes, self.element)

    @property
    def size(self) -> int:
        return size_of(self.element)

    @property
    def index_type(self) -> str:
        return "i64" if self.spec.indices == "int64" else "i32"

    @property
    def plane(self) -> int:
        return self.spec.h * self.spec.w

    @property
    def out_plane(self) -> int:
        return self.spec.out_h * self.spec.out_w

    @property
    def work(self) -> int:
        total = self.spec.n * self.spec.c * (self.plane + self.out_plane) * self.size
        return total // BYTES_PER_NANOSECOND

    def taps(self, f: Function, axis: int, place: Operand) -> tuple[Operand, Operand, Operand]:
        """(first valid tap, end, coordinate of tap 0) of output `place` along an axis."""
        spec = self.spec
        size = (spec.h, spec.w)[axis]
        start = f.sub(f.mul(place, spec.stride[axis]), spec.padding[axis])
        step = spec.dilation[axis]
        low = f.maximum(f.sub(0, start), 0)
        high = f.maximum(f.sub(size, start), 0)
        if step > 1:
            low = f.udiv(f.add(low, step - 1), step)
            high = f.udiv(f.add(high, step - 1), step)
        return low, f.minimum(high, spec.window[axis]), start

    # channels last: body(f, best so far, value, index) over the taps of one pixel

    def pixel(
        self, f: Function, x: Value, h: Operand, w: Operand, start: list[Value],
        body: Callable[[Value, Value, list[Value]], list[Value]],
    ) -> list[Value]:  # fmt: skip
        """Fold the taps of a pixel: body(address offset, index in the plane, carried)."""
        spec = self.spec
        r0, r1, top = self.taps(f, 0, h)
        s0, s1, left = self.taps(f, 1, w)
        with f.loop(r0, r1, carry=start) as r:
            row = f.add(f.mul(r.index, spec.dilation[0]), top)
            with f.loop(s0, s1, carry=r.carried) as s:
                place = f.add(f.mul(row, spec.w), f.add(f.mul(s.index, spec.dilation[1]), left))
                at = f.gep(x, f.mul(place, spec.c), self.element)
                s.next = body(at, place, s.carried)
            r.next = s.results
        return r.results

    # channels first: vectors of an output row

    def blocks(self) -> tuple[list[tuple[int, int]], list[int], tuple[int, int]]:
        """How an output row is cut: (first, count) of border blocks, firsts of single inner
        vectors, and (first, end) of the loop over inner vectors.

        The last inner vector overlaps the one before it rather than leave pixels to the border.
        """
        spec, lanes = self.spec, self.lanes
        stride, pad = spec.stride[1], spec.padding[1]
        low = min(spec.out_w, math.ceil(pad / stride))
        reach = (spec.window[1] - 1) * spec.dilation[1] + (1 if stride == 2 else 0)
        high = min(max(low, (spec.w + pad - 1 - reach) // stride + 1), spec.out_w)
        if high - low < lanes:
            high = low
        end = low + (high - low) // lanes * lanes
        single = [high - lanes] if high > end else []
        borders = [(i, min(lanes, low - i)) for i in range(0, low, lanes)]
        borders += [(i, min(lanes, spec.out_w - i)) for i in range(high, spec.out_w, lanes)]
        return borders, single, (low, end)

    def inner_tap(self, f: Function, row: Value, column: Operand) -> Value:
        """A vector of taps, all inside: column is that of lane 0."""
        stride, at = self.spec.stride[1], f.gep(row, column, self.element)
        if stride == 2:
            a = f.load(self.type, at)
            b = f.load(self.type, f.gep(at, self.lanes, self.element))
            return f.shuffle(a, b, range(0, 2 * self.lanes, 2))
        return load_strided(f, self.type, at, stride)

    def border_tap(
        self, f: Function, row: Value, first: int, count: int, s: int, fill: float
    ) -> tuple[Value, Value]:
        """(values, mask) of the taps s of a border block; lanes outside get `fill`."""
        spec = self.spec
        columns = [
            (first + i) * spec.stride[1] + s * spec.dilation[1] - spec.padding[1]
            for i in range(self.lanes)
        ]
        inside = [0 <= c < spec.w and i < count for i, c in enumerate(columns)]
        mask = constants(inside, "i1")
        safe = [c if ok else 0 for c, ok in zip(columns, inside, strict=True)]
        return load_gathered(f, self.type, row, safe, inside, fill), mask

    def columns(self, f: Function, first: Operand, s: int) -> Value:
        """Picture columns of tap s of the lanes of a block, as i32."""
        spec = self.spec
        steps = constants([i * spec.stride[1] for i in range(self.lanes)], "i32")
        start = f.add(f.mul(first, spec.stride[1]), s * spec.dilation[1] - spec.padding[1])
        if isinstance(start, int):
            return constants([start + i * spec.stride[1] for i in range(self.lanes)], "i32")
        return f.binary("add", f.splat(f.cast("trunc", start, "i32"), self.lanes), steps)

    def store_indices(self, f: Function, index: Value, target: Value, count: int) -> None:
        if self.index_type == "i64":
            index = f.cast("zext", index, vector(self.lanes, "i64"))
        f.store_lanes(index, target, count)


@dataclass(slots=True)
class MaxPool(Pooling):
    """y = maximum of each window; optionally where it was."""

    keep_indices: bool = True

    def better(self, f: Function, best: Best, x: Value, index: Value) -> Best:
        """The larger of both, NaN the largest; the earlier of equal ones."""
        take = f.binary("or", f.compare("ogt", x, best[0]), f.compare("uno", x, x))
        return f.select(take, x, best[0]), f.select(take, index, best[1])

    @property
    def lowest(self) -> Value:
        return constant(float("-inf"), self.type)

    def first_place(self, f: Function, h: Operand, w: Operand) -> Value:
        """The first position of a pixel's window: the maximum's when all of it is -inf."""
        r, _, top = self.taps(f, 0, h)
        s, _, left = self.taps(f, 1, w)
        row = f.add(f.mul(r, self.spec.dilation[0]), top)
        column = f.add(f.mul(s, self.spec.dilation[1]), left)
        return f.splat(self.index32(f, f.add(f.mul(row, self.spec.w), column)), self.lanes)

    def index32(self, f: Function, place: Operand) -> Value:
        return constant(place, "i32") if isinstance(place, int) else f.cast("trunc", place, "i32")

    def first_columns(self, f: Function, first: Operand, border: bool) -> Value:
        """The first columns inside of the windows of a block."""
        if not border:
            return self.columns(f, first, 0)
        assert isinstance(first, int)
        stride, step, padding = self.spec.stride[1], self.spec.dilation[1], self.spec.padding[1]
        starts = [(first + i) * stride - padding for i in range(self.lanes)]
        return constants([c + -(min(c, 0) // step) * step for c in starts], "i32")

    def emit(self) -> Kernel:
        """Add the kernel; its pointers: x, y and, if kept, indices."""
        rows = self._emit_rows_last if self.spec.layout == "NHWC" else self._emit_rows_first
        chunk, chunks = rows()
        f = self.module.function(self.name, [("ptr", "slots")])
        f.parallel_for(chunk, f.arguments[0], chunks, self.work)
        f.ret()
        pointers = 2 + self.keep_indices
        return Kernel(self.name, pointers, pointers, nanoseconds=self.work)

    def _emit_rows_last(self) -> tuple[str, int]:
        """A chunk is a row of output pixels."""
        spec, name = self.spec, f"{self.name}_row"
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        image, h = f.udiv(i, spec.out_h), f.urem(i, spec.out_h)
        x = f.gep(slot(f, slots, X), f.mul(image, self.plane * spec.c), self.element)
        with f.loop(0, spec.out_w) as w:
            pixel = f.mul(f.add(f.mul(i, spec.out_w), w.index), spec.c)
            each_group(
                f, spec.c, self.lanes,
                lambda c, count: self._pixel_last(f, slots, x, h, w.index, pixel, c, count),
            )  # fmt: skip
        f.ret()
        return name, spec.n * spec.out_h

    def _pixel_last(
        self, f: Function, slots: Value, x: Value, h: Operand, w: Operand, pixel: Operand,
        c: Operand, count: int,
    ) -> None:  # fmt: skip
        def body(at: Value, place: Value, carried: list[Value]) -> list[Value]:
            value = f.load_lanes(self.type, at, count)
            index = f.splat(f.cast("trunc", place, "i32"), self.lanes)
            return list(self.better(f, (carried[0], carried[1]), value, index))

        start = f.gep(x, c, self.element)
        best, index = self.pixel(f, start, h, w, [self.lowest, self.first_place(f, h, w)], body)
        place = f.add(pixel, c)
        f.store_lanes(best, f.gep(slot(f, slots, Y), place, self.element), count)
        if self.keep_indices:
            at = f.gep(slot(f, slots, INDICES), place, self.index_type)
            self.store_indices(f, index, at, count)

    def _emit_rows_first(self) -> tuple[str, int]:
        """A chunk is one plane."""
        spec, name = self.spec, f"{self.name}_plane"
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        x = f.gep(slot(f, slots, X), f.mul(i, self.plane), self.element)
        borders, single, (low, end) = self.blocks()
        with f.loop(0, spec.out_h) as h:
            start = f.add(f.mul(i, self.out_plane), f.mul(h.index, spec.out_w))
            y = f.gep(slot(f, slots, Y), start, self.element)
            where = y
            if self.keep_indices:
                where = f.gep(slot(f, slots, INDICES), start, self.index_type)
            for first, count in borders:
                self._block_first(f, x, y, where, h.index, first, count, True)
            for first in single:
                self._block_first(f, x, y, where, h.index, first, self.lanes, False)
            if low < end:
                with f.loop(low, end, self.lanes) as w:
                    self._block_first(f, x, y, where, h.index, w.index, self.lanes, False)
        f.ret()
        return name, spec.n * spec.c

    def _block_first(
        self, f: Function, x: Value, y: Value, where: Value, h: Value, first: Operand, count: int,
        border: bool,
    ) -> None:  # fmt: skip
        """One vector of output pixels."""
        spec = self.spec
        r0, r1, top = self.taps(f, 0, h)
        line = f.mul(f.add(f.mul(r0, spec.dilation[0]), top), spec.w)
        start = f.splat(self.index32(f, line), self.lanes)
        start = f.binary("add", start, self.first_columns(f, first, border))
        with f.loop(r0, r1, carry=[self.lowest, start]) as r:
            line = f.mul(f.add(f.mul(r.index, spec.dilation[0]), top), spec.w)
            row = f.gep(x, line, self.element)
            base = f.splat(self.index32(f, line), self.lanes)
            best: Best = (r.carried[0], r.carried[1])
            for s in range(spec.window[1]):
                index = f.binary("add", base, self.columns(f, first, s))
                if border:
                    assert isinstance(first, int)
                    value, mask = self.border_tap(f, row, first, count, s, float("-inf"))
                    new = self.better(f, best, value, index)
                    best = (f.select(mask, new[0], best[0]), f.select(mask, new[1], best[1]))
                else:
                    column = f.add(
                        f.mul(first, spec.stride[1]), s * spec.dilation[1] - spec.padding[1]
                    )
                    best = self.better(f, best, self.inner_tap(f, row, column), index)
            r.next = list(best)
        f.store_lanes(r.results[0], f.gep(y, first, self.element), count)
        if self.keep_indices:
            at = f.gep(where, first, self.index_type)
            self.store_indices(f, r.results[1], at, count)


@dataclass(slots=True)
class MaxPoolGradient(Pooling):
    """dx: each dy goes to where its maximum was; its pointers: dy, indices, dx."""

    def emit(self) -> Kernel:
        last = self.spec.layout == "NHWC"
        chunk, chunks = self._emit_last() if last else self._emit_first()
        f = self.module.function(self.name, [("ptr", "slots")])
        f.parallel_for(chunk, f.arguments[0], chunks, 2 * self.work)
        f.ret()
        return Kernel(self.name, 3, 3, nanoseconds=2 * self.work)

    def _emit_first(self) -> tuple[str, int]:
        """A chunk is one plane; element by element, as windows may share their maximum."""
        spec, name = self.spec, f"{self.name}_plane"
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        dx = f.gep(slot(f, slots, 2), f.mul(i, self.plane), self.element)
        f.clear(dx, self.plane * self.size)
        start = f.mul(i, self.out_plane)
        dy = f.gep(slot(f, slots, 0), start, self.element)
        where = f.gep(slot(f, slots, 1), start, self.index_type)
        with f.loop(0, self.out_plane) as loop:
            index = f.load(self.index_type, f.gep(where, loop.index, self.index_type))
            at = f.gep(dx, f.cast("zext", index, "i64"), self.element)
            value = f.load(self.element, f.gep(dy, loop.index, self.element))
            f.store(f.fadd(f.load(self.element, at), value), at)
        f.ret()
        return name, spec.n * spec.c

    @property
    def group(self) -> int:
        """Channels of a chunk, channels last."""
        return min(self.spec.c, 4 * self.lanes)

    def _emit_last(self) -> tuple[str, int]:
        """A chunk is some channels of one image: taps compare the index with their own."""
        spec, name = self.spec, f"{self.name}_image"
        groups = math.ceil(spec.c / self.group)
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        image, first = f.udiv(i, groups), f.mul(f.urem(i, groups), self.group)
        count = f.minimum(f.sub(spec.c, first), self.group)
        dx = f.gep(slot(f, slots, 2), f.add(f.mul(image, self.plane * spec.c), first), self.element)
        with f.loop(0, self.plane) as pixel:
            at = f.gep(dx, f.mul(pixel.index, spec.c), self.element)
            f.clear(at, f.mul(count, self.size))
        with f.loop(0, spec.out_h) as h, f.loop(0, spec.out_w) as w:
            place = f.add(f.mul(f.add(f.mul(image, spec.out_h), h.index), spec.out_w), w.index)
            place = f.add(f.mul(place, spec.c), first)
            with f.loop(0, count, self.lanes) as c:
                mask = f.lane_mask(f.sub(count, c.index), self.lanes)
                at = f.add(place, c.index)
                self._spread(f, slots, f.gep(dx, c.index, self.element), h.index, w.index, at, mask)
        f.ret()
        return name, spec.n * groups

    def _spread(
        self, f: Function, slots: Value, dx: Value, h: Value, w: Value, place: Operand, mask: Value
    ) -> None:
        """Add one vector of dy to the taps that were the maximum."""
        dy = f.load_masked(self.type, f.gep(slot(f, slots, 0), place, self.element), mask)
        kind = vector(self.lanes, self.index_type)
        where = f.load_masked(kind, f.gep(slot(f, slots, 1), place, self.index_type), mask)

        def body(at: Value, index: Value, carried: list[Value]) -> list[Value]:
            here = f.cast("trunc", index, "i32") if self.index_type == "i32" else index
            hit = f.compare("eq", where, f.splat(here, self.lanes))
            on = f.binary("and", hit, mask)
            f.store_masked(f.fadd(f.load_masked(self.type, at, on), dy), at, on)
            return carried

        self.pixel(f, dx, h, w, [], body)


@dataclass(slots=True)
class AveragePool(Pooling):
    """y = mean of each window; its pointers: x, y. With `backward`: dx from dy; dy, dx."""

    backward: bool = False

    def scale(self, f: Function, h: Operand, w: Operand) -> Value:
        """1 / (elements counted in the window of an output pixel), as a scalar."""
        spec = self.spec
        if spec.divisor:
            return constant(1 / spec.divisor, self.element)
        count: Operand = 1
        for axis, place in enumerate((h, w)):
            count = f.mul(count, self._counted(f, axis, place))
        if isinstance(count, int):
            return constant(1 / count, self.element)
        return f.fdiv(constant(1, self.element), f.cast("sitofp", count, self.element))

    def _counted(self, f: Function, axis: int, place: Operand) -> Operand:
        spec = self.spec
        size, pad = (spec.h, spec.w)[axis], spec.padding[axis]
        if not spec.count_padding:
            low, high, _ = self.taps(f, axis, place)
            return f.sub(high, low)
        start = f.mul(place, spec.stride[axis])  # in the padded picture
        return f.minimum(f.sub(size + 2 * pad, start), spec.window[axis])

    def emit(self) -> Kernel:
        """Add the kernel."""
        last = self.spec.layout == "NHWC"
        if self.backward:
            chunk, chunks = self._emit_gradient_last() if last else self._emit_gradient_first()
        else:
            chunk, chunks = self._emit_last() if last else self._emit_first()
        f = self.module.function(self.name, [("ptr", "slots")])
        f.parallel_for(chunk, f.arguments[0], chunks, self.work)
        f.ret()
        return Kernel(self.name, 2, 2, nanoseconds=self.work)

    def _emit_last(self) -> tuple[str, int]:
        """A chunk is a row of output pixels."""
        spec, name = self.spec, f"{self.name}_row"
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        image, h = f.udiv(i, spec.out_h), f.urem(i, spec.out_h)
        x = f.gep(slot(f, slots, X), f.mul(image, self.plane * spec.c), self.element)
        with f.loop(0, spec.out_w) as w:
            pixel = f.mul(f.add(f.mul(i, spec.out_w), w.index), spec.c)
            scale = f.splat(self.scale(f, h, w.index), self.lanes)

            def group(c: Operand, count: int) -> None:
                def body(at: Value, _: Value, carried: list[Value]) -> list[Value]:
                    return [f.fadd(carried[0], f.load_lanes(self.type, at, count))]

                start = f.gep(x, c, self.element)
                (total,) = self.pixel(f, start, h, w.index, [zero(self.type)], body)
                at = f.gep(slot(f, slots, Y), f.add(pixel, c), self.element)
                f.store_lanes(f.fmul(total, scale), at, count)

            each_group(f, spec.c, self.lanes, group)
        f.ret()
        return name, spec.n * spec.out_h

    def _emit_first(self) -> tuple[str, int]:
        """A chunk is one plane."""
        spec, name = self.spec, f"{self.name}_plane"
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        x = f.gep(slot(f, slots, X), f.mul(i, self.plane), self.element)
        borders, single, (low, end) = self.blocks()
        with f.loop(0, spec.out_h) as h:
            start = f.add(f.mul(i, self.out_plane), f.mul(h.index, spec.out_w))
            y = f.gep(slot(f, slots, Y), start, self.element)
            for first, count in borders:
                self._block(f, x, y, h.index, first, count, True)
            for first in single:
                self._block(f, x, y, h.index, first, self.lanes, False)
            if low < end:
                with f.loop(low, end, self.lanes) as w:
                    self._block(f, x, y, h.index, w.index, self.lanes, False)
        f.ret()
        return name, spec.n * spec.c

    def _block(
        self, f: Function, x: Value, y: Value, h: Value, first: Operand, count: int, border: bool
    ) -> None:
        """One vector of output pixels."""
        spec = self.spec
        r0, r1, top = self.taps(f, 0, h)
        with f.loop(r0, r1, carry=[zero(self.type)]) as r:
            line = f.mul(f.add(f.mul(r.index, spec.dilation[0]), top), spec.w)
            row, total = f.gep(x, line, self.element), r.carried[0]
            for s in range(spec.window[1]):
                if border:
                    assert isinstance(first, int)
                    value, _ = self.border_tap(f, row, first, count, s, 0.0)
                else:
                    column = f.add(
                        f.mul(first, spec.stride[1]), s * spec.dilation[1] - spec.padding[1]
                    )
                    value = self.inner_tap(f, row, column)
                total = f.fadd(total, value)
            r.next = [total]
        scale = self._scales(f, h, first, count, border)
        f.store_lanes(f.fmul(r.results[0], scale), f.gep(y, first, self.element), count)

    def _scales(self, f: Function, h: Value, first: Operand, count: int, border: bool) -> Value:
        """1 / count for the lanes of a block: inside, all alike; at the border, one by one."""
        if not border:
            return f.splat(self.scale(f, h, first), self.lanes)
        assert isinstance(first, int)
        scale = zero(self.type)
        for lane in range(count):
            one = self.scale(f, h, first + lane)
            scale = f.insert(scale, one, lane) if lanes_of(self.type) > 1 else one
        return scale

    def _emit_gradient_last(self) -> tuple[str, int]:
        """A chunk is one image and a group of channels."""
        spec, name = self.spec, f"{self.name}_image"
        width = min(spec.c, 4 * self.lanes)
        groups = math.ceil(spec.c / width)
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        image, first = f.udiv(i, groups), f.mul(f.urem(i, groups), width)
        count = f.minimum(f.sub(spec.c, first), width)
        dx = f.gep(slot(f, slots, 1), f.add(f.mul(image, self.plane * spec.c), first), self.element)
        with f.loop(0, self.plane) as pixel:
            f.clear(f.gep(dx, f.mul(pixel.index, spec.c), self.element), f.mul(count, self.size))
        with f.loop(0, spec.out_h) as h, f.loop(0, spec.out_w) as w:
            place = f.add(f.mul(f.add(f.mul(image, spec.out_h), h.index), spec.out_w), w.index)
            dy = f.gep(slot(f, slots, 0), f.add(f.mul(place, spec.c), first), self.element)
            scale = f.splat(self.scale(f, h.index, w.index), self.lanes)
            with f.loop(0, count, self.lanes) as c:
                mask = f.lane_mask(f.sub(count, c.index), self.lanes)
                value = f.load_masked(self.type, f.gep(dy, c.index, self.element), mask)
                value = f.fmul(value, scale)

                def body(at: Value, _: Value, carried: list[Value]) -> list[Value]:
                    f.store_masked(f.fadd(f.load_masked(self.type, at, mask), value), at, mask)
                    return carried

                self.pixel(f, f.gep(dx, c.index, self.element), h.index, w.index, [], body)
        f.ret()
        return name, spec.n * groups

    def _emit_gradient_first(self) -> tuple[str, int]:
        """A chunk is one plane, element by element."""
        spec, name = self.spec, f"{self.name}_plane"
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        dx = f.gep(slot(f, slots, 1), f.mul(i, self.plane), self.element)
        f.clear(dx, self.plane * self.size)
        dy = f.gep(slot(f, slots, 0), f.mul(i, self.out_plane), self.element)
        with f.loop(0, spec.out_h) as h, f.loop(0, spec.out_w) as w:
            place = f.add(f.mul(h.index, spec.out_w), w.index)
            value = f.load(self.element, f.gep(dy, place, self.element))
            value = f.fmul(value, self.scale(f, h.index, w.index))
            r0, r1, top = self.taps(f, 0, h.index)
            s0, s1, left = self.taps(f, 1, w.index)
            with f.loop(r0, r1) as r, f.loop(s0, s1) as s:
                row = f.add(f.mul(r.index, spec.dilation[0]), top)
                column = f.add(f.mul(s.index, spec.dilation[1]), left)
                at = f.gep(dx, f.add(f.mul(row, spec.w), column), self.element)
                f.store(f.fadd(f.load(self.element, at), value), at)
        f.ret()
        return name, spec.n * spec.c
