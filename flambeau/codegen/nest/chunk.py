"""Chunk functions: one planned kernel as `void chunk(ptr context, i64 index, i64 thread)`.

Everything a chunk needs lies in a context block of 64-bit slots, described by a `Layout`: buffer
addresses, sizes, scalars and the status words. A program that embeds kernels makes its own layout,
writes its chunks into its own module with `write_chunk` and starts them with `launch`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flambeau.codegen.nest.emit import Emitter
from flambeau.codegen.nest.launcher import DOUBLE, INTEGER
from flambeau.codegen.nest.types import register_type
from flambeau.codegen.target import Target
from flambeau.codegen.text import Function, Module, Operand, Value
from flambeau.core import dtype as dtypes
from flambeau.ir.node import nodes, postorder
from flambeau.loops.expr import Expr
from flambeau.loops.nest import Nest
from flambeau.schedule.parallel import Chunks
from flambeau.schedule.plan import Plan


@dataclass(frozen=True, slots=True)
class Number:
    """A size or scalar in the context: an i64, or a double for floats."""

    name: str
    dtype: dtypes.dtype

    @property
    def letter(self) -> int:
        """How the launcher reads it."""
        return DOUBLE if self.dtype.category == dtypes.FLOAT else INTEGER


@dataclass(frozen=True, slots=True)
class Layout:
    """The slot of every buffer and number, and the first of the status words.

    With `row`, that slot holds the address of a row of slots in which the buffers are instead.
    """

    buffers: dict[str, int]
    numbers: dict[str, tuple[Number, int]]
    status: int
    sites: tuple[str, ...] = ()  # of checked indices; the status names one by its place here

    def emitter(
        self, f: Function, target: Target, context: Value, row: Value | None = None
    ) -> Emitter:
        """An emitter whose buffers and numbers are read from the context (buffers from `row`)."""
        where = context if row is None else row
        buffers = {name: f.load("ptr", f.gep(where, k, "i64")) for name, k in self.buffers.items()}
        numbers = {name: self.number(f, context, n, k) for name, (n, k) in self.numbers.items()}
        status = f.gep(context, self.status, "i64")
        return Emitter(f, target, buffers, numbers, status, self.sites)

    def number(self, f: Function, context: Value, n: Number, slot: int) -> Value:
        """A number in its register form."""
        x = f.load("double" if n.letter == DOUBLE else "i64", f.gep(context, slot, "i64"))
        want = register_type(n.dtype)
        if want == x.type:
            return x
        if want == "i1":
            return f.compare("ne", x, 0)
        return f.cast("fptrunc" if n.letter == DOUBLE else "trunc", x, want)


def numbers_of(nests: Iterable[Nest]) -> tuple[Number, ...]:
    """Sizes first, then scalars, each by first appearance."""
    found: dict[str, Number] = {}
    scalars: dict[str, Number] = {}
    for node in postorder(expressions(nests)):
        if node.kind == "size":
            found.setdefault(node.attr[0], Number(node.attr[0], node.dtype))
        elif node.kind == "scalar":
            scalars.setdefault(node.attr, Number(node.attr, node.dtype))
    return (*found.values(), *scalars.values())


def sites_of(nests: Iterable[Nest]) -> tuple[str, ...]:
    """Who checks indices."""
    found = nodes(tuple(expressions(nests)))
    return tuple(dict.fromkeys(n.attr[0] for n in found if n.kind == "check"))


def expressions(nests: Iterable[Nest]) -> list[Expr]:
    """Every expression of the nests, extents and strides included."""
    roots: list = []
    for n in nests:
        roots += [i.attr[1] for i in n.iters]
        for s in n.stores:
            roots += [*s.index, s.value, *s.buf.shape, *s.buf.strides]
    roots = [r for r in roots if isinstance(r, Expr)]
    for node in nodes(tuple(roots)):
        if node.kind in ("load", "guarded"):
            roots += [n for n in (*node.attr.shape, *node.attr.strides) if isinstance(n, Expr)]
        if node.kind == "iter" and isinstance(node.attr[1], Expr):
            roots.append(node.attr[1])
    return roots


def write_chunk(module: Module, target: Target, name: str, plan: Plan, layout: Layout) -> None:
    """The chunk function of a plan, exported under `name`."""
    f = module.function(
        name,
        [("ptr", "context"), ("i64", "chunk"), ("i64", "thread")],
        exported=True,
    )
    context, chunk, _ = f.arguments
    emitter = layout.emitter(f, target, context)
    if plan.chunks is None:
        emitter.block(plan.passes, plan.puts)
    else:
        write_part(emitter, plan, chunk)
    f.ret()


def write_part(emitter: Emitter, plan: Plan, chunk: Value) -> None:
    """The loops of one chunk: outer ones at one value, the last over a block."""
    f, c = emitter.f, plan.chunks
    assert c is not None
    *before, p = plan.passes
    emitter.block(tuple(before), ())
    extents = [emitter.extent(i) for i in c.iters]
    low, high = block_range(f, c, chunk, extents)
    rest: Operand = f.udiv(chunk, block_count(f, c, extents)) if extents[:-1] else 0
    values: list[Operand] = []
    for n in reversed(extents[:-1]):
        values.append(f.urem(rest, n))
        rest = f.udiv(rest, n)
    opened = list(zip(c.iters, reversed(values)))

    def go(at: int) -> None:
        if at == len(opened):
            return emitter.run(p, len(opened), (low, high))
        with emitter.opened(*opened[at]):
            go(at + 1)

    go(0)


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


def launch(
    f: Function, name: str, plan: Plan, context: Value, emitter: Emitter, threads: bool = True
) -> None:
    """Start all chunks of a kernel: on the pool when there are several, else at once.

    `emitter` reads the sizes that extents depend on.
    """
    c = plan.chunks
    if c is None:
        f.call(name, "void", context, 0, 0)
        return
    extents = [emitter.extent(i) for i in c.iters]
    count = block_count(f, c, extents)
    steps: Operand = 1
    for n in extents:
        steps = f.mul(steps, n)
    for n in extents[:-1]:
        count = f.mul(count, n)
    if isinstance(count, int) and count <= 1:
        if count:
            f.call(name, "void", context, 0, 0)
        return
    f.parallel_for(name, context, count, nanoseconds(f, c, steps) if threads else 0)


def nanoseconds(f: Function, c: Chunks, steps: Operand) -> Operand:
    """The work of `steps` steps."""
    each = c.nanoseconds_per_step()
    if isinstance(steps, int):
        return int(each * steps) + 1
    return f.binary("lshr", f.mul(steps, max(1, int(each * 1024))), 10)
