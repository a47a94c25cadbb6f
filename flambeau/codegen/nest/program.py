"""One module for a list of planned kernels, and what the launcher is told about it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from flambeau.codegen.nest.chunk import (
    Layout,
    launch,
    numbers_of,
    sites_of,
    write_chunk,
)
from flambeau.codegen.nest.emit import Emitter
from flambeau.codegen.nest.launcher import POINTER, Description, Launch
from flambeau.codegen.nest.types import memory_type
from flambeau.codegen.target import Target
from flambeau.codegen.text import Function, Module, Operand, Value, size_of
from flambeau.loops.nest import Buf, Nest
from flambeau.schedule.memory import Lifetime, offsets
from flambeau.schedule.parallel import chunk_count
from flambeau.schedule.plan import Plan


class NestProgram:
    """Slots of the context, in order: parameters, scratch buffers, sizes and scalars, status."""

    def __init__(
        self,
        target: Target,
        nests: tuple[Nest, ...],
        plans: tuple[Plan, ...],
        parameters: tuple[str, ...],
        threads: bool,
    ):
        self.target = target
        self.nests = nests
        self.plans = plans
        self.threads = threads
        self.parameters = parameters
        buffers = {name: b for plan in plans for name, b in plan.buffers().items()}
        self.scratch = [b for name, b in buffers.items() if name not in parameters]
        self.numbers = numbers_of(nests)
        self.sites = sites_of(nests)
        self.module = Module(target.vector_bits)

    @property
    def layout(self) -> Layout:
        names = [*self.parameters, *[b.name for b in self.scratch]]
        first = len(names)
        numbers = {n.name: (n, first + k) for k, n in enumerate(self.numbers)}
        status = first + len(numbers)
        return Layout({n: k for k, n in enumerate(names)}, numbers, status, self.sites)

    def number_names(self) -> tuple[str, ...]:
        return tuple(n.name for n in self.numbers)

    def text(self) -> str:
        for at, plan in enumerate(self.plans):
            write_chunk(self.module, self.target, f"chunk{at}", plan, self.layout)
        if self.is_computed():
            self.run_function()
        return self.module.text()

    def is_computed(self) -> bool:
        """Do chunk counts or scratch sizes depend on sizes known at run time only?"""
        counts = [chunk_count(p.chunks) for p in self.plans if p.chunks is not None]
        return None in counts or any(static_bytes(b) is None for b in self.scratch)

    def description(self) -> Description:
        """What the launcher is told."""
        letters = (POINTER,) * len(self.parameters) + tuple(n.letter for n in self.numbers)
        places, total = offsets([self.lifetime(b) for b in self.scratch])
        computed = self.is_computed()
        launches = () if computed else tuple(self.launches())
        run = "run" if computed else None
        return Description(len(self.parameters), letters, places, total, launches, run, self.sites)

    def lifetime(self, b: Buf) -> Lifetime:
        """From the first kernel that touches a scratch buffer to the last."""
        using = [k for k, plan in enumerate(self.plans) if b.name in plan.buffers()]
        return Lifetime(static_bytes(b) or 0, using[0], using[-1])

    def launches(self) -> Iterator[Launch]:
        for at, plan in enumerate(self.plans):
            count = 1 if plan.chunks is None else chunk_count(plan.chunks)
            assert count is not None
            work = 0
            if plan.chunks is not None and self.threads:
                steps = prod(i.attr[1] for i in plan.chunks.iters)
                work = int(plan.chunks.nanoseconds_per_step() * steps) + 1
            if count:
                yield Launch(f"chunk{at}", count, work)

    # kernels whose sizes are known at run time

    def run_function(self) -> None:
        """Allocate scratch and launch every kernel, from the sizes in the context."""
        f = self.module.function("run", [("ptr", "context")], exported=True)
        (context,) = f.arguments
        emitter = self.layout.emitter(f, self.target, context)
        owned = self.allocated(f, context, emitter)
        for at, plan in enumerate(self.plans):
            launch(f, f"chunk{at}", plan, context, emitter, self.threads)
        for pointer in owned:
            f.call("free", "void", pointer)
        f.ret()

    def allocated(self, f: Function, context: Value, emitter: Emitter) -> list[Value]:
        """Memory for scratch buffers of computed size."""
        owned = []
        for b in self.scratch:
            if static_bytes(b) is not None:
                continue
            span: Operand = 1
            for n, stride in zip(b.shape, b.strides):
                n, stride = (x if isinstance(x, int) else emitter.value(x) for x in (n, stride))
                span = f.add(span, f.mul(f.sub(n, 1), stride))
            total = f.mul(span, size_of(memory_type(b.dtype)))
            padded = f.binary("and", f.add(total, 127), -64)
            at = f.call("aligned_alloc", "ptr", 64, padded)
            assert at is not None
            owned.append(at)
            f.store(at, f.gep(context, self.layout.buffers[b.name], "i64"))
        return owned


def static_bytes(b: Buf) -> int | None:
    """Bytes of a buffer; None when they depend on sizes known at run time only."""
    if not all(isinstance(n, int) for n in (*b.shape, *b.strides)):
        return None
    span = 1 + sum((n - 1) * stride for n, stride in zip(b.shape, b.strides)) if all(b.shape) else 0
    return max(1, size_of(memory_type(b.dtype)) * span)
