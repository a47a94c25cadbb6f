"""One module for a list of planned kernels: their chunk functions, and what the launcher is told.

Everything a chunk needs lies in one context block of 64-bit slots: buffer addresses, sizes, scalars
and the status words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from flambeau.codegen.nest.emit import Emitter
from flambeau.codegen.nest.launcher import DOUBLE, INTEGER, POINTER, Description, Launch
from flambeau.codegen.nest.types import memory_type, register_type
from flambeau.codegen.target import Target
from flambeau.codegen.text import Function, Module, Operand, Value, size_of
from flambeau.core import dtype as dtypes
from flambeau.ir.node import postorder
from flambeau.loops.expr import Expr
from flambeau.loops.nest import Buf, Nest
from flambeau.schedule.parallel import Chunks, chunk_count
from flambeau.schedule.plan import Plan


@dataclass(frozen=True, slots=True)
class Number:
    """A size or scalar of the entry, in its register form."""

    name: str
    dtype: dtypes.dtype

    @property
    def letter(self) -> int:
        """How the launcher reads it."""
        return DOUBLE if self.dtype.category == dtypes.FLOAT else INTEGER


def expressions(nests: tuple[Nest, ...]) -> list[Expr]:
    """Every expression of the nests, extents and strides included."""
    roots: list = []
    for n in nests:
        for i in n.iters:
            roots.append(i.attr[1])
        for s in n.stores:
            roots += [*s.index, s.value, *s.buf.shape, *s.buf.strides]
    roots = [r for r in roots if isinstance(r, Expr)]
    for node in list(postorder(roots)):
        if node.kind in ("load", "guarded"):
            roots += [n for n in (*node.attr.shape, *node.attr.strides) if isinstance(n, Expr)]
        if node.kind == "iter" and isinstance(node.attr[1], Expr):
            roots.append(node.attr[1])
    return roots


def numbers_of(nests: tuple[Nest, ...]) -> tuple[Number, ...]:
    """Sizes first, then scalars, each by first appearance."""
    found: dict[str, Number] = {}
    scalars: dict[str, Number] = {}
    for node in postorder(expressions(nests)):
        if node.kind == "size":
            found.setdefault(node.attr[0], Number(node.attr[0], node.dtype))
        elif node.kind == "scalar":
            scalars.setdefault(node.attr, Number(node.attr, node.dtype))
    return (*found.values(), *scalars.values())


class NestProgram:
    """Assembles the module."""

    def __init__(
        self,
        target: Target,
        groups: tuple[tuple[Nest, ...], ...],
        plans: tuple[Plan, ...],
        parameters: tuple[str, ...],
        threads: bool,
    ):
        self.target = target
        self.plans = plans
        self.threads = threads
        nests = tuple(n for g in groups for n in g)
        self.buffers = {name: b for plan in plans for name, b in plan.buffers().items()}
        self.parameters = parameters
        self.scratch = [b for name, b in self.buffers.items() if name not in parameters]
        self.numbers = numbers_of(nests)
        self.nests = nests
        self.slots = [*parameters, *[b.name for b in self.scratch], *[n.name for n in self.numbers]]
        self.module = Module(target.vector_bits)

    def number_names(self) -> tuple[str, ...]:
        return tuple(n.name for n in self.numbers)

    def text(self) -> str:
        for at, plan in enumerate(self.plans):
            self.chunk_function(at, plan)
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
        ops = [n.attr[0] for n in postorder(expressions(self.nests)) if n.kind == "check"]
        op = ops[0] if ops else "kernel"
        if self.is_computed():
            spare = tuple(static_bytes(b) or 0 for b in self.scratch)
            return Description(len(self.parameters), letters, spare, (), "run", op)
        scratch = tuple(static_bytes(b) or 0 for b in self.scratch)
        return Description(len(self.parameters), letters, scratch, tuple(self.launches()), None, op)

    def launches(self) -> Iterator[Launch]:
        for at, plan in enumerate(self.plans):
            count = 1 if plan.chunks is None else chunk_count(plan.chunks)
            assert count is not None
            if count == 0:
                continue
            work = 0
            if plan.chunks is not None and self.threads:
                steps = prod(i.attr[1] for i in plan.chunks.iters)
                work = int(plan.chunks.nanoseconds_per_step() * steps) + 1
            yield Launch(f"chunk{at}", count, work)

    # chunks

    def chunk_function(self, at: int, plan: Plan) -> None:
        f = self.module.function(
            f"chunk{at}",
            [("ptr noalias readonly", "context"), ("i64", "chunk"), ("i64", "thread")],
            exported=True,
        )
        context, chunk, _ = f.arguments
        emitter = self.emitter(f, context)
        if plan.chunks is None:
            emitter.block(plan.passes, plan.puts)
        else:
            self.one_chunk(emitter, plan, chunk)
        f.ret()

    def emitter(self, f: Function, context: Value) -> Emitter:
        """An emitter whose buffers and numbers are read from the context."""
        buffers = {
            name: f.load("ptr", f.gep(context, k, "i64"))
            for k, name in enumerate(self.slots)
            if name in self.buffers
        }
        numbers = {}
        first = len(self.slots) - len(self.numbers)
        for k, n in enumerate(self.numbers):
            numbers[n.name] = f.load(slot_type(n), f.gep(context, first + k, "i64"))
            numbers[n.name] = from_slot(f, numbers[n.name], n)
        status = f.gep(context, len(self.slots), "i64")
        return Emitter(f, self.target, buffers, numbers, status)

    def one_chunk(self, emitter: Emitter, plan: Plan, chunk: Value) -> None:
        """The loops of the chunk's part: outer ones at one value, the last over a block."""
        f, c = emitter.f, plan.chunks
        assert c is not None
        *before, p = plan.passes
        emitter.block(tuple(before), ())
        extents = [emitter.extent(i) for i in c.iters]
        low, high = block_range(f, c, chunk, extents)
        self.bound(
            emitter, c, chunk, extents, lambda: emitter.run(p, len(c.iters) - 1, (low, high))
        )

    def bound(
        self, emitter: Emitter, c: Chunks, chunk: Value, extents: list[Operand], body
    ) -> None:
        """Run `body` with the chunk's outer iterators open."""
        f = emitter.f
        rest: Operand = f.udiv(chunk, block_count(f, c, extents))
        values: list[Operand] = []
        for n in reversed(extents[:-1]):
            values.append(f.urem(rest, n))
            rest = f.udiv(rest, n)
        opened = list(zip(c.iters, reversed(values)))

        def go(at: int) -> None:
            if at == len(opened):
                return body()
            with emitter.opened(*opened[at]):
                go(at + 1)

        go(0)

    # kernels whose sizes are known at run time

    def run_function(self) -> None:
        """Allocate scratch and launch every kernel, from the sizes in the context."""
        f = self.module.function("run", [("ptr", "context")], exported=True)
        (context,) = f.arguments
        emitter = self.emitter(f, context)
        owned = self.allocated(f, context, emitter)
        for at, plan in enumerate(self.plans):
            self.launch(f, at, plan, context, emitter)
        for pointer in owned:
            f.call("free", "void", pointer)
        f.ret()

    def allocated(self, f: Function, context: Value, emitter: Emitter) -> list[Value]:
        """Memory for scratch buffers of computed size."""
        owned = []
        for k, b in enumerate(self.scratch):
            if static_bytes(b) is not None:
                continue
            total: Operand = size_of(memory_type(b.dtype))
            for n in b.shape:
                total = f.mul(total, n if isinstance(n, int) else emitter.value(n))
            padded = f.binary("and", f.add(total, 127), -64)
            at = f.call("aligned_alloc", "ptr", 64, padded)
            assert at is not None
            owned.append(at)
            f.store(at, f.gep(context, len(self.parameters) + k, "i64"))
        return owned

    def launch(self, f: Function, at: int, plan: Plan, context: Value, emitter: Emitter) -> None:
        """All chunks of one kernel, on the pool when there are several."""
        c = plan.chunks
        if c is None:
            f.call(f"chunk{at}", "void", context, 0, 0)
            return
        extents = [emitter.extent(i) for i in c.iters]
        count = block_count(f, c, extents)
        steps: Operand = 1
        for n in extents:
            steps = f.mul(steps, n)
        for n in extents[:-1]:
            count = f.mul(count, n)
        work = nanoseconds(f, c, steps) if self.threads else 0
        f.parallel_for(f"chunk{at}", context, count, work)


def nanoseconds(f: Function, c: Chunks, steps: Operand) -> Operand:
    """The work of all chunks."""
    each = c.nanoseconds_per_step()
    if isinstance(steps, int):
        return int(each * steps) + 1
    return f.binary("lshr", f.mul(steps, max(1, int(each * 1024))), 10)


def block_count(f: Function, c: Chunks, extents: list[Operand]) -> Operand:
    """Blocks of the last chunked loop."""
    return f.udiv(f.add(extents[-1], c.block - 1), c.block)


def block_range(
    f: Function, c: Chunks, chunk: Value, extents: list[Operand]
) -> tuple[Operand, Operand]:
    """The part of the last loop that a chunk runs over."""
    n = extents[-1]
    if isinstance(n, int) and n <= c.block:
        return 0, n
    block = chunk if len(extents) == 1 else f.urem(chunk, block_count(f, c, extents))
    low = f.mul(block, c.block)
    if isinstance(n, int) and n % c.block == 0:
        return low, f.add(low, c.block)
    return low, f.minimum(f.add(low, c.block), n)


def slot_type(n: Number) -> str:
    return "double" if n.letter == DOUBLE else "i64"


def from_slot(f: Function, x: Value, n: Number) -> Value:
    """A number of the context in its register form."""
    want = register_type(n.dtype)
    if want == x.type:
        return x
    if want == "i1":
        return f.compare("ne", x, 0)
    return f.cast("fptrunc" if n.letter == DOUBLE else "trunc", x, want)


def static_bytes(b: Buf) -> int | None:
    """Bytes of a buffer; None when they depend on sizes known at run time only."""
    if not all(isinstance(n, int) for n in b.shape):
        return None
    return max(1, size_of(memory_type(b.dtype)) * prod(b.shape))
