"""Elementary functions as instructions, for float32 and float64, on one lane or many.

Each docstring gives the largest error seen (units in the last place, float32 / float64; the tests
hold these bounds). NaN, infinities, signed zeros and denormals come out as the C library's. `fma`
is fused where the CPU can, and every reduction constant is short enough for its product to be exact
where it cannot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from flambeau.codegen import libm
from flambeau.codegen.polynomials import (
    ASIN,
    ATAN,
    COS,
    ERF,
    ERFC,
    ERFC_CENTRE,
    EXP,
    EXP2,
    EXP_RANGE,
    EXPM1,
    HALF_PI,
    LN2,
    LOG_DOUBLE,
    LOG_FLOAT,
    MAGIC,
    MAGIC_BITS,
    MOST_TURNS,
    POW_EXP2,
    POW_LOG,
    SIN,
)
from flambeau.codegen.text import Function, Value, constant, element_of, lanes_of, size_of, vector


def number(f: Function, x: float, like: Value) -> Value:
    return constant(x, like.type)


def horner(f: Function, x: Value, coefficients: Sequence[float]) -> Value:
    """The polynomial at x, highest power first."""
    total = number(f, coefficients[0], x)
    for c in coefficients[1:]:
        total = f.fma(total, x, number(f, c, x))
    return total


def absolute(f: Function, x: Value) -> Value:
    return f.intrinsic("llvm.fabs", x.type, x)


def copysign(f: Function, x: Value, sign: Value) -> Value:
    return f.intrinsic("llvm.copysign", x.type, x, sign)


def nearest(f: Function, x: Value) -> Value:
    return f.intrinsic("llvm.rint", x.type, x)


def root(f: Function, x: Value) -> Value:
    return f.intrinsic("llvm.sqrt", x.type, x)


def integers(type: str) -> str:
    return vector(lanes_of(type), f"i{8 * size_of(element_of(type))}")


def at_most(f: Function, x: Value, limit: float) -> Value:
    """min(x, limit), NaN kept."""
    return f.select(f.compare("ogt", x, limit), constant(limit, x.type), x)


def at_least(f: Function, x: Value, limit: float) -> Value:
    return f.select(f.compare("olt", x, limit), constant(limit, x.type), x)


# exponentials -------------------------------------------------------------------------------------


def power_of_two(f: Function, n: Value) -> Value:
    """2**n for whole n in the range of normal numbers."""
    if element_of(n.type) == "float":
        whole = f.cast("fptosi", n, integers(n.type))
        bits = f.binary("shl", f.binary("add", whole, 127), 23)
    else:
        shifted = f.binary("fadd", n, constant(MAGIC, n.type))
        whole = f.cast("bitcast", shifted, integers(n.type))
        bits = f.binary("shl", f.binary("add", whole, 1023), 52)
    return f.cast("bitcast", bits, n.type)


def scaled(f: Function, x: Value, n: Value) -> Value:
    """x * 2**n for whole n; overflows and underflows gradually, as multiplication does."""
    if f.module.vector_bits >= 512:
        whole = f.cast("fptosi", n, vector(lanes_of(n.type), "i32"))
        name = f"llvm.ldexp.{_suffix(x.type)}.{_suffix(whole.type)}"
        return f.pure_call(name, x.type, x, whole)
    half = f.intrinsic("llvm.floor", n.type, f.binary("fmul", n, constant(0.5, n.type)))
    rest = f.binary("fsub", n, half)
    return f.binary("fmul", f.binary("fmul", x, power_of_two(f, half)), power_of_two(f, rest))


def _suffix(type: str) -> str:
    from flambeau.codegen.text import mangled

    return mangled(type)


def reduced(f: Function, x: Value) -> tuple[Value, Value]:
    """(n, r) with x = n log 2 + r and |r| <= log(2) / 2."""
    high, low = LN2[element_of(x.type)]
    n = nearest(f, f.binary("fmul", x, constant(1 / math.log(2), x.type)))
    r = f.fma(n, constant(-high, x.type), x)
    return n, f.fma(n, constant(-low, x.type), r)


def exp(f: Function, x: Value) -> Value:
    """1.0 / 1.0 ulp."""
    element = element_of(x.type)
    low, high = EXP_RANGE[element]
    x = at_most(f, at_least(f, x, low), high)
    n, r = reduced(f, x)
    p = f.fma(horner(f, r, EXP[element]), f.binary("fmul", r, r), r)
    return scaled(f, f.binary("fadd", p, constant(1.0, x.type)), n)


def exp2(f: Function, x: Value) -> Value:
    """1.0 / 1.0 ulp; exact for whole x."""
    element = element_of(x.type)
    limit = 160.0 if element == "float" else 1100.0
    x = at_most(f, at_least(f, x, -limit), limit)
    n = nearest(f, x)
    r = f.binary("fsub", x, n)
    return scaled(f, f.fma(horner(f, r, EXP2[element]), r, constant(1.0, x.type)), n)


def expm1(f: Function, x: Value) -> Value:
    """1.5 / 2.0 ulp: 2**n (e**r - 1) + (2**n - 1), n one less to stay in range."""
    element = element_of(x.type)
    _, high = EXP_RANGE[element]
    low = -18.0 if element == "float" else -40.0
    y = at_most(f, at_least(f, x, low), high)
    n, r = reduced(f, y)
    p = f.fma(horner(f, r, EXPM1[element]), f.binary("fmul", r, r), r)
    s = power_of_two(f, f.binary("fsub", n, constant(1.0, n.type)))
    half = f.binary("fsub", s, constant(0.5, s.type))
    total = f.fma(s, p, half)
    result = f.binary("fadd", total, total)
    return f.select(f.compare("oeq", x, 0.0), x, result)


# logarithms ---------------------------------------------------------------------------------------


def parted(f: Function, x: Value) -> tuple[Value, Value]:
    """(e, m) with x = 2**e m and sqrt(1/2) <= m < sqrt(2), for positive finite x."""
    single = element_of(x.type) == "float"
    whole = integers(x.type)
    tiny, lift, lost = (2.0**-126, 2.0**23, 23.0) if single else (2.0**-1022, 2.0**52, 52.0)
    denormal = f.compare("olt", x, tiny)
    y = f.select(denormal, f.binary("fmul", x, constant(lift, x.type)), x)
    bits = f.cast("bitcast", y, whole)
    start, mask = (0x3F3504F3, -(1 << 23)) if single else (0x3FE6A09E667F3BCD, -(1 << 52))
    above = f.binary("and", f.binary("sub", bits, start), mask)
    m = f.cast("bitcast", f.binary("sub", bits, above), x.type)
    if single:
        e = f.binary("fmul", f.cast("sitofp", above, x.type), constant(2.0**-23, x.type))
    else:
        k = f.binary("add", f.binary("ashr", above, 52), MAGIC_BITS)
        e = f.binary("fsub", f.cast("bitcast", k, x.type), constant(MAGIC, x.type))
    return f.select(denormal, f.binary("fsub", e, constant(lost, x.type)), e), m


def log_of_mantissa(f: Function, m: Value) -> tuple[Value, Value]:
    """(r, s): log m = r + s, |s| much smaller."""
    u = f.binary("fsub", m, constant(1.0, m.type))
    square = f.binary("fmul", u, u)
    if element_of(m.type) == "float":
        tail = f.binary("fmul", f.binary("fmul", horner(f, u, LOG_FLOAT), u), square)
        return u, f.fma(square, constant(-0.5, m.type), tail)
    s = f.binary("fdiv", u, f.binary("fadd", u, constant(2.0, u.type)))
    z = f.binary("fmul", s, s)
    series = f.binary("fmul", horner(f, z, LOG_DOUBLE), z)
    half = f.binary("fmul", square, constant(0.5, m.type))
    return u, f.fma(s, f.binary("fadd", half, series), f.fneg(half))


def log_edges(f: Function, x: Value, result: Value) -> Value:
    """-inf at 0, NaN below, inf at inf."""
    inf, nan = float("inf"), float("nan")
    fine = f.binary("and", f.compare("ogt", x, 0.0), f.compare("olt", x, inf))
    edge = f.select(f.compare("ogt", x, 0.0), x, constant(nan, x.type))
    edge = f.select(f.compare("oeq", x, 0.0), constant(-inf, x.type), edge)
    return f.select(fine, result, edge)


def log(f: Function, x: Value) -> Value:
    """0.9 / 0.9 ulp."""
    e, m = parted(f, x)
    r, s = log_of_mantissa(f, m)
    high, low = LN2[element_of(x.type)]
    s = f.fma(e, constant(low, x.type), s)
    return log_edges(f, x, f.fma(e, constant(high, x.type), f.binary("fadd", r, s)))


def log2(f: Function, x: Value) -> Value:
    """1.5 / 1.5 ulp; exact for powers of two."""
    e, m = parted(f, x)
    r, s = log_of_mantissa(f, m)
    inverse = 1 / math.log(2)
    high = constant(_head(inverse, x.type), x.type)
    low = constant(inverse - _head(inverse, x.type), x.type)
    return log_edges(f, x, _times_split(f, e, r, s, high, low))


def log10(f: Function, x: Value) -> Value:
    """1.5 / 2.5 ulp."""
    e, m = parted(f, x)
    r, s = log_of_mantissa(f, m)
    inverse, two = 1 / math.log(10), math.log10(2)
    high = constant(_head(inverse, x.type), x.type)
    low = constant(inverse - _head(inverse, x.type), x.type)
    high2, low2 = _head(two, x.type), two - _head(two, x.type)
    main = _times_split(f, f.binary("fmul", e, constant(low2, x.type)), r, s, high, low)
    return log_edges(f, x, f.fma(e, constant(high2, x.type), main))


def _head(number: float, type: str) -> float:
    """The leading 12 (float32) or 26 (float64) bits of a number."""
    bits = 12 if element_of(type) == "float" else 26
    m, e = math.frexp(number)
    return math.ldexp(math.floor(math.ldexp(m, bits)), e - bits)


def _times_split(f: Function, e: Value, r: Value, s: Value, high: Value, low: Value) -> Value:
    """e + (r + s)(high + low), smallest terms first."""
    both = f.binary("fadd", r, s)
    lost = f.binary("fadd", f.binary("fsub", r, both), s)
    small = f.fma(lost, high, f.binary("fmul", both, low))
    return f.binary("fadd", f.fma(both, high, e), small)


def log1p(f: Function, x: Value) -> Value:
    """1.5 / 1.5 ulp: log(u) + (what u = 1 + x lost) / u."""
    one = constant(1.0, x.type)
    u = f.binary("fadd", x, one)
    back = f.binary("fsub", u, one)
    lost = f.binary("fsub", x, back)
    large = f.compare("ogt", x, 1.0)
    lost = f.select(large, f.binary("fsub", one, f.binary("fsub", u, x)), lost)
    fine = f.binary("and", f.compare("ogt", u, 0.0), f.compare("olt", u, float("inf")))
    correction = f.select(fine, f.binary("fdiv", lost, u), constant(0.0, x.type))
    result = f.binary("fadd", log(f, u), correction)
    return f.select(f.compare("oeq", x, 0.0), x, result)


# hyperbolic and saturating ------------------------------------------------------------------------


def sigmoid(f: Function, x: Value) -> Value:
    """2.5 / 2.5 ulp; below the smallest normal number it is 0."""
    one = constant(1.0, x.type)
    return f.binary("fdiv", one, f.binary("fadd", one, exp(f, f.fneg(x))))


def tanh(f: Function, x: Value) -> Value:
    """2.5 / 2.5 ulp."""
    a = at_most(f, absolute(f, x), 10.0 if element_of(x.type) == "float" else 22.0)
    t = expm1(f, f.binary("fadd", a, a))
    y = f.binary("fdiv", t, f.binary("fadd", t, constant(2.0, t.type)))
    return copysign(f, y, x)


def sinh(f: Function, x: Value) -> Value:
    """3.0 / 3.0 ulp."""
    a = absolute(f, x)
    t = expm1(f, a)
    one = constant(1.0, t.type)
    small = f.binary("fadd", t, f.binary("fdiv", t, f.binary("fadd", t, one)))
    small = f.binary("fmul", small, constant(0.5, t.type))
    limit = 40.0 if element_of(x.type) == "float" else 350.0
    return copysign(f, f.select(f.compare("ogt", a, limit), half_exp(f, a), small), x)


def half_exp(f: Function, a: Value) -> Value:
    """e**a / 2 without overflowing first."""
    t = exp(f, f.binary("fmul", a, constant(0.5, a.type)))
    return f.binary("fmul", f.binary("fmul", t, constant(0.5, t.type)), t)


def cosh(f: Function, x: Value) -> Value:
    """3.0 / 3.0 ulp."""
    a = absolute(f, x)
    t = exp(f, a)
    half = constant(0.5, t.type)
    small = f.fma(t, half, f.binary("fdiv", half, t))
    limit = 40.0 if element_of(x.type) == "float" else 350.0
    return f.select(f.compare("ogt", a, limit), half_exp(f, a), small)


def asinh(f: Function, x: Value) -> Value:
    """2.5 / 2.5 ulp."""
    a = absolute(f, x)
    one = constant(1.0, a.type)
    square = f.binary("fmul", a, a)
    r = f.binary("fadd", one, root(f, f.binary("fadd", square, one)))
    small = log1p(f, f.binary("fadd", a, f.binary("fdiv", square, r)))
    large = f.binary("fadd", log(f, a), constant(math.log(2), a.type))
    limit = 1e9 if element_of(x.type) == "float" else 1e18
    result = f.select(f.compare("ogt", a, limit), large, small)
    return copysign(f, result, x)


def acosh(f: Function, x: Value) -> Value:
    """2.5 / 2.5 ulp."""
    one = constant(1.0, x.type)
    t = f.binary("fsub", x, one)
    inner = root(f, f.fma(t, t, f.binary("fadd", t, t)))
    small = log1p(f, f.binary("fadd", t, inner))
    large = f.binary("fadd", log(f, x), constant(math.log(2), x.type))
    limit = 1e9 if element_of(x.type) == "float" else 1e18
    result = f.select(f.compare("ogt", x, limit), large, small)
    return f.select(f.compare("olt", x, 1.0), constant(float("nan"), x.type), result)


def atanh(f: Function, x: Value) -> Value:
    """2.5 / 2.5 ulp."""
    a = absolute(f, x)
    ratio = f.binary("fdiv", f.binary("fadd", a, a), f.binary("fsub", constant(1.0, a.type), a))
    y = f.binary("fmul", log1p(f, ratio), constant(0.5, a.type))
    return copysign(f, y, x)


# trigonometric ------------------------------------------------------------------------------------


def quarter_turns(f: Function, x: Value) -> tuple[Value, Value]:
    """(n, r) with x = n pi/2 + r, |r| <= pi/4, in float64, for |n| < 2**20."""
    n = nearest(f, f.binary("fmul", x, constant(2 / math.pi, x.type)))
    r = x
    for part in HALF_PI:
        r = f.fma(n, constant(-part, x.type), r)
    return n, r


def turned(f: Function, x: Value) -> tuple[Value, Value]:
    """(n as integers, r in x's type)."""
    single = element_of(x.type) == "float"
    wide = f.cast("fpext", x, vector(lanes_of(x.type), "double")) if single else x
    wide = at_most(f, at_least(f, wide, -float(MOST_TURNS)), float(MOST_TURNS))
    n, r = quarter_turns(f, wide)
    bits = f.cast("bitcast", f.binary("fadd", n, constant(MAGIC, n.type)), integers(n.type))
    if single:
        return f.cast("trunc", bits, integers(x.type)), f.cast("fptrunc", r, x.type)
    return bits, r


def sin_cos_of(f: Function, r: Value) -> tuple[Value, Value]:
    """sin and cos on [-pi/4, pi/4]."""
    element = element_of(r.type)
    z = f.binary("fmul", r, r)
    s = f.fma(f.binary("fmul", horner(f, z, SIN[element]), z), r, r)
    c = f.fma(f.binary("fmul", horner(f, z, COS[element]), z), z, number(f, 0.0, z))
    half = f.binary("fmul", z, constant(0.5, z.type))
    one = constant(1.0, z.type)
    w = f.binary("fsub", one, half)
    lost = f.binary("fsub", f.binary("fsub", one, w), half)
    return s, f.binary("fadd", w, f.binary("fadd", lost, c))


def quadrant(f: Function, n: Value, s: Value, c: Value) -> Value:
    """sin(r + n pi/2)."""
    odd = f.compare("ne", f.binary("and", n, 1), 0)
    y = f.select(odd, c, s)
    negative = f.compare("ne", f.binary("and", n, 2), 0)
    return f.select(negative, f.fneg(y), y)


def beyond_reduction(f: Function, x: Value) -> Value:
    """Lanes that the fast reduction cannot take: huge ones and infinities."""
    return f.compare("ogt", absolute(f, x), float(MOST_TURNS))


def sin(f: Function, x: Value) -> Value:
    """1.5 / 1.5 ulp; the C library's beyond 2**20."""
    n, r = turned(f, x)
    y = quadrant(f, n, *sin_cos_of(f, r))
    y = f.select(f.compare("oeq", x, 0.0), x, y)
    return libm.instead(f, beyond_reduction(f, x), y, "sin", [x])


def cos(f: Function, x: Value) -> Value:
    """1.5 / 1.5 ulp; the C library's beyond 2**20."""
    n, r = turned(f, x)
    y = quadrant(f, f.binary("add", n, 1), *sin_cos_of(f, r))
    return libm.instead(f, beyond_reduction(f, x), y, "cos", [x])


def tan(f: Function, x: Value) -> Value:
    """3.0 / 3.0 ulp; the C library's beyond 2**20."""
    n, r = turned(f, x)
    s, c = sin_cos_of(f, r)
    odd = f.compare("ne", f.binary("and", n, 1), 0)
    y = f.binary("fdiv", f.select(odd, c, s), f.select(odd, f.fneg(s), c))
    y = f.select(f.compare("oeq", x, 0.0), x, y)
    return libm.instead(f, beyond_reduction(f, x), y, "tan", [x])


def atan_of_ratio(f: Function, z: Value) -> Value:
    """atan on [0, 1]: above tan(pi/8) through atan((z - 1) / (z + 1)) + pi/4."""
    one = constant(1.0, z.type)
    upper = f.compare("ogt", z, math.tan(math.pi / 8))
    moved = f.binary("fdiv", f.binary("fsub", z, one), f.binary("fadd", z, one))
    t = f.select(upper, moved, z)
    square = f.binary("fmul", t, t)
    y = f.fma(f.binary("fmul", horner(f, square, ATAN[element_of(z.type)]), square), t, t)
    return f.select(upper, f.binary("fadd", y, constant(math.pi / 4, y.type)), y)


def atan(f: Function, x: Value) -> Value:
    """2.5 / 2.5 ulp."""
    a = absolute(f, x)
    steep = f.compare("ogt", a, 1.0)
    z = f.select(steep, f.binary("fdiv", constant(1.0, a.type), a), a)
    y = atan_of_ratio(f, z)
    y = f.select(steep, f.binary("fsub", constant(math.pi / 2, y.type), y), y)
    return copysign(f, y, x)


def atan2(f: Function, y: Value, x: Value) -> Value:
    """2.0 / 2.0 ulp; signed zeros and infinities as C."""
    a, b = absolute(f, y), absolute(f, x)
    steep = f.compare("ogt", a, b)
    over, under = f.select(steep, b, a), f.select(steep, a, b)
    one, zero = constant(1.0, x.type), constant(0.0, x.type)
    both_infinite = f.compare("oeq", over, float("inf"))
    ratio = f.binary("fdiv", over, under)
    ratio = f.select(f.compare("oeq", under, 0.0), zero, ratio)
    ratio = f.select(both_infinite, one, ratio)
    angle = atan_of_ratio(f, ratio)
    angle = f.select(steep, f.binary("fsub", constant(math.pi / 2, x.type), angle), angle)
    left = f.compare("slt", f.cast("bitcast", x, integers(x.type)), 0)
    angle = f.select(left, f.binary("fsub", constant(math.pi, x.type), angle), angle)
    nan = f.compare("uno", x, y)
    return f.select(nan, constant(float("nan"), x.type), copysign(f, angle, y))


def asin_core(f: Function, x: Value) -> tuple[Value, Value, Value]:
    """(|x| > 1/2, asin of the reduced argument, |x|)."""
    a = absolute(f, x)
    half = constant(0.5, a.type)
    large = f.compare("ogt", a, 0.5)
    z = f.select(large, f.fma(a, constant(-0.5, a.type), half), f.binary("fmul", a, a))
    t = f.select(large, root(f, z), a)
    y = f.fma(f.binary("fmul", horner(f, z, ASIN[element_of(x.type)]), z), t, t)
    return large, y, a


def asin(f: Function, x: Value) -> Value:
    """2.5 / 2.5 ulp."""
    large, y, _ = asin_core(f, x)
    turned_back = f.fma(y, constant(-2.0, y.type), constant(math.pi / 2, y.type))
    return copysign(f, f.select(large, turned_back, y), x)


def acos(f: Function, x: Value) -> Value:
    """2.0 / 2.0 ulp."""
    large, y, _ = asin_core(f, x)
    twice = f.binary("fadd", y, y)
    negative = f.compare("olt", x, 0.0)
    outer = f.select(negative, f.binary("fsub", constant(math.pi, y.type), twice), twice)
    inner = f.binary("fsub", constant(math.pi / 2, y.type), copysign(f, y, x))
    return f.select(large, outer, inner)


# error function -----------------------------------------------------------------------------------


def erfc_tail(f: Function, a: Value, precise: bool) -> Value:
    """erfc on [0.45, inf): exp(-a**2) g((a - k) / (a + k)) / (a + k)."""
    element = element_of(a.type)
    a = at_most(f, a, 10.2 if element == "float" else 28.0)
    k = constant(ERFC_CENTRE[element], a.type)
    inverse = f.binary("fdiv", constant(1.0, a.type), f.binary("fadd", a, k))
    t = f.binary("fmul", f.binary("fsub", a, k), inverse)
    square = f.binary("fmul", a, a)
    e = exp(f, f.fneg(square))
    if precise:
        lost = libm.product_error(f, a, a, square)
        e = f.fma(f.fneg(e), lost, e)
    return f.binary("fmul", f.binary("fmul", horner(f, t, ERFC[element]), inverse), e)


def erf_core(f: Function, x: Value) -> Value:
    """erf on [-1, 1]."""
    return f.binary("fmul", horner(f, f.binary("fmul", x, x), ERF[element_of(x.type)]), x)


def erf(f: Function, x: Value) -> Value:
    """2.5 / 2.5 ulp."""
    a = absolute(f, x)
    outer = copysign(f, f.binary("fsub", constant(1.0, a.type), erfc_tail(f, a, False)), x)
    return f.select(f.compare("ogt", a, 1.0), outer, erf_core(f, x))


def erfc(f: Function, x: Value) -> Value:
    """4.5 / 5.0 ulp, relative to the tail itself."""
    a = absolute(f, x)
    tail = erfc_tail(f, a, True)
    two = constant(2.0, a.type)
    outer = f.select(f.compare("olt", x, 0.0), f.binary("fsub", two, tail), tail)
    inner = f.binary("fsub", constant(1.0, a.type), erf_core(f, x))
    result = f.select(f.compare("ogt", a, 0.5), outer, inner)
    return f.select(f.compare("uno", x, x), x, result)


# powers and the rest ------------------------------------------------------------------------------


def pow(f: Function, x: Value, y: Value) -> Value:
    """1.0 / 1.0 ulp: float32 through float64, float64 by the C library."""
    if element_of(x.type) == "double":
        return libm.per_lane(f, "pow", [x, y])
    wide = vector(lanes_of(x.type), "double")
    a = absolute(f, f.cast("fpext", x, wide))
    b = f.cast("fpext", y, wide)
    e, m = parted(f, a)
    one = constant(1.0, wide)
    s = f.binary("fdiv", f.binary("fsub", m, one), f.binary("fadd", m, one))
    z = f.binary("fmul", s, s)
    series = f.fma(f.binary("fmul", horner(f, z, POW_LOG), z), s, f.binary("fadd", s, s))
    logarithm = f.fma(series, constant(1 / math.log(2), wide), e)
    inf = float("inf")
    logarithm = f.select(f.compare("oeq", a, 0.0), constant(-inf, wide), logarithm)
    logarithm = f.select(f.compare("oeq", a, inf), constant(inf, wide), logarithm)
    t = f.binary("fmul", b, logarithm)
    t = at_most(f, at_least(f, t, -200.0), 200.0)
    n = nearest(f, t)
    r = f.binary("fsub", t, n)
    result = f.fma(horner(f, r, POW_EXP2), r, one)
    result = f.binary("fmul", result, power_of_two(f, n))
    return pow_edges(f, x, y, f.cast("fptrunc", result, x.type))


def pow_edges(f: Function, x: Value, y: Value, magnitude: Value) -> Value:
    """The sign of odd powers, NaN for roots of negative numbers, and 1 for x = 1 or y = 0."""
    one, nan = constant(1.0, x.type), constant(float("nan"), x.type)
    whole = f.compare("oeq", f.intrinsic("llvm.trunc", y.type, y), y)
    half = f.binary("fmul", y, constant(0.5, y.type))
    even = f.compare("oeq", f.intrinsic("llvm.trunc", y.type, half), half)
    odd = f.binary("and", whole, f.binary("xor", even, constant(True, even.type)))
    signed = f.select(odd, copysign(f, magnitude, x), magnitude)
    finite = f.compare("olt", absolute(f, x), float("inf"))
    negative = f.binary("and", f.compare("olt", x, 0.0), finite)
    broken = f.binary("and", negative, f.binary("xor", whole, constant(True, whole.type)))
    result = f.select(broken, nan, signed)
    result = f.select(f.compare("uno", x, y), nan, result)
    unit = f.binary(
        "and", f.compare("oeq", absolute(f, x), 1.0), f.compare("oeq", absolute(f, y), float("inf"))
    )
    unit = f.binary("or", unit, f.binary("or", f.compare("oeq", x, 1.0), f.compare("oeq", y, 0.0)))
    return f.select(unit, one, result)


def hypot(f: Function, x: Value, y: Value) -> Value:
    """1.0 / 1.0 ulp: float32 through float64, float64 by the C library."""
    if element_of(x.type) == "double":
        return libm.per_lane(f, "hypot", [x, y])
    wide = vector(lanes_of(x.type), "double")
    a, b = f.cast("fpext", x, wide), f.cast("fpext", y, wide)
    r = f.cast("fptrunc", root(f, f.fma(a, a, f.binary("fmul", b, b))), x.type)
    infinite = f.binary(
        "or",
        f.compare("oeq", absolute(f, x), float("inf")),
        f.compare("oeq", absolute(f, y), float("inf")),
    )
    return f.select(infinite, constant(float("inf"), x.type), r)


def fmod(f: Function, x: Value, y: Value) -> Value:
    """Exact remainder with the sign of x."""
    return libm.per_lane(f, "fmod", [x, y])


def float_mod(f: Function, x: Value, y: Value) -> Value:
    """Remainder with the sign of the divisor."""
    r = fmod(f, x, y)
    differs = f.binary("xor", f.compare("olt", r, 0.0), f.compare("olt", y, 0.0))
    moved = f.binary("and", differs, f.compare("une", r, 0.0))
    return f.select(moved, f.binary("fadd", r, y), r)


def float_floordiv(f: Function, x: Value, y: Value) -> Value:
    """floor(x / y) as Python's `//`: exact, with the quotient's sign on zero."""
    r = fmod(f, x, y)
    q = f.binary("fdiv", f.binary("fsub", x, r), y)
    differs = f.binary("xor", f.compare("olt", r, 0.0), f.compare("olt", y, 0.0))
    moved = f.binary("and", differs, f.compare("une", r, 0.0))
    one = constant(1.0, q.type)
    q = f.select(moved, f.binary("fsub", q, one), q)
    down = f.intrinsic("llvm.floor", q.type, q)
    up = f.compare("ogt", f.binary("fsub", q, down), 0.5)
    down = f.select(up, f.binary("fadd", down, one), down)
    plain = f.binary("fdiv", x, y)
    signed = f.select(f.compare("oeq", q, 0.0), copysign(f, constant(0.0, q.type), plain), down)
    return f.select(f.compare("oeq", y, 0.0), plain, signed)


FUNCTIONS: dict[str, Callable[..., Value]] = dict(
    exp=exp,
    exp2=exp2,
    expm1=expm1,
    log=log,
    log2=log2,
    log10=log10,
    log1p=log1p,
    sigmoid=sigmoid,
    tanh=tanh,
    sinh=sinh,
    cosh=cosh,
    asinh=asinh,
    acosh=acosh,
    atanh=atanh,
    sin=sin,
    cos=cos,
    tan=tan,
    asin=asin,
    acos=acos,
    atan=atan,
    atan2=atan2,
    erf=erf,
    erfc=erfc,
    pow=pow,
    hypot=hypot,
)
