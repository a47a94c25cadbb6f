"""Scores of all monotonic paths through a table, and their gradient: see `flambeau.ops.paths`.

A chunk is one sequence, with all its rows of scores in the thread's own memory: a row starts with
room for what moves on by one or two, where nothing has been. Logarithms throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from flambeau.codegen import maths
from flambeau.codegen.target import Target
from flambeau.codegen.templates.entry import Kernel, slot, thread_memory
from flambeau.codegen.templates.gemm_plan import ELEMENTS
from flambeau.codegen.text import Function, Module, Operand, Value, constant, size_of, vector, zero

CHUNK = [("ptr", "slots"), ("i64", "i"), ("i64", "thread")]
NANOSECONDS = {False: 2.0, True: 4.0}  # a score, forward and with the way back


@dataclass(frozen=True, slots=True)
class PathSpec:
    """`steps` x `batch` x `width` steps, contiguous; `backward` gives their gradient."""

    steps: int
    batch: int
    width: int
    backward: bool
    dtype: str


class PathScores:
    """Slots: step, skip (bytes), lengths (int64), scores; or ct, step, skip, lengths, gradient."""

    def __init__(self, module: Module, name: str, spec: PathSpec, target: Target):
        self.module, self.name, self.spec = module, name, spec
        self.element = ELEMENTS[spec.dtype]
        self.lanes = max(2, target.lanes(self.element))
        self.type = vector(self.lanes, self.element)
        self.row = (math.ceil(spec.width / self.lanes) + 2) * self.lanes  # room on both sides

    @property
    def pointers(self) -> int:
        return 4 + self.spec.backward

    @property
    def own_bytes(self) -> int:
        """All rows of scores, then two of cotangents and one of totals."""
        return (self.spec.steps + 4) * self.row * size_of(self.element)

    def emit(self) -> Kernel:
        spec = self.spec
        self.chunk()
        f = self.module.function(self.name, [("ptr", "slots")])
        work = int(spec.steps * spec.batch * spec.width * NANOSECONDS[spec.backward])
        f.parallel_for(f"{self.name}_sequence", f.arguments[0], spec.batch, work)
        f.ret()
        return Kernel(self.name, self.pointers, self.pointers + 1, 0, self.own_bytes, work)

    def number(self, x: float) -> Value:
        return constant(x, self.type)

    def at(self, f: Function, pointer: Value, place: Operand) -> Value:
        return f.gep(pointer, place, self.element)

    def chunk(self) -> None:
        spec, width = self.spec, self.spec.width
        f = self.module.function(f"{self.name}_sequence", CHUNK)
        slots, i, thread = f.arguments
        first = int(spec.backward)
        step, skip, lengths = (slot(f, slots, first + k) for k in range(3))
        step = self.at(f, step, f.mul(i, width))
        skip = f.gep(skip, f.mul(i, width), "i8")
        length = f.load("i64", f.gep(lengths, i, "i64"))
        memory = thread_memory(f, slot(f, slots, self.pointers), 0, self.own_bytes, thread)
        rows = self.at(f, memory, self.lanes)
        self.forward(f, step, skip, length, rows)
        if spec.backward:
            ct = self.at(f, slot(f, slots, 0), f.mul(i, width))
            made = self.at(f, slot(f, slots, 4), f.mul(i, width))
            self.backward(f, (ct, step, skip, made), length, rows)
        else:
            out = self.at(f, slot(f, slots, 3), f.mul(i, width))
            last = self.at(f, rows, f.mul(f.maximum(f.sub(length, 1), 0), self.row))
            none = f.splat(f.compare("eq", length, 0), self.lanes, "i1")

            def store(j: Operand, n: int) -> None:
                x = f.load(self.type, self.at(f, last, j))
                f.store_lanes(f.select(none, self.number(-math.inf), x), self.at(f, out, j), n)

            self.each(f, store)
        f.ret()

    def each(self, f: Function, body) -> None:
        """body(first position, how many) for vectors of a row."""
        whole = self.spec.width // self.lanes * self.lanes
        if whole:
            with f.loop(0, whole, self.lanes) as loop:
                body(loop.index, self.lanes)
        if whole < self.spec.width:
            body(whole, self.spec.width - whole)

    def skipping(self, f: Function, skip: Value, j: Operand, n: int) -> Value:
        kind = vector(self.lanes, "i8")
        return f.compare("ne", f.load_lanes(kind, f.gep(skip, j, "i8"), n), zero(kind))

    def fill(self, f: Function, row: Value, value: float) -> None:
        """A whole row, its room included."""
        with f.loop(0, self.row, self.lanes) as loop:
            f.store(self.number(value), self.at(f, row, f.sub(loop.index, self.lanes)))

    def forward(self, f: Function, step: Value, skip: Value, length: Value, rows: Value) -> None:
        stride = self.spec.batch * self.spec.width
        with f.loop(0, self.spec.steps) as loop:
            self.fill(f, self.at(f, rows, f.mul(loop.index, self.row)), -math.inf)
        for j in range(min(2, self.spec.width)):
            f.store(f.load(self.element, self.at(f, step, j)), self.at(f, rows, j))
        with f.loop(1, length) as time:
            before = self.at(f, rows, f.mul(f.sub(time.index, 1), self.row))
            after = self.at(f, rows, f.mul(time.index, self.row))
            given = self.at(f, step, f.mul(time.index, stride))

            def scores(j: Operand, n: int) -> None:
                nothing = self.number(-math.inf)
                a, b, c = (f.load(self.type, self.at(f, before, f.sub(j, k))) for k in range(3))
                c = f.select(self.skipping(f, skip, j, n), c, nothing)
                top = a
                for x in (b, c):
                    top = f.select(f.compare("ogt", x, top), x, top)
                dead = f.compare("oeq", top, nothing)
                safe = f.select(dead, zero(self.type), top)
                total = maths.exp(f, f.fsub(a, safe))
                for x in (b, c):
                    total = f.fadd(total, maths.exp(f, f.fsub(x, safe)))
                total = f.fadd(maths.log(f, total), safe)
                total = f.fadd(total, f.load_lanes(self.type, self.at(f, given, j), n))
                total = f.select(dead, nothing, total)
                f.store_lanes(total, self.at(f, after, j), n)

            self.each(f, scores)

    def backward(self, f: Function, pointers: tuple[Value, ...], length: Value,
                 rows: Value) -> None:
        ct, step, skip, made = pointers
        stride, width = self.spec.batch * self.spec.width, self.spec.width
        spare = [self.at(f, rows, (self.spec.steps + k) * self.row) for k in range(4)]
        g, jumping, totals, following = spare
        for row, value in zip(spare, (0.0, 0.0, math.inf, 0.0), strict=True):
            self.fill(f, row, value)

        def take(j: Operand, n: int) -> None:
            f.store_lanes(f.load_lanes(self.type, self.at(f, ct, j), n), self.at(f, g, j), n)

        self.each(f, take)
        with f.loop(length, self.spec.steps) as time:
            f.clear(self.at(f, made, f.mul(time.index, stride)), width * size_of(self.element))
        with f.loop(1, length) as time:
            t = f.sub(length, time.index)
            after = self.at(f, rows, f.mul(t, self.row))
            before = self.at(f, rows, f.mul(f.sub(t, 1), self.row))
            given = self.at(f, step, f.mul(t, stride))
            out = self.at(f, made, f.mul(t, stride))

            def spread(j: Operand, n: int) -> None:
                x = f.load_lanes(self.type, self.at(f, g, j), n)
                f.store_lanes(x, self.at(f, out, j), n)
                on = self.skipping(f, skip, j, n)
                f.store_lanes(f.select(on, x, zero(self.type)), self.at(f, jumping, j), n)
                score = f.load(self.type, self.at(f, after, j))
                total = f.fsub(score, f.load_lanes(self.type, self.at(f, given, j), n))
                dead = f.compare("oeq", score, self.number(-math.inf))
                total = f.select(dead, self.number(math.inf), total)
                f.store_lanes(total, self.at(f, totals, j), n)

            self.each(f, spread)

            def gather(j: Operand, n: int) -> None:
                score = f.load(self.type, self.at(f, before, j))
                gone = f.compare("oeq", score, self.number(-math.inf))
                score = f.select(gone, zero(self.type), score)
                sum = zero(self.type)
                for k in range(3):
                    part = self.at(f, jumping if k == 2 else g, f.add(j, k))
                    total = f.load(self.type, self.at(f, totals, f.add(j, k)))
                    weight = maths.exp(f, f.fsub(score, total))
                    sum = f.fadd(sum, f.fmul(f.load(self.type, part), weight))
                f.store_lanes(f.select(gone, zero(self.type), sum), self.at(f, following, j), n)

            self.each(f, gather)

            def keep(j: Operand, n: int) -> None:
                f.store_lanes(f.load(self.type, self.at(f, following, j)), self.at(f, g, j), n)

            self.each(f, keep)
        with f.when(f.compare("sgt", length, 0)):
            for j in range(min(2, width)):
                f.store(f.load(self.element, self.at(f, g, j)), self.at(f, made, j))
            if width > 2:
                f.clear(self.at(f, made, 2), (width - 2) * size_of(self.element))
