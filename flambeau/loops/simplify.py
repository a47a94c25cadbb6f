"""Rules that make scalar expressions shorter without changing a bit of any result.

`x + 0.0` is not among them (it turns -0.0 into 0.0), nor is anything that reorders floats.
"""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.ir.rewrite import Rewriter, rule
from flambeau.loops.expr import Expr, apply, cast, const
from flambeau.loops.nest import Nest, Store


def is_const(e: Expr, value) -> bool:
    """Is `e` the constant `value`? Zeros are told apart by their sign."""
    if e.kind != "const" or isinstance(e.dtype, tuple) or e.attr != value:
        return False
    return not isinstance(e.attr, float) or math.copysign(1, e.attr) == math.copysign(1, value)


def is_float(e: Expr) -> bool:
    return e.dtype.category == dtypes.FLOAT


def is_integer(e: Expr) -> bool:
    return e.dtype.category == dtypes.INTEGER


@rule("mul", "div")
def times_one(e: Expr) -> Expr | None:
    """x * 1 = x / 1 = x"""
    x, y = e.args
    return x if is_const(y, 1) else y if e.kind == "mul" and is_const(x, 1) else None


@rule("add", "sub")
def plus_nothing(e: Expr) -> Expr | None:
    """x - 0 = x + -0.0 = x, and x + 0 = x for integers"""
    x, y = e.args
    nothing = 0 if is_integer(e) else -0.0 if e.kind == "add" else 0.0
    if is_const(y, nothing):
        return x
    return y if e.kind == "add" and is_const(x, nothing) else None


@rule("mul")
def times_zero(e: Expr) -> Expr | None:
    """x * 0 = 0 for integers"""
    return const(0, e.dtype) if is_integer(e) and any(is_const(a, 0) for a in e.args) else None


@rule("div")
def by_power_of_two(e: Expr) -> Expr | None:
    """x / 2**k = x * 2**-k where both are normal numbers"""
    x, y = e.args
    if y.kind != "const" or not is_float(e) or y.attr in (0.0, 1.0) or not math.isfinite(y.attr):
        return None
    mantissa, exponent = math.frexp(y.attr)
    small = 10 if e.dtype.name == "float16" else 100
    return x * (1.0 / y.attr) if abs(mantissa) == 0.5 and abs(exponent) < small else None


@rule("neg", "not")
def undone(e: Expr) -> Expr | None:
    """-(-x) = x; ~(~x) = x"""
    return e.args[0].args[0] if e.args[0].kind == e.kind else None


@rule("abs")
def sign_dropped(e: Expr) -> Expr | None:
    """|-x| = ||x|| = |x| for floats"""
    x = e.args[0]
    return apply("abs", x.args[0]) if is_float(e) and x.kind in ("neg", "abs") else None


@rule("cast")
def there_and_back(e: Expr) -> Expr | None:
    """A cast to a type that holds every value, and back, does nothing"""
    inner = e.args[0]
    if inner.kind == "cast" and inner.args[0].dtype is e.dtype and holds(inner.dtype, e.dtype):
        return inner.args[0]
    return None


def holds(wide: dtypes.dtype, narrow: dtypes.dtype) -> bool:
    """Does `wide` have every value of `narrow`?"""
    if wide.category == narrow.category == dtypes.FLOAT:
        return narrow.itemsize < wide.itemsize and (wide.itemsize >= 4)
    if wide.category == narrow.category == dtypes.INTEGER:
        return wide.itemsize > narrow.itemsize and (wide.is_signed or not narrow.is_signed)
    return narrow.category == dtypes.BOOL and wide.category in (dtypes.INTEGER, dtypes.FLOAT)


@rule("where")
def decided(e: Expr) -> Expr | None:
    """where(c, x, x) = where(True, x, y) = where(False, y, x) = x"""
    c, x, y = e.args
    if x is y:
        return x
    return (x if c.attr else y) if c.kind == "const" else None


@rule("and", "or")
def with_constant(e: Expr) -> Expr | None:
    """c & True = c | False = c & c = c for bools; c & False = False; c | True = True"""
    if e.dtype is not dtypes.bool:
        return None
    x, y = e.args
    for c, other in ((x, y), (y, x)):
        if c.kind == "const":
            return other if c.attr == (e.kind == "and") else c
    return x if x is y else None


@rule("max", "min")
def of_itself(e: Expr) -> Expr | None:
    """max(x, x) = min(x, x) = x"""
    return e.args[0] if e.args[0] is e.args[1] else None


@rule("pow")
def small_powers(e: Expr) -> Expr | None:
    """x ** 1 = x; x ** 2 = x * x; x ** 3 = x * x * x; x ** 0.5 = sqrt(x); x ** -1 = 1 / x

    As PyTorch: a root of -0.0 is -0.0.
    """
    x, y = e.args
    if y.kind != "const" or not is_float(e):
        return None
    if y.attr == 1.0:
        return x
    if y.attr == 2.0:
        return x * x
    if y.attr == 3.0:
        return x * x * x
    if y.attr == 0.5:
        return apply("sqrt", x)
    return const(1.0, e.dtype) / x if y.attr == -1.0 else None


@rule("add", "sub", "mul")
def folded(e: Expr) -> Expr | None:
    """Arithmetic on integer constants"""
    x, y = e.args
    if not is_integer(e) or x.kind != "const" or y.kind != "const":
        return None
    value = {"add": x.attr + y.attr, "sub": x.attr - y.attr, "mul": x.attr * y.attr}[e.kind]
    return const(value, e.dtype)


@rule("cast")
def constant_cast(e: Expr) -> Expr | None:
    """The conversion of a constant, where every machine agrees"""
    x = e.args[0]
    made = cast(x, e.dtype) if x.kind == "const" else e
    return made if made is not e else None


RULES = (
    times_one,
    plus_nothing,
    times_zero,
    by_power_of_two,
    undone,
    sign_dropped,
    there_and_back,
    decided,
    with_constant,
    of_itself,
    small_powers,
    folded,
    constant_cast,
)


def simplified(nest: Nest) -> Nest:
    """The nest with all rules applied to what it computes."""
    rewriter = Rewriter(RULES)
    stores = tuple(
        Store(s.buf, tuple(rewriter.all(s.index)), rewriter.one(s.value), s.combine)
        for s in nest.stores
    )
    return nest if stores == nest.stores else Nest(nest.iters, stores, nest.source)
