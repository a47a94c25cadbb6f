"""bfloat16 operands for a kernel that computes in float32: widened before, rounded after."""

from __future__ import annotations

import math
from dataclasses import dataclass

from flambeau.codegen.target import Target
from flambeau.codegen.templates.entry import Kernel, set_slot, slot
from flambeau.codegen.templates.rounding import to_bfloat
from flambeau.codegen.text import Function, Module, Operand, Value, vector

CHUNK = [("ptr", "slots"), ("i64", "i"), ("i64", "thread")]
ELEMENTS_OF_CHUNK = 1 << 15
BYTES_PER_NANOSECOND = 4


@dataclass(frozen=True, slots=True)
class Dense:
    """A dense operand: which pointer, how many elements, and whether the kernel writes it."""

    pointer: int
    count: int
    written: bool = False


@dataclass(frozen=True, slots=True)
class WidenedKernel:
    """Wraps `inner`, whose `operands` are float32, by one where they are bfloat16.

    Pointers that are no operand, such as indices, are handed on.
    """

    module: Module
    name: str
    target: Target
    inner: Kernel
    operands: tuple[Dense, ...]

    def emit(self) -> Kernel:
        """Add the wrapper; its pointers are those of `inner`."""
        pointers = self.inner.pointers
        f = self.module.function(self.name, [("ptr", "slots")])
        (slots,) = f.arguments
        memory = slot(f, slots, pointers)
        own = f.alloca("i64", self.inner.slots)
        for operand, start in zip(self.operands, self._starts(), strict=False):
            set_slot(f, own, operand.pointer, f.gep(memory, start))
        set_slot(f, own, pointers, f.gep(memory, self._starts()[-1]))
        for pointer in set(range(pointers)) - {o.pointer for o in self.operands}:
            set_slot(f, own, pointer, slot(f, slots, pointer))
        for i, operand in enumerate(self.operands):
            if not operand.written:
                self._copy(f, slots, i)
        f.call(self.inner.name, "void", own)
        for i, operand in enumerate(self.operands):
            if operand.written:
                self._copy(f, slots, i)
        f.ret()
        shared = 4 * self._starts()[-1] + self.inner.shared_bytes
        return Kernel(
            self.name, pointers, pointers + 1, shared, self.inner.thread_bytes,
            self.inner.nanoseconds,
        )  # fmt: skip

    def _starts(self) -> list[int]:
        """Where the float32 copies begin in the working memory, and where they end."""
        starts = [0]
        for operand in self.operands:
            starts.append(starts[-1] + -(-operand.count // 16) * 16)
        return starts

    def _copy(self, f: Function, slots: Value, which: int) -> None:
        count = self.operands[which].count
        chunks = math.ceil(count / ELEMENTS_OF_CHUNK)
        f.parallel_for(self._emit_chunk(which), slots, chunks, 6 * count // BYTES_PER_NANOSECOND)

    def _emit_chunk(self, which: int) -> str:
        """A chunk converts some elements of one operand."""
        operand, name = self.operands[which], f"{self.name}_convert{which}"
        f = self.module.function(name, CHUNK)
        slots, i, _ = f.arguments
        narrow = slot(f, slots, operand.pointer)
        wide = f.gep(slot(f, slots, self.inner.pointers), self._starts()[which])
        low = f.mul(i, ELEMENTS_OF_CHUNK)
        high = f.minimum(f.add(low, ELEMENTS_OF_CHUNK), operand.count)
        lanes = self.target.lanes()
        whole = f.sub(high, f.urem(f.sub(high, low), lanes))
        with f.loop(low, whole, lanes) as loop:
            self._convert(f, narrow, wide, loop.index, lanes, operand.written)
        with f.loop(whole, high) as loop:
            self._convert(f, narrow, wide, loop.index, 1, operand.written)
        f.ret()
        return name

    def _convert(
        self, f: Function, narrow: Value, wide: Value, i: Operand, lanes: int, back: bool
    ) -> None:
        small, large = vector(lanes, "bfloat"), vector(lanes, "float")
        at, to = f.gep(narrow, i, "bfloat"), f.gep(wide, i)
        if back:
            f.store(to_bfloat(f, f.load(large, to), self.target), at)
        else:
            f.store(f.cast("fpext", f.load(small, at), large), to)
