"""The reference interpreter: nests evaluated with NumPy over whole grids, obviously right.

It is the oracle of the code generator. Float folds are done in float64 and rounded once, so a
kernel's result differs from it by rounding only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.bounds import out_of_range
from flambeau.loops.expr import Expr
from flambeau.loops.nest import Nest, Store
from flambeau.loops.reference import OPERATIONS, converted


def interpret(nests: Iterable[Nest] | Nest, arrays: dict[str, np.ndarray], **numbers) -> dict:
    """Run the nests in order on `arrays` (by buffer name) and return them with what was written.

    `numbers` gives runtime scalars and sizes by name. Buffers that are missing are allocated.
    """
    arrays = dict(arrays)
    for nest in [nests] if isinstance(nests, Nest) else nests:
        Evaluation(arrays, numbers).run(nest)
    return arrays


class Evaluation:
    """One nest on one set of arrays.

    Each value is an array over the open iterators, outermost first; dimensions that it does not
    depend on have length 1, and trailing ones are dropped.
    """

    def __init__(self, arrays: dict[str, np.ndarray], numbers: dict[str, Any]):
        self.arrays = arrays
        self.numbers = numbers
        self.open: list[Expr] = []
        self.memo: dict[Expr, Any] = {}

    def run(self, nest: Nest) -> None:
        self.open = list(nest.iters)
        self.extents = [self.extent(i) for i in nest.iters]
        pending = [self.values(s) for s in nest.stores]
        for s, (position, value) in zip(nest.stores, pending):
            self.write(s, position, value)

    def extent(self, iterator: Expr) -> int:
        n = iterator.attr[1]
        return n if isinstance(n, int) else int(self.value(n))

    def values(self, s: Store) -> tuple[tuple, np.ndarray]:
        """The store's index arrays and values, all over the whole domain."""
        whole = tuple(self.extents)
        parts = [np.broadcast_to(self.lifted(e), whole) for e in (*s.index, s.value)]
        return tuple(parts[:-1]), parts[-1].copy()

    def write(self, s: Store, position: tuple, value: np.ndarray) -> None:
        target = self.arrays.get(s.buf.name)
        if target is None:
            target = np.zeros([self.number(n) for n in s.buf.shape], s.buf.dtype.numpy)
            self.arrays[s.buf.name] = target
        if value.size == 0:
            return
        in_bounds(s.buf, position, target.shape)
        if s.combine is None:
            target[position] = value
        else:
            fold_at(s.combine, target, position, value)

    def number(self, n) -> int:
        return n if isinstance(n, int) else int(self.value(n))

    def lifted(self, e: Expr) -> np.ndarray:
        """The value with one dimension for each open iterator."""
        x = self.value(e)
        return x.reshape(x.shape + (1,) * (len(self.open) - x.ndim))

    def value(self, e: Expr) -> Any:
        found = self.memo.get(e)
        if found is None:
            found = self.memo[e] = self.compute(e)
        return found

    def compute(self, e: Expr) -> Any:
        match e.kind:
            case "const":
                return np.asarray(e.attr, e.dtype.numpy)
            case "iter":
                at = self.open.index(e)
                return np.arange(self.extents[at], dtype=np.int64).reshape((1,) * at + (-1,))
            case "size" | "scalar":
                name = e.attr if e.kind == "scalar" else e.attr[0]
                return np.asarray(self.numbers[name], e.dtype.numpy)
            case "load":
                return self.loaded(e.attr, e.args)
            case "guarded":
                return self.guarded(e)
            case "cast":
                return converted(self.value(e.args[0]), e.args[0].dtype, e.dtype)
            case "check":
                return self.checked(e)
            case "where":
                return np.where(*map(self.lifted, e.args))
            case "reduce":
                return self.reduced(e)
            case "scan":
                return self.scanned(e)
            case "item":
                return self.value(e.args[0])[e.attr]
        with np.errstate(all="ignore"):
            result = OPERATIONS[e.kind](*map(self.lifted, e.args))
        return np.asarray(result).astype(e.dtype.numpy, copy=False)

    def loaded(self, buf, index: tuple) -> np.ndarray:
        array = self.arrays[buf.name]
        position = tuple(np.broadcast_arrays(*map(self.lifted, index))) if index else ()
        if index and position[0].size:
            in_bounds(buf, position, array.shape)
        elif index:
            return np.zeros(position[0].shape, array.dtype)
        return np.asarray(array[position])

    def guarded(self, e: Expr) -> np.ndarray:
        array = self.arrays[e.attr.name]
        condition, other, *position = np.broadcast_arrays(*map(self.lifted, e.args))
        if array.size == 0:
            return other.copy()
        inside = [np.where(condition, p, 0) for p in position]
        in_bounds(e.attr, inside, array.shape)
        return np.where(condition, array[tuple(inside)], other)

    def checked(self, e: Expr) -> np.ndarray:
        op, wrap = e.attr
        at, n = map(self.lifted, e.args)
        result = np.where(at < 0, at + n, at) if wrap else at
        bad = (result < 0) | (result >= n)
        if bad.any():
            index = np.broadcast_to(at, bad.shape)[bad][0]
            raise out_of_range(op, int(index), int(n.max()))
        return result

    def reduced(self, e: Expr) -> Any:
        value, *iters = e.args
        self.open += iters
        self.extents += [self.extent(i) for i in iters]
        rank = len(self.open) - len(iters)
        x = self.lifted(value)
        x = np.broadcast_to(x, x.shape[:rank] + tuple(self.extents[rank:]))
        flat = x.reshape(*x.shape[:rank], int(np.prod(x.shape[rank:])))
        self.close(rank, iters)
        return trimmed(fold(e.attr[0], flat, value.dtype), rank)

    def close(self, rank: int, iters: list[Expr]) -> None:
        del self.open[rank:], self.extents[rank:]
        gone = set(iters)
        self.memo = {k: outside(v, rank) for k, v in self.memo.items() if not gone & k.free}

    def scanned(self, e: Expr) -> Any:
        value, along = e.args
        axis = self.open.index(along)
        x = self.lifted(value)
        shape = list(x.shape)
        shape[axis] = self.extents[axis]
        return accumulate(e.attr[0], np.broadcast_to(x, shape), axis, value.dtype)


def in_bounds(buf, position, shape) -> None:
    """Our own invariant: a lowering never reads or writes outside of a buffer."""
    for p, n in zip(position, shape):
        assert p.size == 0 or (p.min() >= 0 and p.max() < n), f"{buf} is indexed out of bounds"


def outside(x: Any, rank: int) -> Any:
    """A value that a fold has needed, without the dimensions of the fold's iterators."""
    if isinstance(x, tuple):
        return tuple(outside(v, rank) for v in x)
    return x.reshape(x.shape[:rank])


def trimmed(x: Any, rank: int) -> Any:
    return tuple(x) if isinstance(x, list) else x


def wide(x: np.ndarray, d: dtypes.dtype) -> np.ndarray:
    """Floats in float64, where a fold rounds least."""
    return x.astype(np.float64) if d.category == dtypes.FLOAT else x


EXTREME = dict(max=np.maximum, min=np.minimum, argmax=np.maximum, argmin=np.minimum)


def identity(combine: str, d: dtypes.dtype):
    """The value that folding starts from."""
    if combine in ("add", "any", "xor", "welford"):
        return d.numpy.type(0)
    if combine in ("mul", "all"):
        return d.numpy.type(1)
    lowest = combine in ("max", "argmax", "logaddexp")
    if d.category == dtypes.FLOAT:
        return d.numpy.type(-np.inf if lowest else np.inf)
    if d.category == dtypes.BOOL:
        return np.bool_(not lowest)
    limits = np.iinfo(d.numpy)
    return d.numpy.type(limits.min if lowest else limits.max)


def fold(combine: str, x: np.ndarray, d: dtypes.dtype) -> Any:
    """Fold the last axis of `x`."""
    kind = d.numpy
    if combine in EXTREME and x.shape[-1] == 0:
        first = np.full(x.shape[:-1], identity(combine, d), kind)
        return [first, np.zeros(x.shape[:-1], np.int64)] if combine.startswith("arg") else first
    with np.errstate(all="ignore"):
        match combine:
            case "add":
                return (
                    wide(x, d)
                    .sum(-1, dtype=None if d.category == dtypes.FLOAT else kind)
                    .astype(kind)
                )
            case "mul":
                return (
                    wide(x, d)
                    .prod(-1, dtype=None if d.category == dtypes.FLOAT else kind)
                    .astype(kind)
                )
            case "any":
                return (x != 0).any(-1).astype(kind)
            case "all":
                return (x != 0).all(-1).astype(kind)
            case "xor":
                return np.bitwise_xor.reduce(x, -1)
            case "max" | "min":
                return EXTREME[combine].reduce(wide(x, d), -1).astype(kind)
            case "argmax" | "argmin":
                return arg_extreme(combine, x, d)
            case "welford":
                mean = wide(x, d).mean(-1, keepdims=True)
                return [mean[..., 0].astype(kind), ((wide(x, d) - mean) ** 2).sum(-1).astype(kind)]
            case "logaddexp":
                return np.logaddexp.reduce(wide(x, d), -1).astype(kind)
    raise AssertionError(combine)


def arg_extreme(combine: str, x: np.ndarray, d: dtypes.dtype) -> list[np.ndarray]:
    w = wide(x, d)
    at = (np.argmax if combine == "argmax" else np.argmin)(w, -1)
    return [np.take_along_axis(x, at[..., None], -1)[..., 0], at.astype(np.int64)]


def accumulate(combine: str, x: np.ndarray, axis: int, d: dtypes.dtype) -> Any:
    """Inclusive fold along `axis`."""
    kind = d.numpy
    w = wide(x, d)
    with np.errstate(all="ignore"):
        match combine:
            case "add":
                return np.add.accumulate(w, axis, dtype=w.dtype).astype(kind)
            case "mul":
                return np.multiply.accumulate(w, axis, dtype=w.dtype).astype(kind)
            case "max" | "min":
                return EXTREME[combine].accumulate(w, axis).astype(kind)
            case "any":
                return np.logical_or.accumulate(x, axis)
            case "all":
                return np.logical_and.accumulate(x, axis)
            case "xor":
                return np.bitwise_xor.accumulate(x, axis)
            case "logaddexp":
                return np.logaddexp.accumulate(w, axis).astype(kind)
            case "argmax" | "argmin":
                best = EXTREME[combine].accumulate(w, axis)
                at = np.arange(w.shape[axis]).reshape(
                    [-1 if a == axis else 1 for a in range(w.ndim)]
                )
                hit = (w == best) | (np.isnan(w) if d.category == dtypes.FLOAT else False)
                return (best.astype(kind), np.maximum.accumulate(np.where(hit, at, 0), axis))
    raise AssertionError(combine)


def fold_at(combine: str, target: np.ndarray, position: tuple, value: np.ndarray) -> None:
    """target[position] op= value, meeting points folded in row-major order."""
    ufunc = dict(add=np.add, mul=np.multiply, max=np.maximum, min=np.minimum)[combine]
    if target.dtype.kind == "V" or target.dtype.name in ("bfloat16", "float16"):
        total = target.astype(np.float32)
        ufunc.at(total, position, value.astype(np.float32))
        target[...] = total.astype(target.dtype)
    else:
        ufunc.at(target, position, value)
