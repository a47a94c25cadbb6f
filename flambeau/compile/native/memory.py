"""Which memory a program's values live in.

Memory that the caller brought stays the caller's. What kernels make and nobody outside can see
lives in one arena, where pieces that are never alive together share bytes; what leaves the program
gets memory of its own in every call, and so does what Python steps make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flambeau.compile.native.calls import Call, Work, uses
from flambeau.compile.native.places import Place
from flambeau.graph import Graph
from flambeau.graph.graph import Value
from flambeau.schedule.memory import Lifetime, offsets


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """arena    where in the arena a piece of memory starts, in bytes
    nbytes   of the arena
    outside  memory that the caller or the graph's constants brought
    """

    places: dict[Value, Place]
    arena: dict[Value, int]
    nbytes: int
    outside: frozenset[Value]

    def in_arena(self, value: Value) -> int | None:
        """Where in the arena the value starts, or None."""
        place = self.places[value]
        start = self.arena.get(place.root)
        return None if start is None else start + place.offset


def planned(graph: Graph, work: Sequence[Work], places: dict[Value, Place]) -> MemoryPlan:
    escaping = {places[v].root for v in graph.outputs}
    inner = [v for w in work if isinstance(w, Call) for v in w.made if v not in escaping]
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for at, piece in enumerate(work):
        for value in uses(piece):
            root = places[value].root
            first.setdefault(root, at)
            last[root] = at
    lives = [Lifetime(v.spec.reach, first[v], last[v]) for v in inner]
    starts, total = offsets(lives)
    outside = frozenset((*graph.inputs, *graph.constants))
    return MemoryPlan(places, dict(zip(inner, starts)), total, outside)
