"""Attention of bfloat16 computed in float32: a head at a time is widened and its results rounded.

A chunk is one batch and head. Its operands become dense float32 in the thread's own memory, where
the float32 kernel of that one head works on them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from flambeau.codegen.target import Target
from flambeau.codegen.templates.attention import CHUNK, AttentionForward
from flambeau.codegen.templates.attention_backward import AttentionBackward
from flambeau.codegen.templates.attention_spec import AttentionSpec
from flambeau.codegen.templates.entry import Kernel, set_slot, slot, thread_memory
from flambeau.codegen.templates.microkernel import lane_counts
from flambeau.codegen.templates.stored import Stored
from flambeau.codegen.text import Function, Module, Operand, Value, vector

OPERANDS = {
    "forward": ("q", "k", "v", "o", "lse"),
    "backward": ("q", "k", "v", "o", "do", "lse", "dq", "dk", "dv"),
}
RESULTS = {"forward": ("o",), "backward": ("dq", "dk", "dv")}
DENSE = {f"{name}_strides": () for name in OPERANDS["backward"] if name != "lse"}


@dataclass(slots=True)
class OneHead(AttentionForward):
    """The float32 kernel of one head, on one thread."""

    @property
    def parts(self) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class WidenedAttention:
    """The forward or backward pass (`kind`); pointers are those of the float32 kernel.

    The log-sum-exp is float32. Heads of q do not share those of k and v.
    """

    module: Module
    name: str
    spec: AttentionSpec
    target: Target
    kind: str

    @property
    def one_head(self) -> AttentionSpec:
        """What a chunk computes, on dense copies; the mask stays where it is."""
        spec = self.spec
        return replace(
            spec, batch=1, heads=1, kv_heads=1, scale=spec.factor, dtype="float32", **DENSE
        )

    def emit(self) -> Kernel:
        spec = self.spec
        generator = OneHead if self.kind == "forward" else AttentionBackward
        inner = generator(self.module, f"{self.name}_float", self.one_head, self.target).emit()
        own = 4 * self._starts()["end"] + inner.thread_bytes
        chunk = self._emit_chunk(inner, own)
        heads = spec.batch * spec.heads
        f = self.module.function(self.name, [("ptr", "slots")])
        f.parallel_for(chunk, f.arguments[0], heads, inner.nanoseconds * heads)
        f.ret()
        return Kernel(
            self.name, inner.pointers, inner.pointers + 1, 0, own, inner.nanoseconds * heads
        )

    def _shape(self, name: str) -> tuple[int, int]:
        """Rows and width of an operand."""
        spec = self.spec
        return (
            spec.k_len if name in ("k", "v", "dk", "dv") else spec.q_len,
            spec.value_d if name in ("v", "o", "do", "dv") else spec.d,
        )

    def _starts(self) -> dict[str, int]:
        """Where float32 copies begin in a thread's memory, in elements, and where they end."""
        starts, end = {}, 0
        for name in OPERANDS[self.kind]:
            starts[name] = end
            if name != "lse":
                rows, width = self._shape(name)
                end += -(-rows * width // 16) * 16
        return {**starts, "end": end}

    def _emit_chunk(self, inner: Kernel, own: int) -> str:
        spec, name = self.spec, f"{self.name}_head"
        f = self.module.function(name, CHUNK)
        slots, i, thread = f.arguments
        b, h = f.udiv(i, spec.heads), f.urem(i, spec.heads)
        memory = thread_memory(f, slot(f, slots, inner.pointers), 0, own, thread)
        cells = f.alloca("i64", inner.slots)
        starts, narrow = self._starts(), []
        set_slot(f, cells, inner.pointers, f.gep(memory, starts["end"]))
        for n, operand in enumerate(OPERANDS[self.kind]):
            copy, given = f.gep(memory, starts[operand]), slot(f, slots, n)
            if operand == "lse":
                copy = f.gep(given, f.mul(i, spec.q_len))
            else:
                batch, head, _ = spec.strides(operand)
                at = f.gep(given, f.add(f.mul(b, batch), f.mul(h, head)), "bfloat")
                narrow.append((operand, copy, at))
            set_slot(f, cells, n, copy)
        if spec.mask:
            batch, head, _, _ = spec.mask_strides
            at = f.add(f.mul(b, batch), f.mul(h, head))
            element = {"bool": "i8", "bfloat16": "bfloat"}[spec.mask]
            last = inner.pointers - 1
            set_slot(f, cells, last, f.gep(slot(f, slots, last), at, element))
        for operand, copy, at in narrow:
            if operand not in RESULTS[self.kind]:
                self._convert(f, operand, copy, at)
        f.call(inner.name, "void", cells)
        for operand, copy, at in narrow:
            if operand in RESULTS[self.kind]:
                self._convert(f, operand, copy, at)
        f.ret()
        return name

    def _convert(self, f: Function, operand: str, wide: Value, narrow: Value) -> None:
        """Widen an operand of one head, or round a result."""
        rows, width = self._shape(operand)
        lanes, stored = self.target.lanes(), Stored("bfloat", self.target)
        stride, type = self.spec.strides(operand)[2], vector(lanes, "float")

        def part(row: Value, j: Operand, count: int) -> None:
            copy = f.gep(wide, f.add(f.mul(row, width), j))
            at = stored.gep(f, narrow, f.add(f.mul(row, stride), j))
            if operand in RESULTS[self.kind]:
                stored.store(f, f.load_lanes(type, copy, count), at, count)
            else:
                f.store_lanes(stored.load(f, type, at, count), copy, count)

        with f.loop(0, rows) as row:
            for j, count in zip(range(0, width, lanes), lane_counts(width, lanes), strict=True):
                part(row.index, j, count)
