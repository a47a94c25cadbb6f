"""Index arithmetic as sums: `constant + sum of coefficient * atom`.

An atom is an iterator or any int64 expression that is not itself a sum (a quotient, a loaded
index). Coefficients and the constant are ints, or expressions of sizes known at run time only.
Division and remainder by a constant are carried out where ranges prove that they leave nothing
behind, so views of views come out as plain strides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from flambeau.core import dtype as dtypes
from flambeau.loops.expr import Expr, const

Number = int | Expr
FAR = 2**62


def number(e: Expr) -> Number:
    return e.attr if e.kind == "const" else e


def plus(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a is b or not (a == 0 or b == 0):
        return a + b
    return b if isinstance(a, int) and a == 0 else a


def times(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    for x, y in ((a, b), (b, a)):
        if isinstance(x, int) and x in (0, 1):
            return y if x else 0
    if isinstance(a, int):
        return b * a
    return a * b


@dataclass(frozen=True)
class Affine:
    """`constant + sum(coefficient * atom)`; no coefficient is 0."""

    terms: dict[Expr, Number] = field(default_factory=dict)
    constant: Number = 0

    def plus(self, other: Affine) -> Affine:
        terms = dict(self.terms)
        for atom, k in other.terms.items():
            total = plus(terms.get(atom, 0), k)
            if isinstance(total, int) and total == 0:
                terms.pop(atom, None)
            else:
                terms[atom] = total
        return Affine(terms, plus(self.constant, other.constant))

    def scaled(self, k: Number) -> Affine:
        if isinstance(k, int) and k == 0:
            return Affine()
        return Affine({a: times(c, k) for a, c in self.terms.items()}, times(self.constant, k))

    def coefficient(self, atom: Expr) -> Number:
        return self.terms.get(atom, 0)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def expression(self) -> Expr:
        """The sum as an expression, in the order of its terms."""
        total: Number = 0
        for atom, k in self.terms.items():
            total = plus(total, times(atom, k))
        total = plus(total, self.constant)
        return total if isinstance(total, Expr) else const(total, dtypes.int64)

    def bounds(self) -> tuple[int, int]:
        """The least and greatest value, as far as the atoms' ranges tell."""
        low = high = 0
        for part, k in (*self.terms.items(), (None, self.constant)):
            a, b = (1, 1) if part is None else bounds(part)
            c, d = (k, k) if isinstance(k, int) else bounds(k)
            corners = (a * c, a * d, b * c, b * d)
            low, high = low + min(corners), high + max(corners)
        return max(low, -FAR), min(high, FAR)


@lru_cache(maxsize=1 << 14)
def affine(e: Expr) -> Affine:
    """`e` as a sum of atoms, quotients and remainders simplified."""
    match e.kind:
        case "const":
            return Affine({}, e.attr)
        case "size":
            return Affine({}, e)
        case "iter":
            return Affine({e: 1})
        case "add":
            return affine(e.args[0]).plus(affine(e.args[1]))
        case "sub":
            return affine(e.args[0]).plus(affine(e.args[1]).scaled(-1))
        case "neg":
            return affine(e.args[0]).scaled(-1)
        case "mul":
            return product(e)
        case "floordiv" | "mod":
            return divided(e)
        case "check":
            return checked(e)
        case "min" | "max" if e.dtype is dtypes.int64:
            return extreme(e)
    if not e.free and depends_on_sizes_only(e):
        return Affine({}, e)
    return Affine({e: 1})


def depends_on_sizes_only(e: Expr) -> bool:
    return (
        e.kind in ("size", "const")
        or bool(e.args)
        and e.dtype is dtypes.int64
        and all(depends_on_sizes_only(a) for a in e.args)
    )


def product(e: Expr) -> Affine:
    left, right = map(affine, e.args)
    for a, b in ((left, right), (right, left)):
        if b.is_constant:
            return a.scaled(b.constant)
    rebuilt = left.expression() * right.expression()
    return Affine({rebuilt: 1})


def divided(e: Expr) -> Affine:
    """a // c and a % c for constant c > 0: multiples of c leave, the rest may be provably small."""
    a, b = map(affine, e.args)
    c = b.constant
    quotient = e.kind == "floordiv"
    if not (b.is_constant and isinstance(c, int) and c > 0):
        if a.is_constant and b.is_constant:
            return Affine({}, e)
        return Affine({Expr.make(e.kind, e.dtype, (a.expression(), b.expression())): 1})
    whole, rest = split_multiples(a, c)
    low, high = rest.bounds()
    if low >= 0 and high < c:
        return whole if quotient else rest
    inner = rest.expression()
    if inner.kind == "const":
        value = inner.attr // c if quotient else inner.attr % c
        return whole.plus(Affine({}, value)) if quotient else Affine({}, value)
    atom = Expr.make(e.kind, e.dtype, (inner, const(c, dtypes.int64)))
    found = Affine({}, atom) if rest.is_constant else Affine({atom: 1})
    return whole.plus(found) if quotient else found


def split_multiples(a: Affine, c: int) -> tuple[Affine, Affine]:
    """`a = c * whole + rest`."""
    whole: dict[Expr, Number] = {}
    rest: dict[Expr, Number] = {}
    for atom, k in a.terms.items():
        if isinstance(k, int) and k % c == 0:
            whole[atom] = k // c
        else:
            rest[atom] = k
    constant = a.constant
    if not isinstance(constant, int):
        return Affine(whole), Affine(rest, constant)
    return Affine(whole, constant // c), Affine(rest, constant % c)


def checked(e: Expr) -> Affine:
    """A promise that ranges prove needs no check."""
    inner = affine(e.args[0])
    low, high = inner.bounds()
    least = bounds(e.args[1])[0]
    if low >= 0 and high < least:
        return inner
    return Affine({e: 1})


def extreme(e: Expr) -> Affine:
    """min and max decided by ranges."""
    a, b = map(affine, e.args)
    difference = a.plus(b.scaled(-1))
    low, high = difference.bounds()
    if high <= 0:
        return a if e.kind == "min" else b
    if low >= 0:
        return b if e.kind == "min" else a
    made = Expr.make(e.kind, e.dtype, (a.expression(), b.expression()))
    return Affine({}, made) if a.is_constant and b.is_constant else Affine({made: 1})


@lru_cache(maxsize=1 << 14)
def bounds(e: Expr) -> tuple[int, int]:
    """A range that holds every value of an int64 expression."""
    match e.kind:
        case "const":
            return e.attr, e.attr
        case "size":
            return e.attr[1], e.attr[2]
        case "iter":
            extent = e.attr[1]
            return 0, max(0, (extent if isinstance(extent, int) else bounds(extent)[1]) - 1)
        case "check":
            return 0, max(0, bounds(e.args[1])[1] - 1)
        case "add" | "sub" | "mul" | "neg":
            return combined(e)
        case "floordiv" | "mod" if e.args[1].kind == "const" and e.args[1].attr > 0:
            low, high = bounds(e.args[0])
            c = e.args[1].attr
            if e.kind == "floordiv":
                return low // c, high // c
            return (low, high) if low >= 0 and high < c else (0, c - 1)
        case "min" | "max":
            (a, b), (c, d) = map(bounds, e.args)
            pick = min if e.kind == "min" else max
            return pick(a, c), pick(b, d)
        case "where":
            (a, b), (c, d) = bounds(e.args[1]), bounds(e.args[2])
            return min(a, c), max(b, d)
    return -FAR, FAR


def combined(e: Expr) -> tuple[int, int]:
    (a, b), *more = map(bounds, e.args)
    if e.kind == "neg":
        return -b, -a
    c, d = more[0]
    if e.kind == "add":
        return max(a + c, -FAR), min(b + d, FAR)
    if e.kind == "sub":
        return max(a - d, -FAR), min(b - c, FAR)
    corners = (a * c, a * d, b * c, b * d)
    return max(min(corners), -FAR), min(max(corners), FAR)


def offset(buf, position: tuple[Expr, ...]) -> Affine:
    """Elements from the start of `buf` to the element at `position`."""
    total = Affine()
    for i, stride in zip(position, buf.strides):
        total = total.plus(affine(i).scaled(stride))
    return total
