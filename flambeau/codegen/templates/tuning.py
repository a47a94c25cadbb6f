"""Plans chosen by the clock, for `mode="max-autotune"`.

Within `tuning()`, a product is made in several ways, which run in turn on memory of their own. What
was fastest is written to the object cache, from which later processes take it without timing
anything. The plan of `gemm_plan` is one of the ways, and stays where no other is clearly faster.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from flambeau.codegen.target import Target
from flambeau.codegen.templates import gemm_dot
from flambeau.codegen.templates.gemm_plan import ELEMENTS, GemmSpec, Plan, plan
from flambeau.codegen.text import size_of
from flambeau.core import logs
from flambeau.runtime import allocator, object_cache, recipes

CLEARLY = 0.97  # of the time of the plan that is there without the clock
SECONDS = 0.3  # for timing the candidates of one product, what one takes at least set aside
LARGEST = 1 << 28  # bytes of operands beyond which nothing is timed
ROUNDS = 12

Program = Callable[..., None]


class _Asked(threading.local):
    here = False


_asked = _Asked()
_one_at_a_time = threading.Lock()


@contextmanager
def tuning(wanted: bool = True) -> Iterator[None]:
    """Within the block, this thread's kernels are timed against each other."""
    before, _asked.here = _asked.here, wanted
    try:
        yield
    finally:
        _asked.here = before


def is_wanted() -> bool:
    return _asked.here


def tuned_plan(
    spec: GemmSpec, target: Target, threads: int, make: Callable[[Plan], Program]
) -> Plan | None:
    """The fastest plan of a product, or None where its kind has one plan only.

    `make` gives the program of a plan; it is called for each candidate when nothing is known.
    """
    if not suits(spec, target):
        return None
    known = candidates(spec, target, threads)
    name = recipes.named("tuned", spec, threads, target.cpu, target.features)
    chosen = remembered(name, known)
    if chosen is None:
        with _one_at_a_time:
            chosen = fastest(spec, {label: make(p) for label, p in known.items()})
        object_cache.write(name, json.dumps({"plan": chosen}).encode())
    return known[chosen]


def suits(spec: GemmSpec, target: Target) -> bool:
    """Is it a product whose plan can be varied, and whose operands' sizes are known?"""
    if spec.dtype == "bfloat16" or gemm_dot.suits(spec, target):
        return False
    whole = spec.epilogue is None or spec.epilogue.pointers <= 1
    return whole and min(spec.m, spec.n, spec.k) > 3 and sum(sizes(spec)) < LARGEST


def remembered(name: str, known: dict[str, Plan]) -> str | None:
    content = object_cache.read(name)
    label = None if content is None else json.loads(content)["plan"]
    return label if label in known else None


def candidates(spec: GemmSpec, target: Target, threads: int) -> dict[str, Plan]:
    """Plans by what sets them apart, the usual one first."""
    usual = plan(spec, target, threads)
    found = {"usual": usual}

    def add(label: str, **changes) -> None:
        made = replace(usual, **changes)
        if made not in found.values():
            found[label] = made

    for depth in (usual.depth // 2, usual.depth * 2):
        depth = min(max(16, depth // 16 * 16), spec.k)
        unroll = next(u for u in (4, 2, 1) if depth % u == 0 and spec.k % u == 0)
        add(f"depth {depth}", depth=depth, unroll=unroll)
    panels, across = usual.row_panels, math.ceil(spec.n / usual.columns)
    for grid in ((threads, 1), (1, threads), (2 * threads, 1), (1, 2 * threads),
                 (threads, threads), (4 * threads, 1), (1, 4 * threads)):
        if grid[0] <= panels and grid[1] <= across:
            block = max(1, min(usual.row_block, math.ceil(panels / grid[0])))
            add(f"areas {grid[0]} x {grid[1]}", areas=grid, row_block=block)
    add("half the rows", row_block=max(1, usual.row_block // 2))
    if usual.pack_b:
        most = max(1, target.level2_bytes // 2 // (
            usual.depth * usual.columns * size_of(ELEMENTS[spec.dtype])))
        add("panel by panel", column_block=0)
        add("block of columns", column_block=most)
        add("half a block of columns", column_block=max(1, most // 2))
    return found


def fastest(spec: GemmSpec, programs: dict[str, Program]) -> str:
    """The label of the program with the shortest call; the usual one unless another is clearly
    faster and computes the same."""
    memory = [operands(spec) for _ in range(2)]  # in turn, so that caches hold neither
    wanted = None
    times = dict.fromkeys(programs, math.inf)
    for label, program in programs.items():
        result = outcome(program, memory[0])
        wanted = result if wanted is None else wanted
        if not np.allclose(result, wanted, rtol=1e-3, atol=1e-3):
            del times[label]
    end = time.perf_counter() + SECONDS
    for k in range(ROUNDS):
        for label in times:
            pointers = [a.ctypes.data for a in memory[k % 2]]
            start = time.perf_counter()
            programs[label](*pointers)
            times[label] = min(times[label], time.perf_counter() - start)
        if time.perf_counter() > end:
            break
    best = min(times, key=lambda label: times[label])
    if times[best] > CLEARLY * times["usual"]:
        best = "usual"
    logs.show("time", f"{len(programs)} plans of {spec.m} x {spec.n} x {spec.k} timed: {best}, "
              f"{times[best] * 1e6:.1f} us (usual: {times['usual'] * 1e6:.1f} us)")
    return best


def sizes(spec: GemmSpec) -> list[int]:
    """Bytes of the operands, gaps between rows and batches included."""
    lda, ldb, ldc = spec.strides
    whole = (
        ((spec.k, spec.m) if spec.trans_a else (spec.m, spec.k), lda, spec.batch_a),
        ((spec.n, spec.k) if spec.trans_b else (spec.k, spec.n), ldb, spec.batch_b),
        ((spec.m, spec.n), ldc, spec.batch_c),
    )
    found = []
    for (rows, columns), lead, steps in whole:
        reach = sum((n - 1) * step for n, step in zip(spec.batch, steps))
        found.append((reach + (rows - 1) * lead + columns) * size_of(ELEMENTS[spec.dtype]))
    extra = spec.n * size_of(ELEMENTS[spec.dtype])
    return found + [extra] * (spec.pointers - 3)


def operands(spec: GemmSpec) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    made = []
    for count in sizes(spec):
        a = allocator.allocate(count).view(spec.dtype)
        a[...] = rng.uniform(-1, 1, min(a.size, 4096)).repeat(-(-a.size // 4096))[: a.size] if (
            a.size > 4096) else rng.uniform(-1, 1, a.size)
        made.append(a)
    return made


def outcome(program: Program, memory: list[np.ndarray]) -> np.ndarray:
    """C from a C of zeros."""
    memory[2][...] = 0
    program(*[a.ctypes.data for a in memory])
    return memory[2].copy()
