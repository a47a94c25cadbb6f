"""Which loop becomes vectors: every candidate is costed over the whole kernel.

A load or store along the vector loop costs a fraction when it moves by one element, and about one
cycle an element when it gathers. Work that does not vary along any vector loop is scalar.
"""

from __future__ import annotations

from collections.abc import Iterable

from flambeau.core import dtype as dtypes
from flambeau.ir.node import nodes
from flambeau.loops.affine import affine
from flambeau.loops.expr import Expr
from flambeau.loops.nest import Buf
from flambeau.schedule.cost import cycles, extent, trips
from flambeau.schedule.domain import bound_of, folds, is_index, values_of
from flambeau.schedule.flat import Flat

GATHER = 1.2  # cycles an element
STORE = 1.6  # a store's cycles for a load's
HORIZONTAL = 10.0  # cycles to fold one vector into a scalar


def step(offset: Expr, i: Expr):
    """Elements that the offset moves when `i` moves by one; None when not a fixed number."""
    sums = affine(offset)
    if any(a is not i and i in a.free for a in sums.terms):
        return None
    return sums.coefficient(i)


def accesses(roots: Iterable[Expr]) -> list[Expr]:
    return [n for n in nodes(tuple(roots)) if n.kind in ("at", "at_where")]


def fold_vector(fold: Expr) -> Expr | None:
    """The iterator of a fold that most of its accesses move along by one; None if there is none."""
    best, most = None, 0
    loads = accesses(values_of(fold))
    for r in bound_of(fold):
        units = sum(step(a.args[-1], r) == 1 for a in loads)
        computed = not any(r in a.free for a in loads) and any(r in v.free for v in values_of(fold))
        if units > most or (computed and best is None):
            best, most = r, units
    return best if best is not None and extent(best) >= 2 else None


def vector_loop(flat: Flat, width: int) -> Expr | None:
    """The loop of the kernel to vectorise, or None when only the folds inside should be."""
    barred = {n.args[-1] for n in nodes(tuple(flat.roots())) if n.kind == "scan"}
    for f in folds(flat.roots()):
        for b in bound_of(f):
            barred |= b.attr[1].free if isinstance(b.attr[1], Expr) else set()
    candidates = [None, *[i for i in flat.iters if extent(i) >= 2 and i not in barred]]
    return min(candidates, key=lambda v: (total(flat, v, width), v is None))


def total(flat: Flat, v: Expr | None, width: int) -> float:
    """Cycles of the kernel when loop `v` is vectorised."""
    all_folds = folds(flat.roots())
    inner = {}
    for f in all_folds:
        along = None if v in f.free else fold_vector(f)
        for b in bound_of(f):
            inner[b] = along
    cost = 0.0
    for f in all_folds:
        along = None if v in f.free else fold_vector(f)
        lanes = lanes_for(v if v in f.free else along, width)
        cost += trips(f.free) * trips(bound_of(f)) / lanes
        cost += trips(f.free) * HORIZONTAL if along is not None and v not in f.free else 0
    for node in nodes(tuple(flat.roots())):
        if not is_index(node) and node.kind not in ("reduce", "item", "tuple", "const"):
            cost += node_cost(node, v, inner, width)
    for p in flat.puts:
        cost += STORE * trips(p.iters) * access_cost(p.offset, v if v in p.iters else None, width)
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
