"""Folds on vectors of accumulators: start, update, merge, and the final value.

An accumulator is a list of values with as many lanes as the loop has; lanes are merged by halves,
in an order that depends on the lane count only, so the result does too.
"""

from __future__ import annotations

from flambeau.codegen.functions import function
from flambeau.codegen.nest.operations import OPERATIONS
from flambeau.codegen.nest.types import highest, is_float, lowest, register_type
from flambeau.codegen.text import Function, Value, constant, lanes_of, vector
from flambeau.core import dtype as dtypes
from flambeau.loops.expr import Expr

FAR = (1 << 63) - 1
_SIMPLE = {
    "add": "add",
    "mul": "mul",
    "max": "max",
    "min": "min",
    "any": "or",
    "all": "and",
    "xor": "xor",
}


class Folding:
    """How one reduce or scan node folds."""

    def __init__(self, f: Function, node: Expr):
        self.f = f
        self.combine, self.given = node.attr
        self.dtype: dtypes.dtype = node.args[0].dtype
        self.is_scan = node.kind == "scan"

    def start(self, lanes: int) -> list[Value]:
        """Accumulators that no value has been folded into."""
        kind = vector(lanes, register_type(self.dtype))
        first = constant(self.first(), kind)
        if self.combine.startswith("arg"):
            return [first, constant(FAR, vector(lanes, "i64"))]
        if self.combine == "welford":
            return [constant(0.0, kind)] * 3
        if self.combine == "logaddexp":
            return [first, constant(0.0, kind)]
        return [first]

    def first(self) -> float | int | bool:
        d = self.dtype
        if self.combine in ("max", "argmax", "logaddexp"):
            return lowest(d)
        if self.combine in ("min", "argmin"):
            return highest(d)
        if self.combine == "all":
            return -1 if d.category == dtypes.INTEGER else 1
        return 1 if self.combine == "mul" else 0

    def update(self, held: list[Value], values: list[Value], mask: Value | None) -> list[Value]:
        """Fold one value a lane into `held`, where the mask is on."""
        if self.combine == "logaddexp":
            new = self.with_exponential(held, values[0])
        else:
            new = self.merge(held, self.lifted(values))
        if mask is None:
            return new
        return [self.f.select(mask, n, h) for n, h in zip(new, held)]

    def lifted(self, values: list[Value]) -> list[Value]:
        """Values as accumulators that hold nothing else."""
        x = values[0]
        if self.combine == "welford" and len(values) == 1:
            return [x, constant(0.0, x.type), constant(1.0, x.type)]
        if self.combine == "logaddexp":
            return [x, constant(1.0, x.type)]
        return values

    def merge(self, a: list[Value], b: list[Value]) -> list[Value]:
        """Two accumulators as one; `a` came first."""
        if self.combine in _SIMPLE:
            return [
                OPERATIONS[_SIMPLE[self.combine]](self.f, self.dtype, [b[0], a[0]][:: self.way()])
            ]
        if self.combine == "welford":
            return self.merged_moments(a, b)
        if self.combine == "logaddexp":
            return self.merged_exponentials(a, b)
        return self.merged_extreme(a, b)

    def way(self) -> int:
        """max and min look at the new value first; sums are written old + new."""
        return 1 if self.combine in ("max", "min") else -1

    def merged_extreme(self, a: list[Value], b: list[Value]) -> list[Value]:
        """The better value; of equals the one with the lower index (scans: the later one)."""
        f, greater = self.f, self.combine == "argmax"
        better = OPERATIONS["gt" if greater else "lt"](f, self.dtype, [b[0], a[0]])
        same = OPERATIONS["eq"](f, self.dtype, [b[0], a[0]])
        if is_float(self.dtype):
            nan_a, nan_b = f.compare("uno", a[0], a[0]), f.compare("uno", b[0], b[0])
            not_a = f.binary("xor", nan_a, constant(True, nan_a.type))
            better = f.binary("or", better, f.binary("and", nan_b, not_a))
            same = f.binary("or", same, f.binary("and", nan_a, nan_b))
        order = same if self.is_scan else f.binary("and", same, f.compare("slt", b[1], a[1]))
        taken = f.binary("or", better, order)
        return [f.select(taken, y, x) for x, y in zip(a, b)]

    def merged_moments(self, a: list[Value], b: list[Value]) -> list[Value]:
        """Means, sums of squared deviations and counts of two parts (Chan, Golub and LeVeque)."""
        f = self.f
        n = f.binary("fadd", a[2], b[2])
        some = f.select(f.compare("oeq", n, 0.0), constant(1.0, n.type), n)
        share = f.binary("fdiv", b[2], some)
        delta = f.binary("fsub", b[0], a[0])
        mean = f.fma(delta, share, a[0])
        between = f.binary("fmul", f.binary("fmul", delta, delta), f.binary("fmul", a[2], share))
        return [mean, f.binary("fadd", f.binary("fadd", a[1], b[1]), between), n]

    def with_exponential(self, held: list[Value], x: Value) -> list[Value]:
        """One more term: whichever is larger has exponential 1, so one exponential is enough."""
        f, (m, s) = self.f, held
        top = OPERATIONS["max"](f, self.dtype, [x, m])
        apart = f.intrinsic("llvm.fabs", x.type, f.binary("fsub", m, x))
        apart = f.select(f.compare("oeq", m, x), constant(0.0, x.type), apart)
        e = function(f, "exp", [f.fneg(apart)])
        grown = f.fma(s, e, constant(1.0, x.type))
        return [top, f.select(f.compare("ogt", x, m), grown, f.binary("fadd", s, e))]

    def merged_exponentials(self, a: list[Value], b: list[Value]) -> list[Value]:
        """log(exp) sums as (maximum, sum scaled by it)."""
        f = self.f
        top = OPERATIONS["max"](f, self.dtype, [a[0], b[0]])
        infinite = OPERATIONS["isinf"](f, self.dtype, [top])
        pivot = f.select(infinite, constant(0.0, top.type), top)
        parts = []
        for m, s in (a, b):
            grown = function(f, "exp", [f.binary("fsub", m, pivot)])
            parts.append(f.select(f.compare("oeq", s, 0.0), s, f.binary("fmul", s, grown)))
        return [top, f.binary("fadd", *parts)]

    def narrowed(self, held: list[Value], lanes: int) -> list[Value]:
        """Merged by halves until `lanes` are left."""
        have = lanes_of(held[0].type)
        if self.combine == "logaddexp" and have > lanes:
            return self.narrowed_exponentials(held, have, lanes)
        while have > lanes:
            half = have // 2
            a, b = self.halves(held, half)
            held, have = self.merge(a, b), half
        return held

    def narrowed_exponentials(self, held: list[Value], have: int, lanes: int) -> list[Value]:
        """The maxima first, then all sums scaled to them at once: one exponential a lane."""
        f, (m, s) = self.f, held
        top = m
        while lanes_of(top.type) > lanes:
            (a,), (b,) = self.halves([top], lanes_of(top.type) // 2)
            top = OPERATIONS["max"](f, self.dtype, [b, a])
        whole = (
            f.splat(top, have)
            if lanes == 1
            else f.shuffle(top, top, [k % lanes for k in range(have)])
        )
        apart = f.select(
            f.compare("oeq", m, whole), constant(0.0, m.type), f.binary("fsub", m, whole)
        )
        s = f.binary("fmul", s, function(f, "exp", [apart]))
        while lanes_of(s.type) > lanes:
            (a,), (b,) = self.halves([s], lanes_of(s.type) // 2)
            s = f.binary("fadd", a, b)
        return [top, s]

    def halves(self, held: list[Value], half: int) -> tuple[list[Value], list[Value]]:
        f = self.f
        if half == 1:
            return [f.extract(h, 0) for h in held], [f.extract(h, 1) for h in held]
        low, high = tuple(range(half)), tuple(range(half, 2 * half))
        return [f.shuffle(h, h, low) for h in held], [f.shuffle(h, h, high) for h in held]

    def finish(self, held: list[Value]) -> list[Value]:
        """What the node's value, or values, are."""
        f = self.f
        if self.combine == "logaddexp":
            top, total = held
            log = f.binary("fadd", top, function(f, "log", [total]))
            plain = OPERATIONS["isinf"](f, self.dtype, [top])
            return [f.select(f.binary("or", plain, f.compare("uno", top, top)), top, log)]
        if self.combine == "welford":
            return held[:2]
        if self.combine.startswith("arg"):
            return [
                held[0],
                f.select(f.compare("eq", held[1], FAR), constant(0, held[1].type), held[1]),
            ]
        return held
