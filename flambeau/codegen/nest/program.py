"""One module for a list of planned kernels: chunk functions, the native entry and the builtin.

Everything a chunk needs lies in one context block of 64-bit slots: buffer addresses, sizes, scalars
and the status words.
"""

from __future__ import annotations

from dataclasses import dataclass

from flambeau.codegen.nest.emit import Emitter
from flambeau.codegen.nest.types import memory_type, register_type
from flambeau.codegen.target import Target
from flambeau.codegen.text import Function, Module, Operand, Value, constant
from flambeau.core import dtype as dtypes
from flambeau.ir.node import postorder
from flambeau.loops.expr import Expr
from flambeau.loops.nest import Buf, Nest
from flambeau.runtime import builtin
from flambeau.schedule.parallel import Chunks, chunk_count
from flambeau.schedule.plan import Plan

STACK_BYTES = 64 * 1024  # scratch up to this size lives on the caller's stack
STATUS_WORDS = 4


@dataclass(frozen=True, slots=True)
class Number:
    """A size or scalar of the entry, in its register form."""

    name: str
    dtype: dtypes.dtype

    @property
    def letter(self) -> str:
        """How the builtin passes it: `d` for floats, `i` for the rest."""
        return "d" if self.dtype.category == dtypes.FLOAT else "i"


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

    def __init__(self, target: Target, groups: tuple[tuple[Nest, ...], ...], plans: tuple[Plan, ...],
                 parameters: tuple[str, ...], threads: bool):
        self.target = target
        self.plans = plans
        self.threads = threads
        nests = tuple(n for g in groups for n in g)
        self.buffers = {name: b for plan in plans for name, b in plan.buffers().items()}
        self.parameters = parameters
        self.scratch = [b for name, b in self.buffers.items() if name not in parameters]
        self.numbers = numbers_of(nests)
        self.checks = any(n.kind == "check" for n in postorder(expressions(nests)))
        self.slots = [*parameters, *[b.name for b in self.scratch], *[n.name for n in self.numbers]]
        self.module = Module(target.vector_bits)

    def number_names(self) -> tuple[str, ...]:
        return tuple(n.name for n in self.numbers)

    def letters(self) -> str:
        return "p" * len(self.parameters) + "".join(n.letter for n in self.numbers)

    def text(self) -> str:
        for at, plan in enumerate(self.plans):
            self.chunk_function(at, plan)
        self.run_function()
        self.module.append(builtin.DECLARATIONS)
        self.module.append(builtin.trampoline("entry", "run", self.letters(), status=True))
        return self.module.text()

    # chunks

    def chunk_function(self, at: int, plan: Plan) -> None:
        f = self.module.function(f"chunk{at}", [("ptr noalias readonly", "context"), ("i64", "chunk"),
                                                ("i64", "thread")])
        context, chunk, _ = f.arguments
        emitter = self.emitter(f, context)
        if plan.chunks is None:
            emitter.block(plan.passes, plan.puts)
        else:
            self.one_chunk(emitter, plan, chunk)
        f.ret()

    def emitter(self, f: Function, context: Value) -> Emitter:
        """An emitter whose buffers and numbers are read from the context."""
        buffers = {name: f.load("ptr", f.gep(context, k, "i64"))
                   for k, name in enumerate(self.slots) if name in self.buffers}
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
        self.bound(emitter, c, chunk, extents, lambda: emitter.run(p, len(c.iters) - 1, (low, high)))

    def bound(self, emitter: Emitter, c: Chunks, chunk: Value, extents: list[Operand], body) -> None:
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

    # the entry

    def run_function(self) -> None:
        """The native entry: fill the context, run every kernel, return whether something failed."""
        names = [("ptr", f"p{k}") for k in range(len(self.parameters))]
        names += [({"d": "double", "i": "i64"}[n.letter], f"n{k}") for k, n in enumerate(self.numbers)]
        f = self.module.function("run", names, "i64", exported=True)
        context = f.alloca("i64", len(self.slots) + STATUS_WORDS)
        held = self.fill(f, context)
        f.store(constant(0, "i64"), f.gep(context, len(self.slots), "i64"))
        for at, plan in enumerate(self.plans):
            self.launch(f, at, plan, context, held)
        for pointer in self.allocated:
            f.call("free", "void", pointer)
        f.ret(f.load("i64", f.gep(context, len(self.slots), "i64")))

    def fill(self, f: Function, context: Value) -> dict[str, Value]:
        """Store arguments and scratch addresses; the numbers by name."""
        count = len(self.parameters)
        numbers = {}
        for k, argument in enumerate(f.arguments):
            slot = k if k < count else k + len(self.scratch)
            f.store(argument, f.gep(context, slot, "i64"))
            if k >= count:
                numbers[self.numbers[k - count].name] = argument
        self.allocated: list[Value] = []
        used = 0
        for k, b in enumerate(self.scratch):
            nbytes = scratch_bytes(Emitter(f, self.target, {}, numbers, None), b)
            small = isinstance(nbytes, int) and used + nbytes <= STACK_BYTES
            if isinstance(nbytes, int) and small:
                used += nbytes
                at = f.alloca("i8", max(nbytes, 1))
            else:
                padded = f.binary("and", f.add(nbytes, 127), -64)
                at = f.call("aligned_alloc", "ptr", 64, padded)
                assert at is not None
                self.allocated.append(at)
            f.store(at, f.gep(context, count + k, "i64"))
        return numbers

    def launch(self, f: Function, at: int, plan: Plan, context: Value, numbers: dict[str, Value]) -> None:
        """All chunks of one kernel, on the pool when there are several."""
        c = plan.chunks
        if c is None or chunk_count(c) == 1:
            f.call(f"chunk{at}", "void", context, 0, 0)
            return
        if chunk_count(c) == 0:
            return
        emitter = Emitter(f, self.target, {}, numbers, None)
        extents = [emitter.extent(i) for i in c.iters]
        count = block_count(f, c, extents)
        steps: Operand = 1
        for n in extents:
            steps = f.mul(steps, n)
        for n in extents[:-1]:
            count = f.mul(count, n)
        if self.threads:
            f.parallel_for(f"chunk{at}", context, count, nanoseconds(f, c, steps))
        else:
            with f.loop(0, count) as loop:
                f.call(f"chunk{at}", "void", context, loop.index, 0)


def nanoseconds(f: Function, c: Chunks, steps: Operand) -> Operand:
    """The work of all chunks."""
    each = c.nanoseconds_per_step()
    if isinstance(steps, int):
        return int(each * steps) + 1
    return f.binary("lshr", f.mul(steps, max(1, int(each * 1024))), 10)


def block_count(f: Function, c: Chunks, extents: list[Operand]) -> Operand:
    """Blocks of the last chunked loop."""
    return f.udiv(f.add(extents[-1], c.block - 1), c.block)


def block_range(f: Function, c: Chunks, chunk: Value, extents: list[Operand]) -> tuple[Operand, Operand]:
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
    return "double" if n.letter == "d" else "i64"


def from_slot(f: Function, x: Value, n: Number) -> Value:
    """A number of the context in its register form."""
    want = register_type(n.dtype)
    if want == x.type:
        return x
    if want == "i1":
        return f.compare("ne", x, 0)
    return f.cast("fptrunc" if n.letter == "d" else "trunc", x, want)


def scratch_bytes(emitter: Emitter, b: Buf) -> Operand:
    from flambeau.codegen.text import size_of

    total: Operand = size_of(memory_type(b.dtype))
    for n in b.shape:
        total = emitter.f.mul(total, n if isinstance(n, int) else emitter.value(n))
    return total
