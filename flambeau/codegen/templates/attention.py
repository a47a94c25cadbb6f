"""Scaled dot product attention, forward.

A chunk is one batch and head (or part of its queries). Keys are packed once into panels. Some rows
of queries at a time, the whole row of scores is kept: products with the panels, softmax, products
with the values in place. Nothing is rescaled, and scores of a strip stay in the second-level cache
for thousands of keys. Exponentials are of base 2, with log2(e) in the scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from flambeau.codegen import maths
from flambeau.codegen.polynomials import EXP2
from flambeau.codegen.target import Target
from flambeau.codegen.templates import microkernel, packing
from flambeau.codegen.templates.attention_spec import AttentionSpec
from flambeau.codegen.templates.entry import Kernel, slot, thread_memory
from flambeau.codegen.templates.gemm_plan import ELEMENTS, GFLOPS_GUESS
from flambeau.codegen.templates.microkernel import Strides
from flambeau.codegen.templates.stored import widened
from flambeau.codegen.text import (
    Function,
    Module,
    Operand,
    Value,
    constant,
    constants,
    element_of,
    size_of,
    vector,
    zero,
)
from flambeau.runtime import pool

CHUNK = [("ptr", "slots"), ("i64", "i"), ("i64", "thread")]
LOG2_E = 1.4426950408889634
LOG_2 = 0.6931471805599453
MASKED = -1e30  # in place of -inf, whose differences are NaN
NOTHING = -1e29  # a row maximum below it belongs to a row without keys


def decay(f: Function, x: Value) -> Value:
    """2**x for x of about 0 and less, 1 ulp; 0 where it is not a normal number.

    Results that are not normal would take the slow path of the processor, here and in what follows.
    """
    element = element_of(x.type)
    least = -126.0 if element == "float" else -1022.0
    n = maths.nearest(f, maths.at_least(f, x, least))
    r = f.fsub(maths.at_least(f, x, least), n)
    p = f.fma(maths.horner(f, r, EXP2[element]), r, constant(1.0, x.type))
    power = f.fmul(p, maths.power_of_two(f, n))
    return f.select(f.compare("olt", x, least), zero(x.type), power)


@dataclass(slots=True)
class Attention:
    """What forward and backward share."""

    module: Module
    name: str
    spec: AttentionSpec
    target: Target
    element: str = field(init=False)
    type: str = field(init=False)
    lanes: int = field(init=False)
    shape: microkernel.Shape = field(init=False)

    def __post_init__(self) -> None:
        self.element = ELEMENTS[self.spec.dtype]
        self.lanes = self.target.lanes(self.element)
        self.type = vector(self.lanes, self.element)
        self.shape = microkernel.tile_shape(self.target, self.element)

    @property
    def size(self) -> int:
        return size_of(self.element)

    @property
    def width(self) -> int:
        """Keys of a panel."""
        return self.shape.columns

    @property
    def panels(self) -> int:
        return math.ceil(self.spec.k_len / self.width)

    def rounded(self, count: int) -> int:
        """A count of elements rounded up to lines."""
        line = 64 // self.size
        return -(-count // line) * line

    def panel(self, d: int) -> int:
        """Elements of a packed panel, with a vector of room behind it."""
        return self.rounded(d * self.width + self.lanes)

    def head(self, f: Function, pointer: Value, name: str, b: Operand, h: Operand) -> Value:
        """Row 0 of an operand of one batch and head."""
        batch, head, _ = self.spec.strides(name)
        return f.gep(pointer, f.add(f.mul(b, batch), f.mul(h, head)), self.element)

    def row(self, f: Function, start: Value, name: str, row: Operand) -> Value:
        return f.gep(start, f.mul(row, self.spec.strides(name)[2]), self.element)

    def pack(self, f: Function, source: Value, name: str, d: int, target: Value) -> None:
        """Pack all rows of k or v: panels of [element][key], zeros past the last key."""
        stride = self.spec.strides(name)[2]
        last = self.spec.k_len - (self.panels - 1) * self.width

        def one(p: Operand, rows: int) -> None:
            kernel = f"{self.name}_pack_{name}{rows}"
            if kernel not in self.module:
                tail = d % self.lanes
                packing.panel_from_rows(
                    self.module, kernel, rows, self.width, stride, self.type, tail
                )
            start = f.gep(source, f.mul(p, self.width * stride), self.element)
            f.call(kernel, "void", start, f.gep(target, f.mul(p, self.panel(d)), self.element), d)

        if not self.panels:
            return
        with f.loop(0, self.panels - 1) as loop:
            one(loop.index, self.width)
        one(self.panels - 1, last)

    # masks

    def mask_start(self, f: Function, slots: Value, place: int, b: Operand, h: Operand) -> Value:
        """The mask's row 0 of one batch and head."""
        if not self.spec.mask:
            return Value("null", "ptr")
        batch, head, _, _ = self.spec.mask_strides
        index = f.add(f.mul(b, batch), f.mul(h, head))
        return f.gep(slot(f, slots, place), index, self.mask_element)

    @property
    def mask_element(self) -> str:
        return {"bool": "i8", "bfloat16": "bfloat"}.get(self.spec.mask, self.element)

    def noise_start(self, f: Function, slots: Value, place: int, head: Operand) -> Value:
        """The noise's row 0 of a batch and head, which are counted together."""
        if not self.spec.noise:
            return Value("null", "ptr")
        index = f.mul(head, self.spec.q_len * self.spec.k_len)
        return f.gep(slot(f, slots, place + bool(self.spec.mask)), index, self.element)

    def noise(self, f: Function, start: Value, row: Operand, column: Operand,
              check: bool = True) -> Value:
        """The factors of one row and a vector of keys; zeros past the last key."""
        at = f.gep(start, f.add(f.mul(row, self.spec.k_len), column), self.element)
        if not check:
            return f.load(self.type, at)
        return f.load_masked(self.type, at, self.exists(f, column))

    def columns(self, f: Function, column: Operand) -> Value:
        """The numbers of a vector of keys."""
        return f.binary(
            "add",
            f.splat(f.cast("trunc", column, "i32"), self.lanes),
            constants(range(self.lanes), "i32"),
        )

    def exists(self, f: Function, column: Operand) -> Value:
        return f.compare("slt", self.columns(f, column), self.spec.k_len)

    def masked(self, f: Function, x: Value, row: Operand, column: Operand, mask: Value) -> Value:
        """Scores (times log2 e) of one row and a vector of keys from `column` on, masked."""
        columns, exists = self.columns(f, column), self.exists(f, column)
        seen = exists
        if self.spec.causal:
            limit = f.splat(f.cast("trunc", row, "i32"), self.lanes)
            seen = f.binary("and", seen, f.compare("sle", columns, limit))
        if self.spec.mask:
            x, seen = self._with_mask(f, x, row, column, mask, exists, seen)
        return f.select(seen, x, constant(MASKED, self.type))

    def _with_mask(
        self, f: Function, x: Value, row: Operand, column: Operand, mask: Value, exists: Value,
        seen: Value,
    ) -> tuple[Value, Value]:  # fmt: skip
        """Apply the caller's mask."""
        _, _, q, k = self.spec.mask_strides
        at = f.gep(mask, f.add(f.mul(row, q), f.mul(column, k)), self.mask_element)
        narrow = self.spec.mask == "bfloat16"
        kind = vector(self.lanes, "i16" if narrow else self.mask_element)
        if k == 1:
            given = f.load_masked(kind, at, exists)
        else:
            given = self._spread(f, at, k, exists, kind)
        if narrow:
            given = widened(f, given)
        if self.spec.mask == "bool":
            return x, f.binary("and", seen, f.compare("ne", given, zero(kind)))
        x = f.fma(given, LOG2_E, x)
        return f.select(f.compare("olt", x, MASKED), constant(MASKED, self.type), x), seen

    def _spread(self, f: Function, at: Value, stride: int, exists: Value, kind: str) -> Value:
        """Mask elements that are not neighbours, or the same for all keys."""
        element = element_of(kind)
        if not stride:
            return f.splat(f.load(element, at), self.lanes)
        steps = constants([i * stride for i in range(self.lanes)], "i64")
        wide = vector(self.lanes, "i64")
        steps = f.select(exists, steps, zero(wide))
        x = zero(kind)
        for lane in range(self.lanes):
            offset = f.extract(steps, lane)
            x = f.insert(x, f.load(element, f.gep(at, offset, element)), lane)
        return x


@dataclass(slots=True)
class AttentionForward(Attention):
    """o, and the logarithm of the sum of exponentials of each row for the backward pass.

    Pointers: q, k, v, o, lse [batch, head, query], then the mask, the noise.
    """

    @property
    def pointers(self) -> int:
        return 5 + bool(self.spec.mask) + self.spec.noise

    @property
    def strips(self) -> list[int]:
        return microkernel.even_parts(self.spec.q_len, self.shape.rows)

    @property
    def parts(self) -> int:
        """Chunks that the queries of one head are cut into."""
        heads = self.spec.batch * self.spec.heads
        wanted = math.ceil(2 * pool.get_num_threads() / heads)
        return max(1, min(len(self.strips), wanted if heads < pool.get_num_threads() else 1))

    @property
    def scores_row(self) -> int:
        return self.rounded(self.panels * self.width) + 64 // self.size

    @property
    def query_row(self) -> int:
        return self.rounded(self.spec.d) + 64 // self.size

    def layout(self) -> tuple[int, int, int, int]:
        """Where keys end, scores end, queries end and row values end, in elements."""
        rows = self.strips[0]
        keys = self.panels * self.panel(self.spec.d)
        scores = keys + rows * self.scores_row
        queries = scores + rows * self.query_row
        return keys, scores, queries, queries + 2 * self.row_room + rows * self.lanes

    def emit(self) -> Kernel:
        spec = self.spec
        chunk = self._emit_chunk()
        f = self.module.function(self.name, [("ptr", "slots")])
        work = int(spec.flops / GFLOPS_GUESS)
        f.parallel_for(chunk, f.arguments[0], spec.batch * spec.heads * self.parts, work)
        f.ret()
        own = self.layout()[3] * self.size
        return Kernel(self.name, self.pointers, self.pointers + 1, 0, own, work)

    def _emit_chunk(self) -> str:
        spec, name = self.spec, f"{self.name}_head"
        f = self.module.function(name, CHUNK)
        slots, i, thread = f.arguments
        part, head = f.urem(i, self.parts), f.udiv(i, self.parts)
        b, h = f.udiv(head, spec.heads), f.urem(head, spec.heads)
        kv = f.udiv(h, spec.group)
        pointers = [slot(f, slots, n) for n in range(4)]
        q, o = self.head(f, pointers[0], "q", b, h), self.head(f, pointers[3], "o", b, h)
        k, v = self.head(f, pointers[1], "k", b, kv), self.head(f, pointers[2], "v", b, kv)
        lse = f.gep(slot(f, slots, 4), f.mul(head, spec.q_len), self.element)
        mask, noise = self.mask_start(f, slots, 5, b, h), self.noise_start(f, slots, 5, head)
        own = self.layout()[3] * self.size
        keys = thread_memory(f, slot(f, slots, self.pointers), 0, own, thread)
        self.pack(f, k, "k", spec.d, keys)
        done, strip = 0, 0
        for rows in dict.fromkeys(self.strips):
            count = self.strips.count(rows)
            low = f.maximum(f.sub(self._bound(f, part), strip), 0)
            high = f.minimum(f.sub(self._bound(f, f.add(part, 1)), strip), count)
            with f.loop(low, high) as loop:
                first = f.add(f.mul(loop.index, rows), done)
                self._strip(f, (q, v, o, lse, mask, noise), keys, first, rows)
            done, strip = done + count * rows, strip + count
        f.ret()
        return name

    def _bound(self, f: Function, part: Operand) -> Operand:
        return f.udiv(f.mul(part, len(self.strips)), self.parts)

    def _strip(
        self, f: Function, heads: tuple[Value, ...], keys: Value, first: Operand, rows: int
    ) -> None:
        """All of some rows of queries."""
        spec = self.spec
        q, v, o, lse, mask, noise = heads
        ends = self.layout()
        scores, queries, values = (f.gep(keys, end, self.element) for end in ends[:3])
        self._copy_queries(f, self.row(f, q, "q", first), queries, rows)
        seen: Operand = spec.k_len
        if spec.causal:
            seen = f.minimum(f.add(first, rows), spec.k_len)
        panels = f.udiv(f.add(seen, self.width - 1), self.width)
        f.call(
            self._scores_kernel(rows), "void", queries, keys, scores, values, panels, first, mask
        )
        lse = f.gep(lse, first, self.element)
        total = f.mul(panels, self.width)
        noise = f.gep(noise, f.mul(first, spec.k_len), self.element)
        f.call(self._softmax_kernel(rows), "void", scores, values, lse, total, noise)
        out = self.row(f, o, "o", first)
        f.call(self._values_kernel(rows), "void", scores, v, values, out, seen)

    def _copy_queries(self, f: Function, q: Value, target: Value, rows: int) -> None:
        """The strip of queries times scale and log2(e)."""
        factor = constant(self.spec.factor * LOG2_E, self.type)
        stride, d = self.spec.strides("q")[2], self.spec.d
        with f.loop(0, rows) as row:
            source = f.gep(q, f.mul(row.index, stride), self.element)
            to = f.gep(target, f.mul(row.index, self.query_row), self.element)
            for j in range(0, d, self.lanes):
                x = f.load_lanes(self.type, f.gep(source, j, self.element), min(self.lanes, d - j))
                f.store(f.fmul(x, factor), f.gep(to, j, self.element))

    def _scores_kernel(self, rows: int) -> str:
        """``scores(q, keys, scores, maxima, panels, first, mask)`` for panels 0..panels."""
        name = f"{self.name}_scores{rows}"
        if name in self.module:
            return name
        parameters = [("ptr noalias readonly", "q"), ("ptr noalias readonly", "keys")]
        parameters += [("ptr noalias", "scores"), ("ptr noalias", "maxima")]
        parameters += [("i64", "panels"), ("i64", "first"), ("ptr readonly", "mask")]
        f = self.module.function(name, parameters)
        q, keys, scores, maxima, panels, first, mask = f.arguments
        whole: Operand = 0
        if not self.spec.mask:
            whole = self.spec.k_len // self.width
            if self.spec.causal:
                whole = f.minimum(f.udiv(f.add(first, 1), self.width), whole)
        start = [constant(MASKED, self.type)] * rows

        def tile(p: Value, best: list[Value], check: bool) -> list[Value]:
            at = f.gep(keys, f.mul(p, self.panel(self.spec.d)), self.element)
            strides = Strides(self.query_row, 1, self.width)
            sums = microkernel.outer_product(
                f, q, at, self.spec.d, rows, self.shape.vectors, self.type, strides
            )
            out = []
            for i, line in enumerate(sums):
                for j, x in enumerate(line):
                    column = f.add(f.mul(p, self.width), j * self.lanes)
                    if check:
                        x = self.masked(f, x, f.add(first, i), column, mask)
                    place = f.add(column, i * self.scores_row)
                    f.store(x, f.gep(scores, place, self.element))
                    best[i] = f.select(f.compare("ogt", best[i], x), best[i], x)
                out.append(best[i])
            return out

        with f.loop(0, whole, carry=start) as loop:
            loop.next = tile(loop.index, list(loop.carried), False)
        with f.loop(whole, panels, carry=loop.results) as rest:
            rest.next = tile(rest.index, list(rest.carried), True)
        self._store_rows(f, self._folded(f, rest.results, self._larger), maxima)
        f.ret()
        return name

    def _larger(self, f: Function, a: Value, b: Value) -> Value:
        return f.select(f.compare("ogt", a, b), a, b)

    def _folded(
        self, f: Function, rows: list[Value], join: Callable[[Function, Value, Value], Value]
    ) -> list[Value]:
        """Each row's lanes joined: one result per lane, in as many vectors as rows need."""
        out = []
        for first in range(0, len(rows), self.lanes):
            part = rows[first : first + self.lanes]
            part = part + [part[0]] * (self.lanes - len(part))
            part = microkernel.transposed(f, part) if self.lanes > 1 else part
            while len(part) > 1:
                part = [join(f, x, y) for x, y in zip(part[::2], part[1::2], strict=True)]
            out += part
        return out

    def _store_rows(self, f: Function, values: list[Value], target: Value) -> None:
        """Store what `_folded` gave; there is room for whole vectors."""
        for i, x in enumerate(values):
            f.store(x, f.gep(target, i * self.lanes, self.element))

    def _softmax_kernel(self, rows: int) -> str:
        """``softmax(scores, values, lse, count, noise)``: exponentials, and 1 / their sum.

        `values` holds the rows' maxima and then takes the rows' factors.
        """
        name = f"{self.name}_softmax{rows}"
        if name in self.module:
            return name
        parameters = [("ptr noalias", "scores"), ("ptr noalias", "values"), ("ptr noalias", "lse")]
        f = self.module.function(
            name, [*parameters, ("i64", "count"), ("ptr noalias readonly", "noise")])
        scores, values, lse, count, noise = f.arguments
        sums = f.gep(values, 2 * self.row_room, self.element)
        with f.loop(0, rows) as row:
            shift = f.splat(
                f.load(self.element, f.gep(values, row.index, self.element)), self.lanes
            )
            line = f.gep(scores, f.mul(row.index, self.scores_row), self.element)
            starts = [zero(self.type)] * self.shape.vectors
            with f.loop(0, count, self.width, carry=starts) as loop:
                totals = []
                for n, total in enumerate(loop.carried):
                    column = f.add(loop.index, n * self.lanes)
                    place = f.gep(line, column, self.element)
                    x = decay(f, f.fsub(f.load(self.type, place), shift))
                    y = x
                    if self.spec.noise:
                        y = f.fmul(x, self.noise(f, noise, row.index, column))
                    f.store(y, place)
                    totals.append(f.fadd(total, x))
                loop.next = totals
            total = loop.results[0]
            for other in loop.results[1:]:
                total = f.fadd(total, other)
            f.store(total, f.gep(sums, f.mul(row.index, self.lanes), self.element))
        lines = [f.load(self.type, f.gep(sums, i * self.lanes, self.element)) for i in range(rows)]
        totals = self._folded(f, lines, lambda f, a, b: f.fadd(a, b))
        self._finish_rows(f, totals, rows, values, lse)
        f.ret()
        return name

    @property
    def row_room(self) -> int:
        """Elements for one value of each row of a strip, whole vectors."""
        return math.ceil(self.shape.rows / self.lanes) * self.lanes

    def _finish_rows(
        self, f: Function, totals: list[Value], rows: int, values: Value, lse: Value
    ) -> None:
        """Store 1 / sum and the log-sum-exp; a row without keys gets 0 for both."""
        factors = f.gep(values, self.row_room, self.element)
        for i, total in enumerate(totals):
            best = f.load(self.type, f.gep(values, i * self.lanes, self.element))
            none, nothing = f.compare("olt", best, NOTHING), zero(self.type)
            one = f.fdiv(constant(1, self.type), total)
            at = f.gep(factors, i * self.lanes, self.element)
            f.store(f.select(none, nothing, one), at)
            log = f.fmul(f.fadd(best, maths.log2(f, total)), LOG_2)
            count = min(self.lanes, rows - i * self.lanes)
            at = f.gep(lse, i * self.lanes, self.element)
            f.store_lanes(f.select(none, nothing, log), at, count)

    def _values_kernel(self, rows: int) -> str:
        """``values(p, v, maxima, o, keys)``: o = (p v) / sum."""
        name = f"{self.name}_values{rows}"
        if name in self.module:
            return name
        parameters = [("ptr noalias readonly", "p"), ("ptr noalias readonly", "v")]
        parameters += [("ptr noalias readonly", "maxima"), ("ptr noalias", "o"), ("i64", "keys")]
        f = self.module.function(name, parameters)
        p, v, maxima, o, keys = f.arguments
        factors = f.gep(maxima, self.row_room, self.element)
        strides = Strides(self.scores_row, 1, self.spec.strides("v")[2])
        stride = self.spec.strides("o")[2]
        for column in range(0, self.spec.value_d, self.width):
            columns = min(self.width, self.spec.value_d - column)
            vectors = math.ceil(columns / self.lanes)
            at = f.gep(v, column, self.element)
            tile = microkernel.outer_product(
                f, p, at, keys, rows, vectors, self.type, strides, 1, columns % self.lanes
            )
            tile = [
                [f.fmul(x, f.splat(self._factor(f, factors, i), self.lanes)) for x in line]
                for i, line in enumerate(tile)
            ]
            microkernel.store_tile(f, tile, f.gep(o, column, self.element), stride, columns)
        f.ret()
        return name

    def _factor(self, f: Function, factors: Value, row: int) -> Value:
        return f.load(self.element, f.gep(factors, row, self.element))
