"""Fused multiply-adds and the C library's functions, against exact rationals and `math`."""

import math
from fractions import Fraction

import numpy as np
import pytest

from flambeau.runtime import rounding
from flambeau.runtime.cephes import log32, sincos32

random = np.random.default_rng(0)


def once_rounded(x, scale, shift, bits):
    """float(x * scale + shift) with one rounding to `bits` of mantissa, ties to even."""
    exact = Fraction(float(x)) * Fraction(scale) + Fraction(shift)
    if bits == 53 or exact == 0:
        return float(exact)
    size = abs(exact)
    exponent = math.frexp(float(size))[1]
    if Fraction(2) ** (exponent - 1) > size:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - bits, -149)
    return float(round(exact / unit) * unit)


@pytest.mark.parametrize(("scale", "shift"), [
    (1.2, -0.3), (0.1, 1.0), (3.0, 1e-9), (-7.5, 0.3), (2.0**-130, 2.0**-131), (1e10, -5e9)])
def test_fused32_rounds_once(scale, shift):
    scale, shift = float(np.float32(scale)), float(np.float32(shift))
    x = random.random(2000, np.float32)
    expected = [once_rounded(v, scale, shift, 24) for v in x]
    assert rounding.fused32(x, scale, shift).tolist() == expected


def test_fused32_where_rounding_twice_goes_wrong():
    x = np.array([1 + 2.0**-12], np.float32)
    shift = 2.0**-60  # the product lies in the middle of two float32, the shift above it
    scale = float(np.float32(1 + 2.0**-12))
    assert np.float32(np.float64(x[0]) * scale + shift) != rounding.fused32(x, scale, shift)[0]
    assert rounding.fused32(x, scale, shift)[0] == once_rounded(x[0], scale, shift, 24)


@pytest.mark.parametrize(("scale", "shift"), [
    (1.2, -0.3), (0.1, 1.0), (3.0, 1e-18), (-7.5, 0.3), (1e300, -1e299), (1e-150, 3e-151)])
def test_fused64_rounds_once(scale, shift):
    x = random.random(2000)
    expected = [once_rounded(v, scale, shift, 53) for v in x]
    assert rounding.fused64(x, scale, shift).tolist() == expected


@pytest.mark.parametrize("name", rounding.DOMAINS)
def test_c_functions_are_those_of_math(name):
    low, high = rounding.DOMAINS[name]
    x = random.uniform(low, high, 50_000)
    assert rounding.c_function(name)(x).tolist() == list(map(getattr(math, name), x.tolist()))


def test_mapped_functions_have_numpys_infinities():
    x = np.array([0.0, 1.0])
    assert rounding.mapped(math.log, np.log, x).tolist() == [-math.inf, 0]
    assert rounding.mapped(math.exp, np.exp, np.array([1e9])).tolist() == [math.inf]


@pytest.mark.parametrize("name", ["log1p", "tan"])
def test_settled_values_are_exact_after_rounding(name):
    def formula(x, of):
        return of.function(name)(-x)

    x = random.random(200_000)
    expected = formula(x, rounding.EXACT)
    found = rounding.settled(formula, x, rounding.F32)
    assert np.array_equal(found.astype(np.float32), expected.astype(np.float32))
    assert np.array_equal(rounding.settled(formula, x, rounding.F64), expected)


def test_settled_asks_the_exact_formula_where_rounding_is_close():
    def formula(x, of):
        return x * 0 + (1.25 if of is rounding.EXACT else 1 + 2.0**-24 * (1 + 2.0**-25))

    found = rounding.settled(formula, np.zeros(100), rounding.F32)
    assert (found == 1.25).all()


def test_stored_reaches_16_bits_through_float32():
    between = np.array([1 + 2.0**-11 + 2.0**-40])  # float32 sees a tie, and float16 takes it down
    assert rounding.stored(between, np.dtype(np.float16)) == 1
    assert rounding.stored(np.array([1e9]), np.dtype(np.float16)) == np.inf


def test_float32_functions_are_close():
    u = (random.integers(1, 1 << 24, 100_000) * 2.0**-24).astype(np.float32)
    assert np.abs(log32(u) - np.log(u.astype(float))).max() < 2e-6
    angle = np.float32(2 * math.pi) * u
    sin, cos = sincos32(angle)
    assert np.abs(sin - np.sin(angle.astype(float))).max() < 1e-6
    assert np.abs(cos - np.cos(angle.astype(float))).max() < 1e-6
