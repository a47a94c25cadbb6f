"""One kernel planned: nests over one domain become a tree of passes, cut into chunks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from flambeau.ir.node import postorder
from flambeau.loops.expr import Expr
from flambeau.loops.nest import Buf, Nest
from flambeau.schedule.choose import accesses, element_bytes, step, vector_loop
from flambeau.schedule.cost import cycles, extent
from flambeau.schedule.domain import (
    bound_of,
    collapsed,
    folds,
    folds_rearranged,
    is_index,
    meeting_loops,
    ordered,
    scan_loops,
    split_quotients,
)
from flambeau.schedule.flat import Flat, Put, flatten, without_unit_loops
from flambeau.schedule.machine import Machine
from flambeau.schedule.parallel import Chunks, chunks, pass_cycles
from flambeau.schedule.rows import ROW, with_rows
from flambeau.schedule.split import parted
from flambeau.schedule.tree import Builder, Pass

PROLOGUE_CYCLES = 1_000
MOST_TILE = 16
BLOCKS_OF_ROWS = 4  # several lines of every page that a transposition touches
HEAVY_CYCLES = 12  # bodies above this have enough parallel work in one vector


@dataclass(frozen=True, slots=True)
class Plan:
    """Passes to run in order; `chunks` cuts the last (every chunk repeats those before it).

    Without `chunks` the kernel runs on one thread.
    """

    passes: tuple[Pass, ...]
    puts: tuple[Put, ...]  # stores outside of all loops, after the passes
    chunks: Chunks | None

    def __str__(self) -> str:
        return "\n".join([*map(str, self.passes), *map(str, self.puts)])

    def buffers(self) -> dict[str, Buf]:
        """Every buffer read or written, by name, rows on the stack left out."""
        puts = [*self.puts, *[q for p in self.passes for q in p.all_puts()]]
        roots = [e for p in self.passes for e in p.roots()] + [
            e for q in self.puts for e in (q.offset, q.value)
        ]
        found = {n.attr.name: n.attr for n in postorder(roots) if n.kind in ("at", "at_where")}
        found |= {q.buf.name: q.buf for q in puts}
        return {name: b for name, b in found.items() if not name.startswith(ROW)}


def planned(nests: list[Nest], machine: Machine, first_name: int = 0) -> list[Plan]:
    """Nests over (prefixes of) one domain as kernels: one, or more where a fold had to be cut."""
    flats = parted(rearranged(flatten(nests)), first_name)
    return [one_plan(flat, machine) for flat in flats]


def one_plan(flat: Flat, machine: Machine) -> Plan:
    width = machine.vector_bytes // element_bytes(flat.roots(), [p.buf for p in flat.puts])
    vector = vector_loop(flat, max(1, width))
    flat, vector = row_named(ordered(flat, vector), vector)
    passes, puts = Builder(vector).whole(flat.iters, flat.puts)
    outer = with_lanes(with_rows(Pass((), passes, puts)), machine)
    return Plan(outer.body, outer.puts, cut_of(outer, meeting_loops(flat) | scan_loops(flat)))


def cut_of(outer: Pass, ordered_loops: set[Expr]) -> Chunks | None:
    """The cut of the last pass, when all before it is so little that every chunk may repeat it."""
    if not outer.body or outer.puts:
        return None
    *before, main = outer.body
    repeatable = all(not p.all_puts() and pass_cycles(p) < PROLOGUE_CYCLES for p in before)
    return chunks(main, ordered_loops) if repeatable else None


def rearranged(flat: Flat) -> Flat:
    flat = folds_rearranged(without_unit_loops(flat))
    flat = collapsed(ordered(flat))
    parted = split_quotients(flat)
    return flat if parted is flat else collapsed(ordered(parted))


def row_named(flat: Flat, vector: Expr | None) -> tuple[Flat, Expr | None]:
    """The innermost loop under the name of the folds' loop, so that equal values are one node."""
    if not flat.iters:
        return flat, vector
    last, outer = flat.iters[-1], frozenset(flat.iters[:-1])
    inside = [f for f in folds(flat.roots()) if not f.free <= outer]
    barred = {b for f in inside for b in bound_of(f)} | set(flat.iters)
    rows = [
        bound_of(f)[0] for f in folds(flat.roots()) if len(bound_of(f)) == 1 and f.free <= outer
    ]
    same = next((r for r in rows if r.attr[1] == last.attr[1] and r not in barred), None)
    if same is None or scan_loops(flat):
        return flat, vector
    return flat.mapped({last: same}, (*flat.iters[:-1], same)), same if vector is last else vector


def with_lanes(p: Pass, machine: Machine) -> Pass:
    """Vector widths set in every pass."""
    body = tuple(with_lanes(b, machine) for b in p.body)
    if p.vector is None:
        return replace(p, body=body)
    roots = p.roots()
    one = max(
        1, machine.vector_bytes // element_bytes(roots, [q.buf for q in p.all_puts()], p.vector)
    )
    n = p.vector.attr[1]
    if isinstance(n, int) and n < one:
        one = 1 << (n - 1).bit_length()
    tile, staged = transposed_loads(p)
    if tile is not None and one >= 4:
        side = min(one, MOST_TILE)
        blocks = BLOCKS_OF_ROWS if extent(tile) >= BLOCKS_OF_ROWS * side else 1
        return replace(p, lanes=side, tail=side, tile=tile, rows=blocks * side, staged=staged)
    times = 1 if p.scans else unroll(p, roots, machine, one)
    return replace(p, body=body, lanes=one * times, tail=one)


def transposed_loads(p: Pass) -> tuple[Expr | None, tuple[Expr, ...]]:
    """The loop that most of the strided loads are contiguous along, and those loads."""
    if p.folds or p.body or p.scans or p.iters[-1] is not p.vector:
        return None, ()
    best: tuple[Expr | None, tuple[Expr, ...]] = (None, ())
    strided = [a for a in accesses(p.roots()) if a.kind == "at" and is_strided(a, p.vector)]
    for u in p.iters[:-1]:
        found = tuple(a for a in strided if step(a.args[0], u) == 1)
        if len(found) > len(best[1]) and extent(u) >= 4 and extent(p.vector) >= 4:
            best = u, found
    return best


def is_strided(load: Expr, vector: Expr) -> bool:
    moved = step(load.args[0], vector)
    return moved is not None and not (isinstance(moved, int) and moved in (0, 1, -1))


def varying_cycles(roots: list[Expr], along: Expr) -> float:
    """Work of one turn of a vector loop."""
    return sum(
        cycles(n)
        for n in postorder(roots)
        if along in n.free and not is_index(n) and n.kind != "reduce"
    )


def unroll(p: Pass, roots: list[Expr], machine: Machine, one: int) -> int:
    """Vectors that one step handles: enough to hide the latency of folds, as registers allow."""
    heavy = varying_cycles(roots, p.vector) > HEAVY_CYCLES
    folding = len(p.folds) + sum(len(b.folds) for b in p.body)
    most = 2 if heavy else 4
    if folding:
        most = 4 if folding <= 2 else 2
    if machine.registers < 32:
        most = min(most, 2)
    while most > 1 and extent(p.vector) < most * one:
        most //= 2
    return most
