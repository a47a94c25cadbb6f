"""Scalar operations as instructions, on one lane or many.

Arithmetic on floats is not contracted: a fused kernel gives the bits that the operations give one
by one. Comparisons are ordered and selects explicit, so NaN goes where PyTorch sends it.
"""

from __future__ import annotations

from collections.abc import Callable

from flambeau.codegen import maths
from flambeau.codegen.functions import function
from flambeau.codegen.nest.types import is_float, is_signed, lowest
from flambeau.codegen.text import Function, Value, constant, element_of, lanes_of, size_of, vector
from flambeau.core import dtype as dtypes

Emit = Callable[[Function, dtypes.dtype, list[Value]], Value]
OPERATIONS: dict[str, Emit] = {}


def emits(*names: str) -> Callable[[Emit], Emit]:
    def register(function: Emit) -> Emit:
        for name in names:
            OPERATIONS[name] = function
        return function

    return register


def operation(f: Function, name: str, d: dtypes.dtype, args: list[Value]) -> Value:
    """The value of `name` on operands of dtype `d` in registers."""
    emit = OPERATIONS.get(name)
    return emit(f, d, args) if emit is not None else function(f, name, args)


def integers_of(type: str) -> str:
    """The integer type with the bits of a float type."""
    return vector(lanes_of(type), f"i{8 * size_of(element_of(type))}")


def arithmetic(name: str, on_float: str, on_integer: str) -> None:
    def emit(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
        return f.binary(on_float if is_float(d) else on_integer, *args)

    OPERATIONS[name] = emit


arithmetic("add", "fadd", "add")
arithmetic("sub", "fsub", "sub")
arithmetic("mul", "fmul", "mul")


@emits("div")
def div(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    return f.binary("fdiv", *args)


@emits("neg")
def neg(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    return f.fneg(args[0]) if is_float(d) else f.binary("sub", constant(0, args[0].type), args[0])


@emits("abs")
def absolute(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    (x,) = args
    if is_float(d):
        return f.intrinsic("llvm.fabs", x.type, x)
    if not is_signed(d):
        return x
    return f.select(f.compare("slt", x, 0), neg(f, d, args), x)


@emits("sign")
def sign(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    """-1, 0 or 1; 0 for NaN."""
    (x,) = args
    one, zero = constant(1, x.type), constant(0, x.type)
    if is_float(d):
        positive = f.select(f.compare("ogt", x, zero), one, zero)
        return f.select(f.compare("olt", x, zero), constant(-1, x.type), positive)
    if not is_signed(d):
        return f.select(f.compare("ne", x, zero), one, zero)
    positive = f.select(f.compare("sgt", x, zero), one, zero)
    return f.select(f.compare("slt", x, zero), constant(-1, x.type), positive)


@emits("max", "min")
def unreachable_extreme(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    raise AssertionError("replaced below")


def extreme(greater: bool) -> Emit:
    def emit(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
        """The larger (smaller) operand; NaN when either is."""
        x, y = args
        if is_float(d):
            better = f.compare("ogt" if greater else "olt", x, y)
            nan = f.compare("uno", x, x)
            return f.select(f.binary("or", better, nan), x, y)
        if d.category == dtypes.BOOL:
            return f.binary("or" if greater else "and", x, y)
        sign_letter = "s" if is_signed(d) else "u"
        return f.intrinsic(f"llvm.{sign_letter}{'max' if greater else 'min'}", x.type, x, y)

    return emit


OPERATIONS["max"], OPERATIONS["min"] = extreme(True), extreme(False)


def quiet_extreme(greater: bool) -> Emit:
    def emit(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
        """The larger (smaller) operand; the other one when one is NaN."""
        x, y = args
        better = f.compare("ogt" if greater else "olt", x, y)
        return f.select(f.binary("or", better, f.compare("uno", y, y)), x, y)

    return emit


OPERATIONS["fmax"], OPERATIONS["fmin"] = quiet_extreme(True), quiet_extreme(False)


# integer division: by zero gives 0, the least integer by -1 wraps; neither traps ------------------


def safe_divisor(f: Function, d: dtypes.dtype, x: Value, y: Value) -> tuple[Value, Value]:
    """(a divisor that never traps, where the result is 0)."""
    zero = f.compare("eq", y, 0)
    bad = zero
    if is_signed(d):
        overflow = f.binary("and", f.compare("eq", x, lowest(d)), f.compare("eq", y, -1))
        bad = f.binary("or", zero, overflow)
    return f.select(bad, constant(1, y.type), y), zero


def quotient(f: Function, d: dtypes.dtype, args: list[Value]) -> tuple[Value, Value, Value]:
    """(x / y toward zero, x - that * y, where y is 0)."""
    x, y = args
    safe, zero = safe_divisor(f, d, x, y)
    q = f.binary("sdiv" if is_signed(d) else "udiv", x, safe)
    r = f.binary("sub", x, f.binary("mul", q, safe))
    return q, r, zero


def masked_out(f: Function, zero: Value, x: Value) -> Value:
    return f.select(zero, constant(0, x.type), x)


@emits("truncdiv")
def truncdiv(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    if is_float(d):
        q = f.binary("fdiv", *args)
        return f.intrinsic("llvm.trunc", q.type, q)
    q, _, zero = quotient(f, d, args)
    return masked_out(f, zero, q)


@emits("rem")
def rem(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    if is_float(d):
        return maths.fmod(f, *args)
    _, r, zero = quotient(f, d, args)
    return masked_out(f, zero, r)


@emits("floordiv")
def floordiv(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    if is_float(d):
        return maths.float_floordiv(f, *args)
    q, r, zero = quotient(f, d, args)
    if is_signed(d):
        q = f.select(opposite(f, r, args[1]), f.binary("sub", q, constant(1, q.type)), q)
    return masked_out(f, zero, q)


def opposite(f: Function, r: Value, y: Value) -> Value:
    """A remainder that is not 0 and has the sign that the divisor has not."""
    differs = f.compare("slt", f.binary("xor", r, y), 0)
    return f.binary("and", differs, f.compare("ne", r, 0))


@emits("mod")
def mod(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    if is_float(d):
        return maths.float_mod(f, *args)
    _, r, zero = quotient(f, d, args)
    if is_signed(d):
        r = f.select(opposite(f, r, args[1]), f.binary("add", r, args[1]), r)
    return masked_out(f, zero, r)


# bits ---------------------------------------------------------------------------------------------


def bits(name: str) -> None:
    OPERATIONS[name] = lambda f, d, args: f.binary(name, *args)


for _name in ("and", "or", "xor"):
    bits(_name)


@emits("not")
def invert(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    (x,) = args
    return f.binary("xor", x, constant(True if d.category == dtypes.BOOL else -1, x.type))


@emits("shl", "shr")
def unreachable_shift(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    raise AssertionError("replaced below")


def shift(up: bool) -> Emit:
    def emit(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
        """By the width or more (or less than nothing): 0, or the sign when moving right."""
        x, y = args
        width = 8 * d.itemsize
        inside = f.compare("ult", y, width)
        if up or not is_signed(d):
            moved = f.binary("shl" if up else "lshr", x, f.select(inside, y, constant(0, y.type)))
            return f.select(inside, moved, constant(0, x.type))
        return f.binary("ashr", x, f.select(inside, y, constant(width - 1, y.type)))

    return emit


OPERATIONS["shl"], OPERATIONS["shr"] = shift(True), shift(False)


@emits("mulhi")
def mulhi(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    """The upper half of the double-width product."""
    x, y = args
    width = 8 * d.itemsize
    double = vector(lanes_of(x.type), f"i{2 * width}")
    widen = "sext" if is_signed(d) else "zext"
    product = f.binary("mul", f.cast(widen, x, double), f.cast(widen, y, double))
    return f.cast("trunc", f.binary("lshr", product, constant(width, double)), x.type)


# comparison ---------------------------------------------------------------------------------------


def comparison(name: str, on_float: str, signed: str, unsigned: str) -> None:
    def emit(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
        if is_float(d):
            return f.compare(on_float, *args)
        return f.compare(signed if is_signed(d) else unsigned, *args)

    OPERATIONS[name] = emit


comparison("eq", "oeq", "eq", "eq")
comparison("ne", "une", "ne", "ne")
comparison("lt", "olt", "slt", "ult")
comparison("le", "ole", "sle", "ule")
comparison("gt", "ogt", "sgt", "ugt")
comparison("ge", "oge", "sge", "uge")


@emits("isnan")
def isnan(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    return f.compare("uno", args[0], args[0])


@emits("isinf")
def isinf(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    return f.compare("oeq", absolute(f, d, args), float("inf"))


@emits("isfinite")
def isfinite(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    return f.compare("olt", absolute(f, d, args), float("inf"))


@emits("signbit")
def signbit(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    (x,) = args
    return f.compare("slt", f.cast("bitcast", x, integers_of(x.type)), 0)


# rounding and roots: instructions of the CPU ------------------------------------------------------


def one_intrinsic(name: str, intrinsic: str) -> None:
    OPERATIONS[name] = lambda f, d, args: f.intrinsic(intrinsic, args[0].type, *args)


for _name, _intrinsic in dict(
    sqrt="llvm.sqrt",
    floor="llvm.floor",
    ceil="llvm.ceil",
    round="llvm.rint",
    trunc="llvm.trunc",
    copysign="llvm.copysign",
).items():
    one_intrinsic(_name, _intrinsic)


@emits("rsqrt")
def rsqrt(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    """1 / sqrt(x): two roundings."""
    (x,) = args
    return f.binary("fdiv", constant(1.0, x.type), f.intrinsic("llvm.sqrt", x.type, x))


@emits("pow")
def power(f: Function, d: dtypes.dtype, args: list[Value]) -> Value:
    if is_float(d):
        return function(f, "pow", args)
    return integer_power(f, d, *args)


def integer_power(f: Function, d: dtypes.dtype, x: Value, y: Value) -> Value:
    """Square and multiply over the exponent's bits; a negative one gives the truncated value."""
    one, zero = constant(1, x.type), constant(0, x.type)
    result, base = one, x
    width = 8 * d.itemsize
    for bit in range(width if width < 64 else 63):
        taken = f.compare("ne", f.binary("and", y, constant(1 << bit, y.type)), 0)
        result = f.select(taken, f.binary("mul", result, base), result)
        base = f.binary("mul", base, base)
    if not is_signed(d):
        return result
    odd = f.compare("ne", f.binary("and", y, one), 0)
    minus = f.select(odd, constant(-1, x.type), one)
    unit = f.select(f.compare("eq", x, -1), minus, f.select(f.compare("eq", x, 1), one, zero))
    return f.select(f.compare("slt", y, 0), unit, result)
