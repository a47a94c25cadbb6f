"""Scaled dot product attention, backward.

    P = exp(scale q k^T + mask - lse)     dS = P * (noise * (do v^T) - rowsum(do * o))
    dv = (noise * P)^T do     dk = scale dS^T q     dq = scale dS k

A chunk is one batch and head of k and v: no two chunks add to the same memory. P and dS are formed
block by block of queries and keys and used while they are in the first-level cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from flambeau.codegen.templates import microkernel
from flambeau.codegen.templates.attention import CHUNK, LOG2_E, Attention, decay
from flambeau.codegen.templates.entry import Kernel, slot, thread_memory
from flambeau.codegen.templates.gemm_plan import GFLOPS_GUESS
from flambeau.codegen.templates.microkernel import Strides
from flambeau.codegen.text import Function, Operand, Value, constant, zero

BLOCK = 64  # queries and keys of a block
Q, K, V, OUT, DO, LSE, DQ, DK, DV, MASK = range(10)


@dataclass(slots=True)
class AttentionBackward(Attention):
    """Gradients of q, k and v. Pointers: q, k, v, o, do, lse, dq, dk, dv, mask, noise."""

    @property
    def pointers(self) -> int:
        return 9 + bool(self.spec.mask) + self.spec.noise

    @property
    def rows(self) -> int:
        """Rows of a register tile."""
        return 8 if self.target.vector_registers >= 32 else 4

    @property
    def line(self) -> int:
        """Elements of a row of the blocks of P and dS."""
        return self.rounded(max(BLOCK, self.width)) + 64 // self.size

    def layout(self) -> tuple[int, int, int, int, int]:
        """Where packed k, packed v, P, dS and the row sums end, in elements."""
        k = self.panels * self.panel(self.spec.d)
        v = k + self.panels * self.panel(self.spec.value_d)
        p = v + BLOCK * self.line
        ds = p + BLOCK * self.line
        return k, v, p, ds, ds + self.rounded(self.spec.q_len)

    def emit(self) -> Kernel:
        spec = self.spec
        chunk = self._emit_chunk()
        f = self.module.function(self.name, [("ptr", "slots")])
        work = int(2.5 * spec.flops / GFLOPS_GUESS)
        f.parallel_for(chunk, f.arguments[0], spec.batch * spec.key_heads, work)
        f.ret()
        own = self.layout()[4] * self.size
        return Kernel(self.name, self.pointers, self.pointers + 1, 0, own, work)

    def _emit_chunk(self) -> str:
        spec, name = self.spec, f"{self.name}_head"
        f = self.module.function(name, CHUNK)
        slots, i, thread = f.arguments
        b, kv = f.udiv(i, spec.key_heads), f.urem(i, spec.key_heads)
        k, v = (self.head(f, slot(f, slots, n), x, b, kv) for n, x in ((K, "k"), (V, "v")))
        dk, dv = (self.head(f, slot(f, slots, n), x, b, kv) for n, x in ((DK, "dk"), (DV, "dv")))
        own = self.layout()[4] * self.size
        memory = thread_memory(f, slot(f, slots, self.pointers), 0, own, thread)
        self.pack(f, k, "k", spec.d, memory)
        self.pack(f, v, "v", spec.value_d, f.gep(memory, self.layout()[0], self.element))
        self._clear(f, dk, "dk", spec.k_len, spec.d)
        self._clear(f, dv, "dv", spec.k_len, spec.value_d)
        with f.loop(0, spec.group) as member:
            h = f.add(f.mul(kv, spec.group), member.index)
            self._head(f, slots, memory, (k, dk, dv), b, h)
        f.ret()
        return name

    def _clear(self, f: Function, start: Value, name: str, rows: int, width: int) -> None:
        with f.loop(0, rows) as row:
            f.clear(self.row(f, start, name, row.index), width * self.size)

    def _head(
        self, f: Function, slots: Value, memory: Value, keys: tuple[Value, Value, Value],
        b: Value, h: Operand,
    ) -> None:  # fmt: skip
        """One head of q."""
        spec = self.spec
        q, o, do, dq = (
            self.head(f, slot(f, slots, n), x, b, h)
            for n, x in ((Q, "q"), (OUT, "o"), (DO, "do"), (DQ, "dq"))
        )
        index = f.mul(f.add(f.mul(b, spec.heads), h), spec.q_len)
        lse = f.gep(slot(f, slots, LSE), index, self.element)
        mask = self.mask_start(f, slots, MASK, b, h)
        noise = self.noise_start(f, slots, MASK, f.add(f.mul(b, spec.heads), h))
        sums = f.gep(memory, self.layout()[3], self.element)
        self._row_sums(f, do, o, sums)
        self._clear(f, dq, "dq", spec.q_len, spec.d)
        with f.loop(0, spec.k_len, BLOCK) as block:
            k0 = block.index
            first: Operand = f.mul(f.udiv(k0, BLOCK), BLOCK) if spec.causal else 0
            with f.loop(first, spec.q_len, BLOCK) as queries:
                q0 = queries.index
                q_count = f.minimum(f.sub(spec.q_len, q0), BLOCK)
                k_count = f.minimum(f.sub(spec.k_len, k0), BLOCK)
                place = (q0, k0, q_count, k_count)
                self._form(f, memory, (q, do, lse, sums, mask, noise), place)
                self._use(f, memory, (q, do, dq), keys, place)

    def _row_sums(self, f: Function, do: Value, o: Value, sums: Value) -> None:
        """sums[row] = do . o"""
        width = self.spec.value_d
        with f.loop(0, self.spec.q_len) as row:
            a, b = self.row(f, do, "do", row.index), self.row(f, o, "o", row.index)
            total = zero(self.type)
            for j in range(0, width, self.lanes):
                n = min(self.lanes, width - j)
                x, y = (f.load_lanes(self.type, f.gep(p, j, self.element), n) for p in (a, b))
                total = f.fma(x, y, total)
            sum = microkernel.horizontal_sum(f, total)
            f.store(sum, f.gep(sums, row.index, self.element))

    def _each_strip(
        self, f: Function, count: Operand, length: int, body: Callable[[Operand, int], None]
    ) -> None:
        """body(first, rows) over `count` rows of a block of `length` rows in all."""
        rest = length % self.rows
        whole = f.sub(count, f.urem(count, self.rows)) if rest else count
        with f.loop(0, whole, self.rows) as loop:
            body(loop.index, self.rows)
        if rest:
            with f.when(f.compare("ne", whole, count)):
                body(whole, rest)

    # P and dS

    def _form(
        self, f: Function, memory: Value, heads: tuple[Value, ...],
        place: tuple[Operand, Operand, Operand, Operand],
    ) -> None:  # fmt: skip
        """Fill the blocks of P and dS."""
        q, do, lse, sums, mask, noise = heads
        q0, k0, q_count, k_count = place
        v, p, ds = (f.gep(memory, end, self.element) for end in self.layout()[:3])
        panel = f.udiv(k0, self.width)
        panels = f.udiv(f.add(k_count, self.width - 1), self.width)

        def strip(first: Operand, rows: int) -> None:
            row = f.add(q0, first)
            arguments = (
                self.row(f, q, "q", row),
                self.row(f, do, "do", row),
                f.gep(lse, row, self.element),
                f.gep(sums, row, self.element),
            )
            with f.loop(0, panels) as loop:
                at = f.add(panel, loop.index)
                column = f.mul(at, self.width)
                k_at = f.gep(memory, f.mul(at, self.panel(self.spec.d)), self.element)
                v_at = f.gep(v, f.mul(at, self.panel(self.spec.value_d)), self.element)
                to = f.add(f.mul(first, self.line), f.mul(loop.index, self.width))
                tail = (
                    k_at,
                    v_at,
                    f.gep(p, to, self.element),
                    f.gep(ds, to, self.element),
                    row,
                    column,
                    mask,
                    noise,
                )
                self._call_form(f, rows, row, column, (*arguments, *tail))

        self._each_strip(f, q_count, self.spec.q_len, strip)

    def _call_form(
        self, f: Function, rows: int, row: Operand, column: Operand, arguments: tuple
    ) -> None:
        """Tiles that no mask touches take the shorter kernel."""
        if self.spec.mask:
            f.call(self._form_kernel(rows, True), "void", *arguments)
            return
        end = f.add(column, self.width)
        clear = f.compare("sle", end, self.spec.k_len)
        if self.spec.causal:
            clear = f.binary("and", clear, f.compare("sle", end, f.add(row, 1)))
        with f.either(clear) as branch:
            f.call(self._form_kernel(rows, False), "void", *arguments)
            branch.otherwise()
            f.call(self._form_kernel(rows, True), "void", *arguments)

    def _form_kernel(self, rows: int, check: bool) -> str:
        """``form(q, do, lse, sums, k, v, p, ds, row, column, mask,
        noise)``: one tile of P and dS."""
        name = f"{self.name}_form{rows}" + ("_masked" if check else "")
        if name in self.module:
            return name
        pointers = ("q", "do", "lse", "sums", "k", "v")
        parameters = [("ptr noalias readonly", n) for n in pointers]
        parameters += [("ptr noalias", "p"), ("ptr noalias", "ds")]
        parameters += [("i64", "row"), ("i64", "column"), ("ptr readonly", "mask")]
        parameters += [("ptr readonly", "noise")]
        f = self.module.function(name, parameters)
        q, do, lse, sums, k, v, p, ds, row, column, mask, noise = f.arguments
        spec, vectors = self.spec, self.shape.vectors
        factor = constant(spec.factor * LOG2_E, self.type)
        tile = microkernel.outer_product(
            f, q, k, spec.d, rows, vectors, self.type, Strides(spec.strides("q")[2], 1, self.width)
        )
        for i, values in enumerate(tile):
            shift = f.load(self.element, f.gep(lse, i, self.element))
            shift = f.splat(f.fmul(shift, LOG2_E), self.lanes)
            for j, x in enumerate(values):
                x = f.fmul(x, factor)
                if check:
                    at = f.add(column, j * self.lanes)
                    x = self.masked(f, x, f.add(row, i), at, mask)
                x = decay(f, f.fsub(x, shift))
                f.store(x, f.gep(p, i * self.line + j * self.lanes, self.element))
        strides = Strides(spec.strides("do")[2], 1, self.width)
        tile = microkernel.outer_product(f, do, v, spec.value_d, rows, vectors, self.type, strides)
        for i, values in enumerate(tile):
            shift = f.splat(f.load(self.element, f.gep(sums, i, self.element)), self.lanes)
            for j, x in enumerate(values):
                place = i * self.line + j * self.lanes
                weight = f.load(self.type, f.gep(p, place, self.element))
                if spec.noise:
                    at = f.add(column, j * self.lanes)
                    given = self.noise(f, noise, f.add(row, i), at, check)
                    x = f.fmul(x, given)
                    f.store(f.fmul(weight, given), f.gep(p, place, self.element))
                x = f.fmul(f.fmul(f.fsub(x, shift), weight), spec.factor)
                f.store(x, f.gep(ds, place, self.element))
        f.ret()
        return name

    # their products

    def _use(
        self, f: Function, memory: Value, queries: tuple[Value, Value, Value],
        keys: tuple[Value, Value, Value], place: tuple[Operand, Operand, Operand, Operand],
    ) -> None:  # fmt: skip
        """Add a block to dv, dk and dq."""
        q, do, dq = queries
        k, dk, dv = keys
        q0, k0, q_count, k_count = place
        p, ds = (f.gep(memory, end, self.element) for end in self.layout()[1:3])
        do_block, q_block = self.row(f, do, "do", q0), self.row(f, q, "q", q0)
        k_block = self.row(f, k, "k", k0)

        def key_strip(first: Operand, rows: int) -> None:
            row = f.add(k0, first)
            left_p, left_ds = (f.gep(x, first, self.element) for x in (p, ds))
            to_v, to_k = self.row(f, dv, "dv", row), self.row(f, dk, "dk", row)
            f.call(self._product("dv", rows), "void", left_p, do_block, to_v, q_count)
            f.call(self._product("dk", rows), "void", left_ds, q_block, to_k, q_count)

        def query_strip(first: Operand, rows: int) -> None:
            left = f.gep(ds, f.mul(first, self.line), self.element)
            to = self.row(f, dq, "dq", f.add(q0, first))
            f.call(self._product("dq", rows), "void", left, k_block, to, k_count)

        self._each_strip(f, k_count, self.spec.k_len, key_strip)
        self._each_strip(f, q_count, self.spec.q_len, query_strip)

    def _product(self, result: str, rows: int) -> str:
        """``product(a, b, c, k)``: rows of dv, dk or dq += a b."""
        name = f"{self.name}_{result}{rows}"
        if name in self.module:
            return name
        parameters = [("ptr noalias readonly", "a"), ("ptr noalias readonly", "b")]
        f = self.module.function(name, [*parameters, ("ptr noalias", "c"), ("i64", "k")])
        a, b, c, k = f.arguments
        spec = self.spec
        operand = {"dv": "do", "dk": "q", "dq": "k"}[result]
        a_row, a_k = (self.line, 1) if result == "dq" else (1, self.line)
        strides = Strides(a_row, a_k, spec.strides(operand)[2])
        stride = spec.strides(result)[2]
        total = spec.value_d if result == "dv" else spec.d
        for column in range(0, total, self.width):
            columns = min(self.width, total - column)
            vectors = math.ceil(columns / self.lanes)
            b_at, c_at = f.gep(b, column, self.element), f.gep(c, column, self.element)
            tile = microkernel.outer_product(
                f, a, b_at, k, rows, vectors, self.type, strides, 1, columns % self.lanes
            )
            old = microkernel.load_tile(f, c_at, stride, rows, columns, self.type)
            tile = [
                [f.fadd(x, y) for x, y in zip(r, s, strict=True)]
                for r, s in zip(tile, old, strict=True)
            ]
            microkernel.store_tile(f, tile, c_at, stride, columns)
        f.ret()
        return name
