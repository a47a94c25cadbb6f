"""Reductions as loop nests: one fold per output element."""

from __future__ import annotations

import math
from collections.abc import Callable

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import dtype as DType
from flambeau.loops.api import cast, equal, nest, reduce, unary
from flambeau.loops.api import where as select


def place(i: tuple, r: tuple, rank: int, dim: tuple[int, ...], keepdim: bool) -> tuple:
    """The operand's index at output index `i` and position `r` in the folded dimensions."""
    kept = iter(i if not keepdim else [v for d, v in enumerate(i) if d not in dim])
    folded = iter(r)
    return tuple(next(folded) if d in dim else next(kept) for d in range(rank))


def fold(combine: str, x, i: tuple, dim: tuple[int, ...], keepdim: bool, of: Callable):
    """reduce(combine) of `of(element)` over `dim`, at output index i."""
    rank = len(x.shape)
    return reduce(combine, tuple(x.shape[d] for d in dim),
                  lambda r: of(x[place(i, r, rank, dim, keepdim)]))


def unsupported(outs, x, dim) -> bool:
    """Nothing to fold, or a dtype that the loop language has no arithmetic for."""
    return not dim or x.dtype.is_complex or any(out.dtype.is_complex for out in outs)


def folding(combine: str, of: Callable = lambda x: x, finish: Callable = lambda value, n: value):
    """A `lower` rule: fold `of(x)` over dim in the accumulation dtype, then `finish(value, n)`."""

    def lower(outs, x, *, dim, keepdim, dtype: DType | None = None):
        if unsupported(outs, x, dim):
            return None
        n = math.prod(x.shape[d] for d in dim)
        kind = (dtype or x.dtype).wide
        return nest(outs[0].shape, lambda i: finish(
            fold(combine, x, i, dim, keepdim, lambda v: of(cast(v, kind))), n), out=outs[0])

    return lower


def logical_lower(combine: str):
    def lower(outs, x, *, dim, keepdim):
        if unsupported(outs, x, dim):
            return None
        return nest(outs[0].shape, lambda i: fold(
            combine, x, i, dim, keepdim, lambda v: cast(v, dtypes.bool)), out=outs[0])

    return lower


def position_lower(combine: str):
    """argmax and argmin: of one dimension, or (None) of all in row-major order."""

    def lower(outs, x, *, dim, keepdim):
        dims = tuple(range(len(x.shape))) if dim is None else (dim,)
        if unsupported(outs, x, dims):
            return None
        return nest(outs[0].shape, lambda i: fold(
            combine, x, i, dims, keepdim, lambda v: v)[1], out=outs[0])

    return lower


def line_extremum_lower(combine: str):
    """(values, positions) along one dimension."""

    def lower(outs, x, *, dim, keepdim):
        if not x.shape or x.dtype.is_complex:
            return None
        return nest(outs[0].shape, lambda i: tuple(fold(
            combine, x, i, (dim,), keepdim, lambda v: v)), out=tuple(outs))

    return lower


def var_lower(outs, x, *, dim, correction, keepdim):
    """Welford's recurrence: mean and squared deviations in one pass."""
    if unsupported(outs, x, dim):
        return None
    n = math.prod(x.shape[d] for d in dim)
    kind = x.dtype.wide
    return nest(outs[0].shape, lambda i: fold(
        "welford", x, i, dim, keepdim, lambda v: cast(v, kind))[1] / float(max(n - correction, 0)),
        out=outs[0])


def norm_lower(outs, x, *, ord, dim, keepdim, dtype: DType):
    if unsupported(outs, x, dim):
        return None
    kind = dtype.wide
    size = dict(keepdim=keepdim, dtype=kind)

    def of(x):
        return unary("abs", x)

    if ord == 2:
        return folding("add", lambda x: x * x, lambda v, n: unary("sqrt", v))(
            outs, x, dim=dim, **size)
    if ord == 1:
        return folding("add", of)(outs, x, dim=dim, **size)
    if ord == math.inf:
        return folding("max", of)(outs, x, dim=dim, **size)
    return None


def logsumexp_lower(outs, x, *, dim, keepdim):
    """The largest term is taken out where it is finite."""
    if unsupported(outs, x, dim):
        return None
    kind = x.dtype.wide

    def body(i):
        top = fold("max", x, i, dim, keepdim, lambda v: cast(v, kind))
        top = select(equal(top - top, 0), top, 0)
        total = fold("add", x, i, dim, keepdim, lambda v: unary("exp", cast(v, kind) - top))
        return top + unary("log", total)

    return nest(outs[0].shape, body, out=outs[0])
