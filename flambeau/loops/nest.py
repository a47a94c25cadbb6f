"""Buffers, and loop nests that store to them, traced from Python functions of the indices.

A nest runs its stores for every point of its domain. Apart from stores with a `combine`, no point
reads what another point of the same nest writes, so points may run in any order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, ShapeError, complaint
from flambeau.loops.expr import Expr, cast, const, dtype_of, index, item, iterator, load

# combine -> the number of values that a fold carries for each value it is given
COMBINES = dict(
    add=1, mul=1, max=1, min=1, any=1, all=1, xor=1, argmax=2, argmin=2, welford=2, logaddexp=1
)


class Buf:
    """Typed memory with a shape and strides (both in elements). Equal when all four agree."""

    __slots__ = ("name", "shape", "strides", "dtype", "_key", "_hash")

    def __init__(self, name: str, shape: tuple, strides: tuple | None = None, dtype="float32"):
        if isinstance(strides, (str, dtypes.dtype)):
            strides, dtype = None, strides
        self.name = name
        self.shape = tuple(shape)
        self.strides = contiguous(self.shape) if strides is None else tuple(strides)
        self.dtype = dtype_of(dtype)
        self._key = (name, self.shape, self.strides, self.dtype)
        self._hash = hash(self._key)
        if len(self.strides) != len(self.shape):
            raise ShapeError(
                complaint(
                    "Buf",
                    "one stride a dimension is needed",
                    dict(shape=self.shape, strides=self.strides),
                )
            )

    def __getitem__(self, position) -> Expr:
        """The element at `position`, one index a dimension."""
        position = position if isinstance(position, tuple) else (position,)
        if len(position) != len(self.shape):
            raise ShapeError(
                complaint(
                    "load",
                    "one index a dimension is needed",
                    dict(buffer=self.name, shape=self.shape, indices=len(position)),
                    "Use `.at` to broadcast.",
                )
            )
        return load(self, position)

    def at(self, position: tuple) -> Expr:
        """The element that `position` of a larger shape sees of this buffer broadcast to it."""
        own = position[len(position) - len(self.shape) :] if self.shape else ()
        return self[tuple(const(0, "int64") if n == 1 else i for n, i in zip(self.shape, own))]

    @property
    def is_contiguous(self) -> bool:
        return self.strides == contiguous(self.shape)

    def renamed(self, name: str) -> Buf:
        return Buf(name, self.shape, self.strides, self.dtype)

    def __eq__(self, other) -> bool:
        return self is other or (isinstance(other, Buf) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        laid = "" if self.is_contiguous else "{" + ", ".join(map(str, self.strides)) + "}"
        return f"{self.name}: {self.dtype.name}[{', '.join(map(str, self.shape))}]{laid}"


def contiguous(shape: tuple) -> tuple:
    """Row-major strides, in elements."""
    strides: list = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step = step * (max(n, 1) if isinstance(n, int) else n)
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class Store:
    """`buf[index] = value`; with `combine` (add, mul, max, min) value is folded into it."""

    buf: Buf
    index: tuple[Expr, ...]
    value: Expr
    combine: str | None = None


@dataclass(frozen=True, slots=True)
class Nest:
    """`stores`, for every point of the domain spanned by `iters`."""

    iters: tuple[Expr, ...]
    stores: tuple[Store, ...]
    source: object = field(default=None, compare=False)  # user's line, for errors only

    @property
    def shape(self) -> tuple:
        return tuple(i.attr[1] for i in self.iters)

    @property
    def outs(self) -> tuple[Buf, ...]:
        """The buffers written, in order."""
        return tuple(dict.fromkeys(s.buf for s in self.stores))

    @property
    def out(self) -> Buf:
        """The only buffer written."""
        (buf,) = self.outs
        return buf

    def __getitem__(self, position) -> Expr:
        return self.out[position]

    def at(self, position: tuple) -> Expr:
        return self.out.at(position)

    def __str__(self) -> str:
        from flambeau.loops.text import nest_text

        return nest_text(self)


def nest(shape: tuple, body: Callable, out="out", dtype=None) -> Nest:
    """Trace `body(indices)` over `shape`.

    The body returns an expression, several in a tuple, or `store(...)`s. Expressions go to `out`:
    a Buf (or one for each), or a name for a fresh contiguous buffer of that shape. `dtype`
    converts.
    """
    iters = tuple(iterator(f"i{d}", n) for d, n in enumerate(shape))
    result = body(iters)
    results = result if isinstance(result, tuple) else (result,)
    targets = out if isinstance(out, tuple) else (out,) * len(results)
    stores = []
    for k, r in enumerate(results):
        if isinstance(r, Store):
            stores.append(r)
            continue
        name = targets[k]
        if isinstance(name, str) and len(results) > 1 and not isinstance(out, tuple):
            name = f"{name}{k}"
        stores.append(result_store(name, tuple(shape), iters, r, dtype))
    return Nest(iters, tuple(stores))


def result_store(target, shape: tuple, iters: tuple, value: Expr, dtype) -> Store:
    """The store of a body's value at its own point."""
    if isinstance(target, str):
        target = Buf(target, shape, None, dtype or value.dtype)
    if len(target.shape) != len(iters):
        raise ShapeError(
            complaint(
                "nest",
                "the output must have the rank of the domain",
                dict(out=target.shape, domain=shape),
            )
        )
    return Store(target, iters, cast(value, target.dtype))


def store(buf: Buf, position: tuple, value: Expr, combine: str | None = None) -> Store:
    """A store at a computed place. Several points may meet at one place only with `combine`."""
    if combine not in (None, "add", "mul", "max", "min"):
        raise OpError(
            complaint("store", "combine must be None, add, mul, max or min", dict(combine=combine))
        )
    return Store(buf, tuple(map(index, position)), cast(value, buf.dtype), combine)


class _Open(threading.local):
    """How many reduction iterators are open in this thread's trace: names must not collide."""

    count = 0


_open = _Open()


def reduce(combine: str, extents: tuple, body: Callable):
    """Fold `body(r)` over `extents` from the identity of `combine`.

    add, mul, max, min (NaN wins), xor: the folded value; any, all: a bool. argmax, argmin: (value,
    index), the first linear index over `extents`, NaN winning. welford: (mean, sum of squared
    deviations). logaddexp: log of the sum of exp.
    """
    carried = carried_values(combine)
    extents = extents if isinstance(extents, tuple) else (extents,)
    first = _open.count
    iters = tuple(iterator(f"r{first + d}", n) for d, n in enumerate(extents))
    _open.count += len(iters)
    try:
        value = body(iters)
    finally:
        _open.count = first
    return folded("reduce", combine, value, iters, carried)


def carried_values(combine: str) -> int:
    if combine not in COMBINES:
        raise OpError(
            complaint(
                "reduce", f"combine must be one of {', '.join(COMBINES)}", dict(combine=combine)
            )
        )
    return COMBINES[combine]


def folded(kind: str, combine: str, value: Expr, iters: tuple, carried: int):
    """The reduce or scan node, taken apart when it carries several values."""
    if combine in ("any", "all"):
        value = cast(value, dtypes.bool)
    if carried == 1:
        return Expr.make(kind, value.dtype, (value, *iters), (combine, 1))
    second = dtypes.int64 if combine.startswith("arg") else value.dtype
    whole = Expr.make(kind, (value.dtype, second), (value, *iters), (combine, 1))
    return item(whole, 0), item(whole, 1)


def scan(combine: str, along: Expr, value: Expr):
    """Inclusive fold of `value` over the values that the iterator `along` has had so far.

    As `reduce`; argmax and argmin keep the latest of equal values, as cummax does.
    """
    return folded("scan", combine, value, (along,), carried_values(combine))


def count_of(extents: tuple):
    """The number of points of a domain, an int where all extents are."""
    return prod(extents) if all(isinstance(n, int) for n in extents) else _product(extents)


def _product(extents: tuple) -> Expr:
    total: Expr | int = 1
    for n in extents:
        total = total * n
    return total
