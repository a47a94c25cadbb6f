"""Which buffers a list of nests takes from outside, and for how long scratch must live."""

from __future__ import annotations

from collections.abc import Iterator

from flambeau.ir.node import nodes
from flambeau.loops.nest import Buf, Nest


def reads(nest: Nest) -> Iterator[Buf]:
    """Buffers that a nest loads from, by first appearance."""
    for node in nodes(tuple(e for s in nest.stores for e in (*s.index, s.value))):
        if node.kind in ("load", "guarded"):
            yield node.attr


def externals(nests: tuple[Nest, ...]) -> tuple[str, ...]:
    """Buffers read before they are written, then those written and not read afterwards."""
    inputs: dict[str, None] = {}
    last_read: dict[str, int] = {}
    written: dict[str, int] = {}
    for at, n in enumerate(nests):
        for b in reads(n):
            last_read[b.name] = at
            if b.name not in written:
                inputs[b.name] = None
        for s in n.stores:
            if s.combine is not None and s.buf.name not in written:
                inputs[s.buf.name] = None
            written[s.buf.name] = at
    produced = [
        name for name, at in written.items() if name not in inputs and last_read.get(name, -1) <= at
    ]
    return (*inputs, *produced)
