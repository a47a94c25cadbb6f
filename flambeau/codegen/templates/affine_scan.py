"""out[k] = a[k] + b[k] out[k - 1] along a dimension, from either end: what gradients of running
products and sums of exponentials are made of.

Neighbouring lines go in vectors where the dimension is not the last; a line of the last dimension
goes element by element, and lines are spread over threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from flambeau.codegen.target import Target
from flambeau.codegen.templates.entry import Kernel, slot
from flambeau.codegen.templates.gemm_plan import ELEMENTS
from flambeau.codegen.text import Function, Module, Operand, Value, constant, vector, zero

CHUNK = [("ptr", "slots"), ("i64", "i"), ("i64", "thread")]
MOST_VECTORS = 4  # of neighbouring lines that a chunk takes at once
NANOSECONDS = {True: 0.3, False: 2.5}  # an element, in vectors or alone


@dataclass(frozen=True, slots=True)
class AffineScanSpec:
    """`outer` x `length` x `inner` elements, contiguous; steps go along the middle."""

    outer: int
    length: int
    inner: int
    reverse: bool
    dtype: str


class AffineScan:
    """Writes the kernel; slots: a, b, out."""

    def __init__(self, module: Module, name: str, spec: AffineScanSpec, target: Target):
        self.module, self.name, self.spec = module, name, spec
        self.element = ELEMENTS[spec.dtype]
        self.lanes = target.lanes(self.element)
        self.width = min(spec.inner, self.lanes * MOST_VECTORS)
        self.blocks = -(-spec.inner // self.width)

    def emit(self) -> Kernel:
        spec = self.spec
        f = self.module.function(f"{self.name}_lines", CHUNK)
        slots, i, _ = f.arguments
        pointers = tuple(slot(f, slots, k) for k in range(3))
        outer, block = f.udiv(i, self.blocks), f.urem(i, self.blocks)
        start = f.add(f.mul(outer, spec.length * spec.inner), f.mul(block, self.width))
        rest = spec.inner - (self.blocks - 1) * self.width
        if rest == self.width:
            self.lines(f, pointers, start, self.width)
        else:
            with f.either(f.compare("eq", block, self.blocks - 1)) as branch:
                self.lines(f, pointers, start, rest)
                branch.otherwise()
                self.lines(f, pointers, start, self.width)
        f.ret()
        f = self.module.function(self.name, [("ptr", "slots")])
        count = spec.outer * spec.length * spec.inner
        work = int(count * NANOSECONDS[self.width >= self.lanes > 1])
        f.parallel_for(f"{self.name}_lines", f.arguments[0], spec.outer * self.blocks, work)
        f.ret()
        return Kernel(self.name, 3, 3, nanoseconds=work)

    def lines(self, f: Function, pointers: tuple[Value, ...], start: Operand, width: int) -> None:
        """`width` neighbouring lines from their first step to their last."""
        spec = self.spec
        if width == 1:
            types, counts = [self.element], [1]
        else:
            counts = [min(self.lanes, width - j) for j in range(0, width, self.lanes)]
            types = [vector(self.lanes, self.element)] * len(counts)
        none = [constant(0.0, t) if t == self.element else zero(t) for t in types]
        with f.loop(0, spec.length, carry=none) as loop:
            k = f.sub(spec.length - 1, loop.index) if spec.reverse else loop.index
            place = f.add(start, f.mul(k, spec.inner))
            after = []
            for n, (type, count) in enumerate(zip(types, counts, strict=True)):
                a, b, out = (f.gep(p, f.add(place, n * self.lanes), self.element)
                             for p in pointers)
                if width == 1:
                    x = f.fadd(f.load(type, a), f.fmul(f.load(type, b), loop.carried[n]))
                    f.store(x, out)
                else:
                    x = f.fmul(f.load_lanes(type, b, count), loop.carried[n])
                    x = f.fadd(f.load_lanes(type, a, count), x)
                    f.store_lanes(x, out, count)
                after.append(x)
            loop.next = after
