"""One elementwise kernel over many tensors: an optimizer's update of all parameters in one call.

The nest is written for one tensor, over a size known at run time. The caller passes a table of
64-bit words, one row a tensor: the addresses of the nest's buffers in the order of `parameters`,
then the number of elements. Chunks of all tensors form one job of the thread pool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flambeau.codegen import target as targets
from flambeau.codegen.nest import launcher
from flambeau.codegen.nest.chunk import Layout, nanoseconds, numbers_of, write_part
from flambeau.codegen.nest.launcher import INTEGER, POINTER, Description
from flambeau.codegen.target import Target
from flambeau.codegen.text import Module, Operand, constant
from flambeau.core.errors import OpError, complaint
from flambeau.loops.nest import Nest
from flambeau.runtime import jit
from flambeau.schedule.liveness import externals
from flambeau.schedule.machine import Machine
from flambeau.schedule.plan import Plan, planned

TABLE, ROWS, FIRST_NUMBER = 0, 1, 2  # slots of the context


@dataclass(frozen=True, slots=True)
class ForeachKernel:
    """`entry(table address, number of rows, *numbers)`."""

    entry: Callable[..., None]
    parameters: tuple[str, ...]  # the columns of the table, before the number of elements
    numbers: tuple[str, ...]
    plan: Plan
    llvm: str


def compile_foreach(
    nest: Nest,
    machine: Machine,
    *,
    parameters: Sequence[str] | None = None,
    target: Target | None = None,
) -> ForeachKernel:
    """`nest` (one loop over a runtime size, contiguous buffers, no folds) over many tensors."""
    target = target or targets.host()
    columns = tuple(parameters) if parameters is not None else externals((nest,))
    plans = planned([nest], machine)
    if not is_one_loop(nest, plans):
        must = "one loop over one runtime size is needed"
        raise OpError(complaint("foreach", must, {"nest": nest}, "Use compile_kernel otherwise."))
    size_name = nest.shape[0].attr[0]
    numbers = tuple(n for n in numbers_of((nest,)) if n.name != size_name)
    module = Module(target.vector_bits)
    writer = _Writer(module, target, plans[0], columns, numbers, size_name)
    writer.chunk()
    writer.run()
    text = module.text()
    library = jit.load(text, cpu=target.cpu, features=target.features)
    letters = (POINTER, INTEGER, *[n.letter for n in numbers])
    description = Description(1, letters, (), 0, (), "run", ())
    entry = launcher.entry(description, library)
    return ForeachKernel(entry, columns, tuple(n.name for n in numbers), plans[0], text)


def is_one_loop(nest: Nest, plans: list[Plan]) -> bool:
    c = plans[0].chunks
    if len(plans) != 1 or c is None or len(nest.shape) != 1 or isinstance(nest.shape[0], int):
        return False
    return len(c.iters) == 1 and c.iters[0].attr[1] is nest.shape[0]


class _Writer:
    """The module of one kernel. The slot after the status words holds the list of chunks."""

    def __init__(
        self,
        module: Module,
        target: Target,
        plan: Plan,
        columns: tuple[str, ...],
        numbers: tuple,
        size_name: str,
    ):
        self.module, self.target, self.plan = module, target, plan
        self.size_name = size_name
        self.width = len(columns) + 1
        slots = {n.name: (n, FIRST_NUMBER + k) for k, n in enumerate(numbers)}
        self.layout = Layout(
            {n: k for k, n in enumerate(columns)}, slots, FIRST_NUMBER + len(numbers)
        )
        self.list_slot = self.layout.status + launcher.STATUS_WORDS - 1

    def chunk(self) -> None:
        """Find the tensor and the block, then run the block."""
        f = self.module.function("chunk", [("ptr", "context"), ("i64", "index"), ("i64", "thread")])
        context, at, _ = f.arguments
        jobs = f.load("ptr", f.gep(context, self.list_slot, "i64"))
        job = f.load("i64", f.gep(jobs, at, "i64"))
        table = f.load("ptr", f.gep(context, TABLE, "i64"))
        row = f.gep(table, f.mul(f.binary("lshr", job, 32), self.width), "i64")
        emitter = self.layout.emitter(f, self.target, context, row)
        emitter.numbers[self.size_name] = f.load("i64", f.gep(row, self.width - 1, "i64"))
        write_part(emitter, self.plan, f.binary("and", job, (1 << 32) - 1))
        f.ret()

    def run(self) -> None:
        """List every (tensor, block), then give the list to the pool."""
        f = self.module.function("run", [("ptr", "context")], exported=True)
        (context,) = f.arguments
        table = f.load("ptr", f.gep(context, TABLE, "i64"))
        rows = f.load("i64", f.gep(context, ROWS, "i64"))
        c = self.plan.chunks
        assert c is not None

        def elements(row) -> Operand:
            return f.load("i64", f.gep(table, f.add(f.mul(row, self.width), self.width - 1), "i64"))

        def blocks(n: Operand) -> Operand:
            return f.udiv(f.add(n, c.block - 1), c.block)

        zero = constant(0, "i64")
        with f.loop(0, rows, 1, [zero, zero]) as counting:
            n = elements(counting.index)
            total, steps = counting.carried
            counting.next = [f.add(total, blocks(n)), f.add(steps, n)]
        count, steps = counting.results
        jobs = f.call("aligned_alloc", "ptr", 64, f.binary("and", f.add(f.mul(count, 8), 127), -64))
        assert jobs is not None
        f.store(jobs, f.gep(context, self.list_slot, "i64"))
        with f.loop(0, rows, 1, [zero]) as outer:
            (place,) = outer.carried
            mine = blocks(elements(outer.index))
            high = f.binary("shl", outer.index, 32)
            with f.loop(0, mine) as inner:
                f.store(
                    f.binary("or", high, inner.index), f.gep(jobs, f.add(place, inner.index), "i64")
                )
            outer.next = [f.add(place, mine)]
        f.parallel_for("chunk", context, count, nanoseconds(f, c, steps))
        f.call("free", "void", jobs)
        f.ret()
