"""Nests with flat addresses: every access is one offset into its buffer, a sum of iterators.

Views, broadcasting and transposition have become coefficients here, so the passes that follow
(unit loops, splitting, collapsing, ordering) look at nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from flambeau.core import dtype as dtypes
from flambeau.ir.node import postorder
from flambeau.loops.affine import Affine, affine, offset
from flambeau.loops.expr import Expr, apply, cast, const, where
from flambeau.loops.nest import Buf, Nest
from flambeau.loops.substitute import Substitution
from flambeau.schedule.cost import trips

INT64 = dtypes.int64
CACHED_TERMS = 1 << 16  # of a fold that may as well read its row twice


@dataclass(frozen=True, slots=True)
class Put:
    """`buf` at `offset` becomes (or with `combine` absorbs) `value`, for every point of `iters`."""

    buf: Buf
    offset: Expr
    value: Expr
    combine: str | None
    iters: tuple[Expr, ...]

    def __str__(self) -> str:
        sign = f"{self.combine}=" if self.combine else "="
        return f"{self.buf.name}[{self.offset}] {sign} {self.value}"


@dataclass(frozen=True, slots=True)
class Flat:
    """The puts of one kernel; each runs over a part of `iters`."""

    iters: tuple[Expr, ...]
    puts: tuple[Put, ...]

    def roots(self) -> list[Expr]:
        return [e for p in self.puts for e in (p.offset, p.value)]

    def mapped(self, values: dict[Expr, Expr], iters: tuple[Expr, ...]) -> Flat:
        """With iterators replaced by expressions of `iters`; a put runs over those it needs.

        A put keeps the new iterators that its old ones turn into.
        """
        change = Substitution(values, None)
        puts = []
        for p in self.puts:
            wanted = frozenset().union(*[values[i].free if i in values else {i} for i in p.iters])
            puts.append(
                Put(
                    p.buf,
                    tidy(change.of(p.offset)),
                    tidied(change.of(p.value)),
                    p.combine,
                    tuple(i for i in iters if i in wanted),
                )
            )
        return Flat(iters, tuple(puts))


def tidy(index: Expr) -> Expr:
    """An index expression in its shortest form."""
    return affine(index).expression()


def flatten(nests: list[Nest]) -> Flat:
    """Nests over (prefixes of) one domain as one flat kernel."""
    puts = []
    iters = max((n.iters for n in nests), key=len)
    for n in nests:
        for s in n.stores:
            value = flat_value(s.value)
            puts.append(Put(s.buf, offset(s.buf, s.index).expression(), value, s.combine, n.iters))
    puts = [Put(p.buf, flat_value(p.offset), p.value, p.combine, p.iters) for p in puts]
    return Flat(iters, tuple(puts))


def flat_value(e: Expr) -> Expr:
    """`e` with loads at flat offsets, and with folds of several values spelled out."""
    done: dict[Expr, Expr] = {}
    for node in postorder([e]):
        done[node] = flat_node(node, tuple([done[a] for a in node.args]))
    return done[e]


def flat_node(node: Expr, args: tuple) -> Expr:
    if node.kind == "load":
        return Expr.make("at", node.dtype, (offset(node.attr, args).expression(),), node.attr)
    if node.kind == "guarded":
        condition, other, *position = args
        place = offset(node.attr, tuple(position)).expression()
        return Expr.make("at_where", node.dtype, (condition, other, place), node.attr)
    if node.kind == "reduce" and node.attr[1] == 1 and node.attr[0].startswith("arg"):
        value, *iters = args
        return node.make(
            "reduce", node.dtype, (value, linear_index(iters), *iters), (node.attr[0], 2)
        )
    if node.kind == "reduce" and node.attr[0] == "logaddexp" and trips(args[1:]) <= CACHED_TERMS:
        return two_passes(*args)
    if node.kind in ("floordiv", "mod", "check") and node.dtype is INT64:
        return affine(node.with_args(args)).expression()
    return node.with_args(args)


def two_passes(value: Expr, *iters: Expr) -> Expr:
    """log(sum(exp)) of a row in cache: its maximum, then one exponential a term."""
    top = Expr.make("reduce", value.dtype, (value, *iters), ("max", 1))
    odd = apply("isinf", top) | apply("isnan", top)
    pivot = where(odd, 0.0, top)
    total = Expr.make("reduce", value.dtype, (apply("exp", value - pivot), *iters), ("add", 1))
    return where(odd, top, pivot + apply("log", total))


def linear_index(iters: list[Expr]) -> Expr:
    """The row-major number of a point, which argmax and argmin report."""
    total = Affine()
    step = 1
    for i in reversed(iters):
        total = Affine({i: step}).plus(total)
        step = step * i.attr[1]
    return total.expression()


def tidied(e: Expr) -> Expr:
    """`e` with all its index arithmetic in the shortest form."""
    if is_arithmetic(e):
        return tidy(e)
    done: dict[Expr, Expr] = {}
    for node in postorder([e]):
        args = [done[a] for a in node.args]
        if not is_arithmetic(node):
            args = [tidy(a) if is_arithmetic(a) else a for a in args]
        done[node] = node.with_args(tuple(args))
    return done[e]


def is_arithmetic(e: Expr) -> bool:
    return e.kind in ("add", "sub", "mul", "neg", "floordiv", "mod", "check") and e.dtype is INT64


def without_unit_loops(flat: Flat) -> Flat:
    """Iterators of extent 1 are 0; folds over them alone are their value."""
    units = {i: const(0, INT64) for i in flat.iters if i.attr[1] == 1}
    flat = flat.mapped(units, tuple(i for i in flat.iters if i not in units)) if units else flat
    return Flat(
        flat.iters,
        tuple(Put(p.buf, p.offset, folded_units(p.value), p.combine, p.iters) for p in flat.puts),
    )


def folded_units(e: Expr) -> Expr:
    """Unit iterators of folds removed."""
    done: dict[Expr, Expr] = {}
    for node in postorder([e]):
        made = node.with_args(tuple([done[a] for a in node.args]))
        done[node] = fold_without_units(made) if made.kind == "reduce" else made
    return simplified_items(done[e])


def fold_without_units(e: Expr) -> Expr:
    combine, count = e.attr
    bound = e.args[count:]
    units = {i: const(0, INT64) for i in bound if i.attr[1] == 1}
    if not units:
        return e
    values = tuple(tidied(Substitution(units).of(v)) for v in e.args[:count])
    rest = tuple(i for i in bound if i not in units)
    if rest:
        return e.make("reduce", e.dtype, (*values, *rest), e.attr)
    return single(combine, values, e)


def single(combine: str, values: tuple, e: Expr) -> Expr:
    """The fold of one point."""
    if combine in ("any", "all"):
        return cast(cast(values[0], dtypes.bool), e.dtype)
    if combine == "welford" and len(values) == 1:
        return Expr.make("tuple", e.dtype, (values[0], const(0, values[0].dtype)))
    return values[0] if not isinstance(e.dtype, tuple) else Expr.make("tuple", e.dtype, values)


def simplified_items(e: Expr) -> Expr:
    """item(tuple(a, b), k) is its k-th operand."""
    done: dict[Expr, Expr] = {}
    for node in postorder([e]):
        made = node.with_args(tuple([done[a] for a in node.args]))
        if made.kind == "item" and made.args[0].kind == "tuple":
            made = made.args[0].args[made.attr]
        done[node] = made
    return done[e]
