"""Rarer functions as instructions: the inverse of erf, the logarithmic derivative of gamma, the
derivative of gelu."""

from __future__ import annotations

import math

from flambeau.codegen import maths
from flambeau.codegen.maths import absolute, copysign, horner
from flambeau.codegen.text import Function, Value, constant, element_of

# fmt: off
# erfinv(x) / x in w - 2.5, where w = -log((1 - x)(1 + x)) <= 5
CENTRE = (2.8539466264747886943e-8, 3.4372589878245442809e-7, -3.5289289316258542342e-6,
          -4.3967848625046548871e-6, 0.00021860251666100940097, -0.0012537074213252009265,
          -0.004177708200551363258, 0.2466407259317740289, 1.5014094216000743793)
# the same in sqrt(w) - c beyond
TAIL = {
    "float": (3.0, (-0.00015978285167159012914, 0.000082543654841694742059,
                    0.0012922327572315683399, -0.0036565685177778278687, 0.0057655557818638934582,
                    -0.007626235017612090175, 0.0094350357817497215011, 1.0016742317427420717,
                    2.832977003954761468)),
    "double": (4.0, (-1.6028570623689346e-6, 0.000019457114342754454252,
                     -0.000067098399292488725331, 0.000081364232523634804011,
                     -0.000057169739880904474747, 0.00027155795180418769747,
                     -0.00091452893878100844093, 0.0012853569264810573018, 1.0095039236961102479,
                     3.8397819810313366039)),
}
# fmt: on
# digamma(x) - log(x) + 1 / (2 x) in 1 / x**2, for large x
DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)


def erfinv(f: Function, x: Value) -> Value:
    """4.0 / 4.0 ulp; float64 takes one step of Halley's method from a fit."""
    one = constant(1.0, x.type)
    w = f.fneg(maths.log(f, f.binary("fmul", f.binary("fsub", one, x), f.binary("fadd", one, x))))
    centre = horner(f, f.binary("fsub", w, constant(2.5, x.type)), CENTRE)
    middle, fit = TAIL[element_of(x.type)]
    tail = horner(f, f.binary("fsub", maths.root(f, w), constant(middle, x.type)), fit)
    ratio = f.select(f.compare("olt", w, 5.0), centre, tail)
    y = f.binary("fmul", ratio, x)
    if element_of(x.type) == "double":
        y = improved(f, x, y)
    a = absolute(f, x)
    edge = copysign(f, constant(float("inf"), x.type), x)
    y = f.select(f.compare("oeq", a, 1.0), edge, y)
    return f.select(f.compare("ogt", a, 1.0), constant(float("nan"), x.type), y)


def improved(f: Function, x: Value, y: Value) -> Value:
    """One step toward erf(y) = x; in the tail through erfc, where 1 - |x| is exact."""
    a, b = absolute(f, x), absolute(f, y)
    one = constant(1.0, x.type)
    inner = f.binary("fsub", maths.erf(f, b), a)
    outer = f.binary("fsub", f.binary("fsub", one, a), maths.erfc(f, b))
    off = f.select(f.compare("olt", a, 0.5), inner, outer)
    slope = maths.exp(f, f.fneg(f.binary("fmul", b, b)))
    slope = f.binary("fmul", slope, constant(2 / math.sqrt(math.pi), x.type))
    step = f.binary("fdiv", off, f.fma(b, off, slope))
    return copysign(f, f.binary("fsub", b, step), x)


def digamma(f: Function, x: Value) -> Value:
    """7 ulp of the larger of the result and 1: reflected, shifted up, then asymptotic."""
    one = constant(1.0, x.type)
    negative = f.compare("ole", x, 0.0)
    z = f.select(negative, f.binary("fsub", one, x), x)
    shift = constant(0.0, x.type)
    turns = 6 if element_of(x.type) == "float" else 10
    for _ in range(turns):
        small = f.compare("olt", z, float(turns))
        step = f.select(small, f.binary("fdiv", one, z), constant(0.0, x.type))
        shift = f.binary("fsub", shift, step)
        z = f.select(small, f.binary("fadd", z, one), z)
    inverse = f.binary("fdiv", one, z)
    square = f.binary("fmul", inverse, inverse)
    series = f.binary("fmul", horner(f, square, DIGAMMA), square)
    half = f.binary("fmul", inverse, constant(0.5, x.type))
    value = f.binary("fsub", f.binary("fsub", maths.log(f, z), half), series)
    value = f.binary("fadd", shift, value)
    mirrored = f.binary("fsub", value, cotangent(f, x))
    result = f.select(negative, mirrored, value)
    pole = copysign(f, constant(float("inf"), x.type), f.fneg(x))
    whole = f.compare("oeq", f.intrinsic("llvm.floor", x.type, x), x)
    broken = f.binary("and", whole, f.compare("olt", x, 0.0))
    result = f.select(broken, constant(float("nan"), x.type), result)
    return f.select(f.compare("oeq", x, 0.0), pole, result)


def cotangent(f: Function, x: Value) -> Value:
    """pi / tan(pi x), from the distance to the nearest whole number."""
    pi = constant(math.pi, x.type)
    r = f.binary("fsub", x, maths.nearest(f, x))
    return f.binary("fdiv", pi, maths.tan(f, f.binary("fmul", pi, r)))


def gelu_slope(f: Function, x: Value) -> Value:
    """2 d gelu(x) / dx - 1 = erf(x / sqrt 2) + x sqrt(2 / pi) exp(-x**2 / 2)."""
    half = maths.erf(f, f.binary("fmul", x, constant(math.sqrt(0.5), x.type)))
    square = f.binary("fmul", f.binary("fmul", x, x), constant(-0.5, x.type))
    density = f.binary("fmul", maths.exp(f, square), constant(math.sqrt(2 / math.pi), x.type))
    far = f.compare("ogt", absolute(f, x), 64.0)
    rest = f.select(far, constant(0.0, x.type), f.binary("fmul", x, density))
    return f.binary("fadd", half, rest)


FUNCTIONS = dict(erfinv=erfinv, digamma=digamma, gelu_slope=gelu_slope)
