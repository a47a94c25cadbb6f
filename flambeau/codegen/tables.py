"""Odd saturating functions of float32 from a 32-entry table in two AVX-512 registers.

|x| / width = n + r with whole n and |r| <= 1/2; the polynomial in r whose coefficients stand at n
in the table gives the value. One `vpermi2ps` a coefficient looks up 16 lanes, so erf costs 15
cycles for 16 elements where a rational form with an exponential costs 40. Entry 0 is odd, so the
result is accurate relative to itself down to denormals; the last entry is the limit, 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from flambeau.codegen.text import Function, Value, constant, constants, element_of, lanes_of, vector
from flambeau.loops.reference import gelu_slope

ENTRIES = 32
LANES = 16
SHIFT = 1.5 * 2.0**23  # adding it leaves the rounded integer in the low bits

# name -> (function, width of an entry, degree)
TABLES: dict[str, tuple[Callable[[float], float], float, int]] = dict(
    erf=(math.erf, 0.125, 5), tanh=(math.tanh, 0.3, 7), gelu_slope=(gelu_slope, 0.2, 5)
)


def has_table(f: Function, name: str, x: Value) -> bool:
    return name in TABLES and element_of(x.type) == "float" and f.module.vector_bits >= 512


@functools.cache
def coefficients(name: str) -> np.ndarray:
    """One row a power of r, highest first; column n belongs to entry n."""
    function, width, degree = TABLES[name]
    found = np.zeros((degree + 1, ENTRIES))
    nodes = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)) / 2
    powers = np.vander(nodes, degree + 1)
    found[-1, -1] = 1  # exactly: x (erf(x) + 1) must not grow where erf(x) is -1
    for n in range(1, ENTRIES - 1):
        found[:, n] = np.linalg.solve(powers, [function((n + r) * width) for r in nodes])
    terms = (degree + 1) // 2
    squares = (np.cos(np.pi * (np.arange(terms) + 0.5) / terms) + 1) / 8
    ratios = [function(math.sqrt(q) * width) / math.sqrt(q) for q in squares]
    odd = np.linalg.solve(np.vander(squares, terms), ratios)
    for k, c in enumerate(odd):
        found[degree - 1 - 2 * (terms - 1 - k), 0] = c
    return found.astype(np.float32)


def looked_up(f: Function, name: str, x: Value) -> Value:
    """The function at x, sixteen lanes at a time."""
    lanes = lanes_of(x.type)
    if lanes < LANES:
        return narrow(f, name, x, lanes)
    if lanes == LANES:
        return one_register(f, name, x)
    half = lanes // 2
    low = looked_up(f, name, f.shuffle(x, x, range(half)))
    high = looked_up(f, name, f.shuffle(x, x, range(half, lanes)))
    return f.shuffle(low, high, range(lanes))


def narrow(f: Function, name: str, x: Value, lanes: int) -> Value:
    if lanes == 1:
        return f.extract(one_register(f, name, f.splat(x, LANES)), 0)
    wide = f.shuffle(x, x, [k % lanes for k in range(LANES)])
    y = one_register(f, name, wide)
    return f.shuffle(y, y, range(lanes))


def one_register(f: Function, name: str, x: Value) -> Value:
    _, width, _ = TABLES[name]
    type = vector(LANES, "float")
    t = f.binary("fmul", f.intrinsic("llvm.fabs", type, x), constant(1 / width, type))
    limit = constant(ENTRIES - 0.51, type)
    t = f.select(f.compare("ogt", t, limit), limit, t)
    shifted = f.binary("fadd", t, constant(SHIFT, type))
    r = f.binary("fsub", t, f.binary("fsub", shifted, constant(SHIFT, type)))
    index = f.cast("bitcast", shifted, vector(LANES, "i32"))
    total: Value | None = None
    for row in coefficients(name):
        low, high = (constants(row[k : k + LANES].tolist(), "float") for k in (0, LANES))
        c = f.pure_call("llvm.x86.avx512.vpermi2var.ps.512", type, low, index, high)
        total = c if total is None else f.fma(total, r, c)
    assert total is not None
    return f.intrinsic("llvm.copysign", type, total, x)
