"""Which nests run as one kernel."""

from __future__ import annotations

from flambeau.loops.nest import Nest
from flambeau.schedule.machine import Machine


def fused(nests: tuple[Nest, ...], outside: tuple[str, ...], machine: Machine) -> tuple[tuple[Nest, ...], ...]:
    """Groups of nests, each one kernel."""
    return tuple((n,) for n in nests)
