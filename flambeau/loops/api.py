"""The vocabulary that lowerings are written in.

from flambeau.loops.api import Buf, nest, reduce, where

def mean(x):
    n = x.shape[-1]
    return nest(x.shape[:-1], lambda i: reduce("add", (n,), lambda r: x[i + r]) / n)
"""

from __future__ import annotations

from flambeau.loops.expr import (
    Expr,
    apply,
    binary,
    cast,
    check,
    const,
    guarded,
    index,
    size,
    unary,
    where,
)
from flambeau.loops.nest import Buf, Nest, Store, nest, reduce, scan, store


def Scalar(name: str, dtype) -> Expr:
    """A number passed at run time: use it as any expression."""
    from flambeau.loops.expr import scalar

    return scalar(name, dtype)


def widened(x: Expr) -> Expr:
    """`x` in the dtype in which arithmetic on it is done."""
    return cast(x, x.dtype.wide)


def broadcast(x, place: tuple):
    """The element of `x` that stands at `place` when `x` is broadcast; numbers pass."""
    if not hasattr(x, "shape"):
        return x
    own = place[len(place) - len(x.shape) :]
    return x[tuple(0 if n == 1 and not _is_single(i) else i for n, i in zip(x.shape, own))]


def _is_single(i) -> bool:
    """Is it the variable of a loop that runs once? Kept as it is, so that equal places are seen."""
    return isinstance(i, Expr) and i.kind == "iter" and i.attr[1] == 1


def maximum(x, y) -> Expr:
    """The larger operand; NaN when either is NaN."""
    return apply("max", x, y)


def minimum(x, y) -> Expr:
    """The smaller operand; NaN when either is NaN."""
    return apply("min", x, y)


def equal(x, y) -> Expr:
    """`x == y` (Python's `==` compares the expressions themselves)."""
    return apply("eq", x, y)


def not_equal(x, y) -> Expr:
    return apply("ne", x, y)


__all__ = [
    "Buf",
    "Expr",
    "Nest",
    "Scalar",
    "Store",
    "apply",
    "binary",
    "broadcast",
    "cast",
    "check",
    "const",
    "equal",
    "guarded",
    "index",
    "maximum",
    "minimum",
    "nest",
    "not_equal",
    "reduce",
    "scan",
    "size",
    "store",
    "unary",
    "where",
    "widened",
]
