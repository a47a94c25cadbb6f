"""bfloat16 products by way of float32: widen the operands, multiply, round the result."""

from __future__ import annotations

import math
from dataclasses import dataclass

from flambeau.codegen.target import Target
from flambeau.codegen.templates.entry import Kernel, set_slot, slot
from flambeau.codegen.templates.gemm_plan import ELEMENTS, GemmSpec
from flambeau.codegen.templates.rounding import to_bfloat
from flambeau.codegen.text import Function, Module, Operand, Value, vector

CHUNK = [("ptr", "slots"), ("i64", "i"), ("i64", "thread")]


@dataclass(frozen=True, slots=True)
class Widened:
    """Wraps a float32 kernel of contiguous operands; its pointers are those of the product."""

    module: Module
    name: str
    spec: GemmSpec
    target: Target
    inner: Kernel

    def emit(self) -> Kernel:
        spec, pointers = self.spec, self.inner.pointers
        f = self.module.function(self.name, [("ptr", "slots")])
        (slots,) = f.arguments
        own = f.alloca("i64", self.inner.slots)
        for i in range(3, pointers):
            set_slot(f, own, i, slot(f, slots, i))
        memory = slot(f, slots, pointers)
        for i, start in enumerate(self._starts()[:3]):
            set_slot(f, own, i, f.gep(memory, start))
        set_slot(f, own, pointers, f.gep(memory, self._starts()[3]))
        for i in range(3 if spec.beta else 2):
            f.parallel_for(self._emit_copy(i, back=False), slots, self._rows(i), 4 * self._size(i))
        f.call(self.inner.name, "void", own)
        f.parallel_for(self._emit_copy(2, back=True), slots, self._rows(2), 4 * self._size(2))
        f.ret()
        shared = 4 * self._starts()[3] + self.inner.shared_bytes
        return Kernel(
            self.name, pointers, pointers + 1, shared, self.inner.thread_bytes,
            self.inner.nanoseconds,
        )  # fmt: skip

    def _shape(self, operand: int) -> tuple[int, int]:
        spec = self.spec
        a = (spec.k, spec.m) if spec.trans_a else (spec.m, spec.k)
        b = (spec.n, spec.k) if spec.trans_b else (spec.k, spec.n)
        return (a, b, (spec.m, spec.n))[operand]

    def _rows(self, operand: int) -> int:
        return self._shape(operand)[0] * self.spec.batches

    def _size(self, operand: int) -> int:
        return math.prod(self._shape(operand)) * self.spec.batches

    def _starts(self) -> list[int]:
        """Where the float32 copies of A, B and C begin, and where they end."""
        starts = [0]
        for i in range(3):
            starts.append(starts[-1] + -(-self._size(i) // 16) * 16)
        return starts

    def _type(self, operand: int) -> str:
        spec = self.spec
        return ELEMENTS[spec.out_dtype or spec.dtype] if operand == 2 else ELEMENTS[spec.dtype]

    def _emit_copy(self, operand: int, back: bool) -> str:
        """A chunk widens one stored row, or rounds it back."""
        name = f"{self.name}_copy{operand}" + ("_back" if back else "")
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        rows, columns = self._shape(operand)
        stride = self.spec.strides[operand]
        start = f.add(f.mul(f.urem(i, rows), stride), self._batch(f, f.udiv(i, rows), operand))
        narrow = f.gep(slot(f, slots, operand), start, self._type(operand))
        memory = slot(f, slots, self.inner.pointers)
        wide = f.gep(memory, f.add(f.mul(i, columns), self._starts()[operand]))
        lanes = self.target.lanes()
        whole = columns // lanes * lanes
        with f.loop(0, whole, lanes) as loop:
            self._convert(f, narrow, wide, loop.index, lanes, operand, back)
        for j in range(whole, columns):
            self._convert(f, narrow, wide, j, 1, operand, back)
        f.ret()
        return name

    def _batch(self, f: Function, index: Operand, operand: int) -> Operand:
        spec, offset = self.spec, 0
        strides = (spec.batch_a, spec.batch_b, spec.batch_c)[operand]
        for axis in reversed(range(len(spec.batch))):
            offset = f.add(offset, f.mul(f.urem(index, spec.batch[axis]), strides[axis]))
            index = f.udiv(index, spec.batch[axis])
        return offset

    def _convert(
        self, f: Function, narrow: Value, wide: Value, j: Operand, lanes: int, operand: int,
        back: bool,
    ) -> None:  # fmt: skip
        element = self._type(operand)
        small, large = vector(lanes, element), vector(lanes, "float")
        at, to = f.gep(narrow, j, element), f.gep(wide, j)
        if back:
            x = f.load(large, to)
            f.store(x if element == "float" else to_bfloat(f, x, self.target), at)
        else:
            f.store(f.cast("fpext", f.load(small, at), large), to)
