"""Which loop becomes vectors: every candidate is costed over the whole kernel.

A load or store along the vector loop costs a fraction when it moves by one element, and about one
cycle an element when it gathers. Work that does not vary along any vector loop is scalar.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from flambeau.core import dtype as dtypes
from flambeau.ir.node import nodes
from flambeau.loops.affine import affine
from flambeau.loops.expr import Expr
from flambeau.loops.nest import Buf
from flambeau.schedule.cost import cycles, extent, trips
from flambeau.schedule.domain import bound_of, folds, is_index, values_of
from flambeau.schedule.flat import Flat

GATHER = 1.2  # cycles an element
PREFIXES = frozenset(("add", "mul", "max", "min", "any", "all", "xor"))  # scanned lane by lane
TURNED = 1.5  # a vector whose lanes go down in memory
STORE = 1.6  # a store's cycles for a load's
SCAN_LATENCY = 4.0  # cycles from one running value to the next
HORIZONTAL = 10.0  # cycles to fold one vector into a scalar


def step(offset: Expr, i: Expr):
    """Elements that the offset moves when `i` moves by one; None when not a fixed number."""
    sums = affine(offset)
    if any(a is not i and i in a.free for a in sums.terms):
        return None
    return sums.coefficient(i)


def accesses(roots: Iterable[Expr]) -> list[Expr]:
    return [n for n in nodes(tuple(roots)) if n.kind in ("at", "at_where")]


@lru_cache(maxsize=512)
def fold_vector(fold: Expr, width: int = 16) -> Expr | None:
    """The iterator of a fold to vectorise, or None when only folds inside of it should be."""
    values = values_of(fold)
    candidates = [r for r in bound_of(fold) if extent(r) >= 2 and r not in ragged_by(values)]
    costs = {v: cost_of(values, v, width) for v in candidates}
    costs[None] = cost_of(values, None, width)
    least = min(costs.values())
    return next(v for v in (*candidates, None) if costs[v] == least)


@lru_cache(maxsize=512)
def folds_columns(fold: Expr, width: int = 16) -> bool:
    """Is it cheapest to fold neighbouring results at once, one a lane?"""
    along, values = fold_vector(fold, width), values_of(fold)
    if along is None:
        return True
    least = cost_of(values, along, width)
    return any(cost_of(values, i, width) < least for i in fold.free if extent(i) >= 2)


def ragged_by(roots: Iterable[Expr]) -> frozenset:
    """Iterators that the extents of folds depend on: they cannot be vectors."""
    extents = [b.attr[1] for f in folds(roots) for b in bound_of(f)]
    return frozenset().union(*[n.free for n in extents if isinstance(n, Expr)])


def vector_loop(flat: Flat, width: int) -> Expr | None:
    """The loop of the kernel to vectorise, or None when only the folds inside should be."""
    roots = flat.roots()
    scans = [n for n in nodes(tuple(roots)) if n.kind == "scan"]
    barred = ragged_by(roots) | {n.args[-1] for n in scans if n.attr[0] not in PREFIXES}
    candidates = [None, *[i for i in flat.iters if extent(i) >= 2 and i not in barred]]
    return min(candidates, key=lambda v: (total(flat, v, width), v is None))


def total(flat: Flat, v: Expr | None, width: int) -> float:
    """Cycles of the kernel when loop `v` is vectorised."""
    cost = cost_of(flat.roots(), v, width)
    for p in flat.puts:
        along = v if v in p.iters else None
        cost += STORE * trips(p.iters) * access_cost(p.offset, along, width)
    return cost


def cost_of(roots: Iterable[Expr], v: Expr | None, width: int) -> float:
    """Cycles to compute `roots` everywhere, vectors along `v`, or along folds that it leaves."""
    roots = tuple(roots)
    inner: dict[Expr, Expr | None] = {}
    cost = 0.0
    for f in folds(roots):
        along = None if v in f.free else fold_vector(f, width)
        inner.update(dict.fromkeys(bound_of(f), along))
        lanes = lanes_for(v if v in f.free else along, width)
        cost += trips(f.free) * trips(bound_of(f)) / lanes
        if along is not None:
            cost += trips(f.free) * HORIZONTAL
    for node in nodes(roots):
        if not is_index(node) and node.kind not in ("reduce", "item", "tuple", "const"):
            cost += node_cost(node, v, inner, width)
    return cost


def node_cost(node: Expr, v: Expr | None, inner: dict, width: int) -> float:
    along = (
        v
        if v in node.free
        else next(
            (inner[i] for i in node.free if inner.get(i) in node.free and inner.get(i) is not None),
            None,
        )
    )
    if node.kind in ("at", "at_where"):
        return trips(node.free) * access_cost(node.args[-1], along, width)
    if node.kind == "scan":
        each = SCAN_LATENCY if along is None else 8.0 if along is node.args[-1] else 1.0
        return trips(node.free) * each / lanes_for(along, width)
    return trips(node.free) * cycles(node) / lanes_for(along, width)


def lanes_for(along: Expr | None, width: int) -> float:
    """Elements that one vector instruction handles, tails counted."""
    if along is None:
        return 1
    n = extent(along)
    return n / -(-n // width)


def access_cost(offset: Expr, along: Expr | None, width: int) -> float:
    """Cycles an element for one access inside a vector loop over `along`."""
    if along is None:
        return 1.0
    moved = step(offset, along)
    if moved == 1:
        return 1.0 / lanes_for(along, width)
    if moved == -1:
        return TURNED / lanes_for(along, width)
    return 0.5 / width if isinstance(moved, int) and moved == 0 else GATHER


def element_bytes(
    roots: Iterable[Expr], buffers: Iterable[Buf] = (), along: Expr | None = None
) -> int:
    """The widest element that vectors along a loop hold; positions do not count."""
    widths = [1, *[4 if b.dtype.is_narrow_float else b.dtype.itemsize for b in buffers]]
    for node in nodes(tuple(roots)):
        if isinstance(node.dtype, tuple) or is_index(node):
            continue
        if along is not None and along not in node.free:
            continue
        size = node.dtype.itemsize
        if node.dtype.is_narrow_float:
            size = 4  # computed in float32
        if node.kind not in ("const", "check"):
            widths.append(size)
    return max(widths)


def is_complex(d) -> bool:
    return not isinstance(d, tuple) and d.category == dtypes.COMPLEX
