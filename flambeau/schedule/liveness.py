"""Which buffers a list of nests takes from outside, and for how long scratch must live."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from flambeau.ir.node import nodes
from flambeau.loops.expr import Expr
from flambeau.loops.nest import Buf, Nest


def roots_of(nest: Nest) -> tuple[Expr, ...]:
    """Every index and value that a nest computes."""
    return tuple(e for s in nest.stores for e in (*s.index, s.value))


def reads(nest: Nest) -> Iterator[Buf]:
    """Buffers that a nest loads from, by first appearance."""
    for node in nodes(roots_of(nest)):
        if node.kind in ("load", "guarded"):
            yield node.attr


def read_names(nest: Nest) -> frozenset[str]:
    return _read_names(roots_of(nest))


@lru_cache(maxsize=1024)
def _read_names(roots: tuple[Expr, ...]) -> frozenset[str]:
    return frozenset(n.attr.name for n in nodes(roots) if n.kind in ("load", "guarded"))


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
