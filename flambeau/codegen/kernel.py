"""Nests compiled to one native entry point.

    kernel = compile_kernel(nest(shape, lambda i: x[i] + y[i]))
    kernel.entry(x_address, y_address, out_address)

The entry takes the addresses of `kernel.parameters`, then the runtime sizes and scalars of
`kernel.numbers`, in order. It keeps the GIL unless the work is long. Buffers that are written and
read again in between live inside of the kernel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial

from flambeau.codegen import target as targets
from flambeau.codegen.nest import foreach, launcher
from flambeau.codegen.nest.program import NestProgram
from flambeau.core import logs
from flambeau.loops.fingerprint import fingerprint
from flambeau.loops.nest import Nest
from flambeau.loops.verify import verify
from flambeau.runtime import recipes
from flambeau.schedule.fuse import fused
from flambeau.schedule.liveness import externals
from flambeau.schedule.machine import Machine
from flambeau.schedule.plan import Plan, planned


@dataclass(frozen=True, slots=True)
class Stages:
    """What nests become on their way to code."""

    nests: tuple[tuple[Nest, ...], ...]  # what was fused with what
    plans: tuple[Plan, ...]
    program: NestProgram
    llvm: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled kernel. How it came about is worked out when somebody asks."""

    entry: Callable[..., None]
    parameters: tuple[str, ...]  # buffers, in the order of the entry's addresses
    numbers: tuple[str, ...]  # sizes and scalars, after them
    stages: Callable[[], Stages]

    @property
    def source(self) -> str:
        """The nests as text, one group a kernel."""
        return "\n\n".join("\n".join(map(str, group)) for group in self.stages().nests)


def machine_of(target: targets.Target) -> Machine:
    return Machine(
        target.vector_bytes,
        target.vector_registers,
        target.masked_memory,
        target.level1_bytes,
        target.level2_bytes,
    )


def compile_kernel(
    nests: Nest | Iterable[Nest],
    *,
    threads: bool = True,
    parameters: Sequence[str] | None = None,
    target: targets.Target | None = None,
) -> Kernel:
    """One native entry for `nests`, fused where that pays, run in order.

    `parameters` orders the buffers that the caller passes; without it they are those read before
    they are written, then those written and not read again, by first appearance. A buffer that is
    written and not among the parameters is scratch. Results do not depend on the number of threads;
    with `threads=False` the calling thread does everything.
    """
    given = (nests,) if isinstance(nests, Nest) else tuple(nests)
    outside = tuple(parameters) if parameters is not None else externals(given)
    with logs.timed(f"{len(given)} nests to native code"):
        return compiled(given, outside, threads, target or targets.host())


@lru_cache(maxsize=4096)
def compiled(
    given: tuple[Nest, ...], outside: tuple[str, ...], threads: bool, target: targets.Target
) -> Kernel:
    """The kernel of these nests; equal nests share one."""
    staged = partial(stages, given, outside, threads, target)

    def generate() -> tuple[str, recipes.Facts]:
        made = staged()
        numbers = made.program.number_names()
        return made.llvm, {"numbers": numbers, "launcher": asdict(made.program.description())}

    if os.environ.get("FLAMBEAU_CHECK") == "1":
        staged()
    library, facts = recipes.library(
        ("nests", fingerprint(given), outside, threads, target), generate,
        cpu=target.cpu, features=target.features, level=2,
    )  # fmt: skip
    entry = launcher.entry(launcher.description(facts["launcher"]), library)
    return Kernel(entry, outside, tuple(facts["numbers"]), staged)


@lru_cache(maxsize=4)
def stages(
    given: tuple[Nest, ...], outside: tuple[str, ...], threads: bool, target: targets.Target
) -> Stages:
    """Fused, planned and written."""
    machine = machine_of(target)
    logs.show("loops", f"{len(given)} nests", lambda: "\n".join(map(str, given)))
    groups = fused(given, outside, machine)
    flat = tuple(n for group in groups for n in group)
    if os.environ.get("FLAMBEAU_CHECK") == "1":
        verify(given)
        verify(flat)
    plans: list[Plan] = []
    for group in groups:
        plans += planned(list(group), machine, len(plans))
    logs.show("schedule", f"{len(plans)} kernels", lambda: "\n\n".join(map(str, plans)))
    program = NestProgram(target, flat, tuple(plans), outside, threads)
    return Stages(groups, tuple(plans), program, program.text())


def compile_foreach(
    nest: Nest, *, parameters: Sequence[str] | None = None, target: targets.Target | None = None
) -> foreach.ForeachKernel:
    """One elementwise nest over many tensors; see `flambeau.codegen.nest.foreach`."""
    target = target or targets.host()
    return foreach.compile_foreach(nest, machine_of(target), parameters=parameters, target=target)
