"""How a kernel's outermost loops are cut into chunks for the thread pool.

The cut depends on sizes only, never on the number of threads, so results do not either.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from flambeau.ir.node import postorder
from flambeau.loops.expr import Expr
from flambeau.schedule.choose import is_index, lanes_for
from flambeau.schedule.cost import HERTZ, cycles, extent, trips
from flambeau.schedule.tree import Pass

CHUNK_CYCLES = 30_000  # about 10 us
MOST_CHUNKS = 128
BEYOND_CACHE = 2.0  # cycles that a vector of memory waits, more than from the nearest cache


@dataclass(frozen=True, slots=True)
class Chunks:
    """One chunk is one value of the loops before the last of `iters`, and `block` of the last.

    `step_cycles` is the work of one step of the last loop.
    """

    iters: tuple[Expr, ...]
    block: int
    step_cycles: float

    def nanoseconds_per_step(self) -> float:
        return self.step_cycles / HERTZ * 1e9


def pass_cycles(p: Pass) -> float:
    """Work of one run of a pass, in cycles."""
    inside = sum(pass_cycles(b) for b in p.body)
    own = [e for q in p.puts for e in (q.offset, q.value)] + [v for f in p.folds for v in f.values]
    nodes = [n for n in postorder(own) if not is_index(n) and n.kind != "reduce"]
    opened = set(p.iters)
    accesses = len(p.puts) + sum(n.kind in ("at", "at_where") for n in nodes if n.free & opened)
    points = sum(cycles(n) for n in nodes if n.free & opened) + len(p.puts) + len(p.folds)
    points += BEYOND_CACHE * accesses
    lanes = lanes_for(p.vector, p.tail) if p.vector is not None else 1
    return trips(p.iters) / lanes * (inside + points + 2)


def chunks(p: Pass, ordered: set[Expr]) -> Chunks | None:
    """The cut of a pass, or None when it cannot be cut; loops in `ordered` are not cut."""
    if p.folds or not p.iters:
        return None
    scanned = ordered | {s.args[-1] for s in p.scans}
    total = pass_cycles(p)
    grain = max(CHUNK_CYCLES, total / MOST_CHUNKS)
    taken: list[Expr] = []
    for i in p.iters:
        if i in scanned:
            break
        taken.append(i)
        step = total / max(1, trips(taken))
        if i in (p.vector, p.tile) or step <= grain or i is p.iters[-1]:
            break
        following = p.iters[p.iters.index(i) + 1]
        if extent(i) >= 64 or following in scanned or not isinstance(following.attr[1], int):
            break
    if not taken:
        return None
    step = total / max(1, trips(taken))
    block = max(1, ceil(grain / max(step, 1e-9)))
    unit = p.lanes if taken[-1] is p.vector else p.rows if taken[-1] is p.tile else 1
    return Chunks(tuple(taken), even(block, extent(taken[-1]), unit), step)


def even(block: int, whole: int, unit: int) -> int:
    """At most about `block`, in whole units, so that the blocks of `whole` are of one size."""
    count = max(1, ceil(whole / block))
    return max(1, ceil(whole / count / unit)) * unit


def chunk_count(c: Chunks) -> int | None:
    """The number of chunks where extents are known."""
    sizes = [i.attr[1] for i in c.iters]
    if not all(isinstance(n, int) for n in sizes):
        return None
    return prod(sizes[:-1]) * -(-sizes[-1] // c.block)
