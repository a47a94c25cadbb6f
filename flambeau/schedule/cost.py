"""What operations cost, in cycles of one vector register's worth of work."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from flambeau.loops.affine import bounds
from flambeau.loops.expr import Expr

# Everything not named costs 1. Measured in the middle between latency and throughput on AVX-512.
CYCLES: dict[str, float] = dict(
    const=0,
    iter=0,
    size=0,
    scalar=0,
    item=0,
    tuple=0,
    at=1,
    at_where=1.5,
    div=10,
    sqrt=12,
    rsqrt=20,
    exp=12,
    exp2=11,
    expm1=20,
    log=16,
    log2=17,
    log10=17,
    log1p=24,
    tanh=18,
    sigmoid=24,
    erf=22,
    gelu_slope=22,
    erfc=30,
    sin=24,
    cos=24,
    tan=40,
    pow=60,
    sinh=35,
    cosh=30,
    asin=30,
    acos=30,
    atan=25,
    atan2=35,
    asinh=40,
    acosh=40,
    atanh=40,
    erfinv=60,
    lgamma=300,
    digamma=300,
    floordiv=20,
    mod=24,
    truncdiv=20,
    rem=24,
    hypot=20,
    nextafter=6,
)
UNKNOWN_EXTENT = 1024
CHEAP_TO_REPEAT = 6.0  # below this, computing a value again costs less than keeping it
HERTZ = 3e9


def cycles(e: Expr) -> float:
    return CYCLES.get(e.kind, 1.0)


def extent(i: Expr) -> int:
    """The extent of an iterator; a guess where it is known at run time only."""
    n = i.attr[1]
    if isinstance(n, int):
        return n
    low, high = bounds(n)
    return max(low, min(UNKNOWN_EXTENT, high))


def trips(iters: Iterable[Expr]) -> int:
    return prod(map(extent, iters))


def repeat_cycles(e: Expr, along: Expr | None = None) -> float:
    """Cycles to compute a vector of `e` from loads; folds inside are already there.

    With `along`, only what varies along that loop counts.
    """
    total, seen, pending = 0.0, set(), [e]
    while pending:
        node = pending.pop()
        if node in seen or node.kind == "reduce" or (along is not None and along not in node.free):
            continue
        seen.add(node)
        total += cycles(node)
        if node.kind not in ("at", "at_where"):
            pending.extend(node.args)
    return total
