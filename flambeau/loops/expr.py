"""Scalar expressions: what a loop nest computes at one point of its domain.

`Expr` is an interned node. Its kinds, and the meaning of `args` and `attr`:

kind      args                attr                  value
const     -                   Python number         the number, in `dtype`
iter      -                   (name, extent)        a loop variable over range(extent), int64
size      -                   (name, low, high)     a size known at run time, within [low, high]
scalar    -                   name                  a number passed at run time
load      one per dimension   Buf                   the element at that index
guarded   condition, other,   Buf                   the element where the condition holds (nothing
          one per dimension                         is read elsewhere), else other
at        offset              Buf                   the element at that offset from the buffer's
                                                    start; made by the scheduler from `load`
at_where  condition, other,   Buf                   the same for `guarded`
          offset
cast      x                   -                     x converted to `dtype` as C does
check     index, size         (site, wrap)          index if 0 <= index < size, else an error;
                                                    `wrap` first adds size to a negative index
where     condition, x, y     -                     x where the condition holds, else y
reduce    values, iters       (combine, n values)   fold of the values over the iters
scan      values, iter        (combine, n values)   inclusive fold over the iters' values so far
item      tuple-valued        k                     the k-th value of a reduce or scan of several
others    operands            -                     the operation of that name in OPS

`extent` is an int or an int64 Expr. Operands of an operation have one dtype; nothing is promoted
behind the caller's back.
"""

from __future__ import annotations

import struct
from math import copysign, inf
from typing import Any

from flambeau.core import dtype as dtypes
from flambeau.core.errors import DtypeError, complaint
from flambeau.ir.node import Node

SAME, BOOLEAN = "same", "bool"
ANY, NUMBER, INTEGRAL, REAL, BITS = "any", "number", "integral", "floating", "integral or bool"


def _table(result: str, accepts: str, **arities: int) -> dict[str, tuple[int, str, str]]:
    return {name.rstrip("_"): (n, accepts, result) for name, n in arities.items()}


# name -> (number of operands, accepted dtypes, result dtype)
OPS: dict[str, tuple[int, str, str]] = (
    _table(SAME, NUMBER, add=2, sub=2, mul=2, neg=1, abs=1, sign=1, pow=2)
    | _table(SAME, ANY, min=2, max=2)
    | _table(SAME, NUMBER, floordiv=2, mod=2, truncdiv=2, rem=2)
    | _table(SAME, REAL, div=2, fmin=2, fmax=2, atan2=2, copysign=2, hypot=2, nextafter=2)
    | _table(SAME, REAL, sqrt=1, rsqrt=1, exp=1, exp2=1, expm1=1, log=1, log2=1, log10=1, log1p=1)
    | _table(SAME, REAL, sin=1, cos=1, tan=1, asin=1, acos=1, atan=1, sinh=1, cosh=1, tanh=1)
    | _table(SAME, REAL, asinh=1, acosh=1, atanh=1, erf=1, erfc=1, erfinv=1, lgamma=1, digamma=1)
    | _table(SAME, REAL, gelu_slope=1, sigmoid=1, floor=1, ceil=1, round=1, trunc=1)
    | _table(SAME, BITS, and_=2, or_=2, xor=2, not_=1)
    | _table(SAME, INTEGRAL, shl=2, shr=2, mulhi=2)
    | _table(BOOLEAN, ANY, eq=2, ne=2, lt=2, le=2, gt=2, ge=2)
    | _table(BOOLEAN, REAL, isnan=1, isinf=1, isfinite=1, signbit=1)
)


class Expr(Node):
    """A scalar value; `free` holds the iterators that it depends on."""

    __slots__ = ("free",)

    free: frozenset

    def prepare(self) -> None:
        if self.kind == "iter":
            free = frozenset((self,))
        elif self.args:
            free = self.args[0].free.union(*[a.free for a in self.args[1:]])
            if self.kind == "reduce":
                bound = self.args[self.attr[1] :]
                free = free.union(*[i.attr[1].free for i in bound if isinstance(i.attr[1], Expr)])
                free -= frozenset(bound)
        else:
            free = frozenset()
        object.__setattr__(self, "free", free)

    def __add__(self, other):
        return apply("add", self, other)

    def __radd__(self, other):
        return apply("add", other, self)

    def __sub__(self, other):
        return apply("sub", self, other)

    def __rsub__(self, other):
        return apply("sub", other, self)

    def __mul__(self, other):
        return apply("mul", self, other)

    def __rmul__(self, other):
        return apply("mul", other, self)

    def __truediv__(self, other):
        return apply("div", self, other)

    def __rtruediv__(self, other):
        return apply("div", other, self)

    def __floordiv__(self, other):
        return apply("floordiv", self, other)

    def __rfloordiv__(self, other):
        return apply("floordiv", other, self)

    def __mod__(self, other):
        return apply("mod", self, other)

    def __pow__(self, other):
        return apply("pow", self, other)

    def __and__(self, other):
        return apply("and", self, other)

    def __or__(self, other):
        return apply("or", self, other)

    def __xor__(self, other):
        return apply("xor", self, other)

    def __lshift__(self, other):
        return apply("shl", self, other)

    def __rshift__(self, other):
        return apply("shr", self, other)

    def __invert__(self):
        return apply("not", self)

    def __neg__(self):
        return apply("neg", self)

    def __lt__(self, other):
        return apply("lt", self, other)

    def __le__(self, other):
        return apply("le", self, other)

    def __gt__(self, other):
        return apply("gt", self, other)

    def __ge__(self, other):
        return apply("ge", self, other)

    def __bool__(self):
        raise TypeError(
            complaint(
                "loops",
                "a scalar expression has no truth value while lowering",
                dict(kind=self.kind),
                "Use `where(condition, x, y)`.",
            )
        )

    def __str__(self) -> str:
        from flambeau.loops.text import expression

        return expression(self)

    __repr__ = __str__


def dtype_of(kind) -> dtypes.dtype:
    """A dtype from itself or its name."""
    return dtypes.by_name(kind) if isinstance(kind, str) else kind


def const(value, dtype) -> Expr:
    """`value` rounded or wrapped to `dtype`, held as a Python number of the right class."""
    d = dtype_of(dtype)
    if d.category == dtypes.BOOL:
        value = bool(value)
    elif d.category == dtypes.INTEGER:
        value = wrapped(int(value), d)
    elif d.category == dtypes.FLOAT:
        value = rounded(float(value), d)
    else:
        value = complex(value)
    return Expr.make("const", d, (), value)


def rounded(value: float, d: dtypes.dtype) -> float:
    """`value` to the nearest number of the float type `d`; beyond its range, infinity."""
    if d.itemsize == 8 or value != value or value in (inf, -inf):
        return value
    if d.name == "bfloat16":
        single = rounded(value, dtypes.float32)
        bits = struct.unpack("<I", struct.pack("<f", single))[0]
        bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
        return struct.unpack("<f", struct.pack("<I", bits))[0]
    if d.itemsize == 1:
        return float(d.numpy.type(value))
    code = "<f" if d.itemsize == 4 else "<e"
    try:
        return struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return copysign(inf, value)


def wrapped(value: int, d: dtypes.dtype) -> int:
    """`value` modulo 2**bits, in the range of `d`."""
    bits = 8 * d.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if d.is_signed and value >> (bits - 1) else value


def index(value) -> Expr:
    """An int as an int64 constant; expressions pass."""
    return value if isinstance(value, Expr) else const(value, dtypes.int64)


def iterator(name: str, extent) -> Expr:
    """A loop variable over range(extent)."""
    if isinstance(extent, Expr) and extent.kind == "const":
        extent = extent.attr
    return Expr.make("iter", dtypes.int64, (), (name, extent))


def size(name: str, low: int = 0, high: int = 2**40) -> Expr:
    """A size that is known at run time only, within [low, high]."""
    return Expr.make("size", dtypes.int64, (), (name, low, high))


def scalar(name: str, dtype) -> Expr:
    """A number that is passed at run time."""
    return Expr.make("scalar", dtype_of(dtype), (), name)


def cast(x: Expr, dtype) -> Expr:
    """`x` converted: floats to integers toward zero, integers wrap, all to bool as `x != 0`."""
    d = dtype_of(dtype)
    if x.dtype is d:
        return x
    if x.kind == "const" and foldable(x.attr, d):
        return const(x.attr, d)
    return Expr.make("cast", d, (x,))


def foldable(value, d: dtypes.dtype) -> bool:
    """Is the conversion of a constant to `d` the same on every machine?"""
    if isinstance(value, complex):
        return d.category == dtypes.COMPLEX
    return d.category != dtypes.INTEGER or abs(value) < 2**31  # NaN compares false


def operands(name: str, args: tuple) -> list[Expr]:
    """Numbers among `args` take the dtype of the first expression."""
    like = next((a for a in args if isinstance(a, Expr)), None)
    if like is None:
        raise DtypeError(complaint(name, "one operand must be an expression", dict(args=args)))
    return [a if isinstance(a, Expr) else const(a, like.dtype) for a in args]


def accepts(wanted: str, d: dtypes.dtype) -> bool:
    category = d.category
    if wanted == ANY:
        return True
    if wanted == NUMBER:
        return category != dtypes.BOOL
    if wanted == REAL:
        return category in (dtypes.FLOAT, dtypes.COMPLEX)
    if wanted == INTEGRAL:
        return category == dtypes.INTEGER
    return category in (dtypes.INTEGER, dtypes.BOOL)


def apply(name: str, *args: Any) -> Expr:
    """The operation `name` of OPS. Numbers become constants of the other operand's dtype."""
    arity, wanted, result = OPS[name]
    xs = operands(name, args)
    d = xs[0].dtype
    if len(xs) != arity or any(x.dtype is not d for x in xs) or not accepts(wanted, d):
        raise DtypeError(
            complaint(
                name,
                f"{arity} operands of one {wanted} dtype are needed",
                dict(dtypes=tuple(x.dtype.name for x in xs)),
                "Convert with `cast` first.",
            )
        )
    return Expr.make(name, dtypes.bool if result == BOOLEAN else d, tuple(xs))


def unary(name: str, x: Expr) -> Expr:
    return apply(name, x)


def binary(name: str, x, y) -> Expr:
    return apply(name, x, y)


def where(condition: Expr, x, y) -> Expr:
    """`x` where `condition` holds, else `y`; both are evaluated."""
    a, b = operands("where", (x, y))
    if condition.dtype is not dtypes.bool or a.dtype is not b.dtype:
        raise DtypeError(
            complaint(
                "where",
                "a bool condition and two operands of one dtype are needed",
                dict(dtypes=(condition.dtype.name, a.dtype.name, b.dtype.name)),
                "Convert with `cast` first.",
            )
        )
    return Expr.make("where", a.dtype, (condition, a, b))


def check(position: Expr, extent, site: str, wrap: bool = False) -> Expr:
    """`position` as int64, promised to lie in [0, extent): otherwise the kernel raises the error
    of the site (flambeau.core.bounds).

    With `wrap`, negative positions count from the end first.
    """
    return Expr.make(
        "check", dtypes.int64, (cast(position, dtypes.int64), index(extent)), (site, wrap)
    )


def item(x: Expr, k: int) -> Expr:
    """The k-th value of a tuple-valued reduce or scan."""
    return Expr.make("item", x.dtype[k], (x,), k)


def load(buf, position: tuple) -> Expr:
    """The element of `buf` at `position`."""
    return Expr.make("load", buf.dtype, tuple(map(index, position)), buf)


def guarded(condition: Expr, buf, position: tuple, other=0) -> Expr:
    """The element of `buf` at `position` where `condition` holds, else `other`; reads nothing else.

    For padding: the position may be out of bounds where the condition does not hold. A view of a
    buffer has `source` and `place`, the index map onto it.
    """
    while hasattr(buf, "place"):
        buf, position = buf.source, buf.place(position)
    fill = other if isinstance(other, Expr) else const(other, buf.dtype)
    return Expr.make("guarded", buf.dtype, (condition, fill, *map(index, position)), buf)
