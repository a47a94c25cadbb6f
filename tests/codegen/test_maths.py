"""Elementary functions: the error bounds that their docstrings state, and the edges."""

import math

import numpy as np
import pytest

from flambeau.codegen import target as targets
from flambeau.codegen.kernel import compile_kernel
from flambeau.loops.api import Buf, apply, nest, unary
from flambeau.loops.reference import digamma, erfinv, gelu_slope

LONG = np.longdouble
PRECISE = np.finfo(LONG).nmant > 60  # x86 has 64 bits of mantissa to compare float64 with


def each(function):
    return lambda x: np.array([function(float(v)) for v in x])


# name -> (reference, bounds in ulp of float32 and float64, domain of float32, of float64)
CASES = dict(
    exp=(np.exp, (1.1, 1.1), (-105, 89), (-746, 710)),
    exp2=(np.exp2, (1.3, 1.3), (-150, 128), (-1080, 1025)),
    expm1=(np.expm1, (1.5, 2.0), (-20, 89), (-40, 710)),
    log=(np.log, (0.9, 0.9), (0, 1e4), (0, 1e4)),
    log2=(np.log2, (1.5, 1.5), (0, 1e4), (0, 1e4)),
    log10=(np.log10, (1.5, 2.8), (0, 1e4), (0, 1e4)),
    log1p=(np.log1p, (1.6, 1.6), (-1, 10), (-1, 10)),
    sin=(np.sin, (1.6, 1.6), (-100, 100), (-100, 100)),
    cos=(np.cos, (1.6, 1.6), (-100, 100), (-100, 100)),
    tan=(np.tan, (3.0, 3.0), (-100, 100), (-100, 100)),
    asin=(np.arcsin, (2.5, 2.5), (-1, 1), (-1, 1)),
    acos=(np.arccos, (1.5, 1.5), (-1, 1), (-1, 1)),
    atan=(np.arctan, (2.7, 2.7), (-50, 50), (-50, 50)),
    sinh=(np.sinh, (3.0, 3.0), (-89, 89), (-710, 710)),
    cosh=(np.cosh, (3.0, 3.0), (-89, 89), (-710, 710)),
    tanh=(np.tanh, (2.5, 2.5), (-10, 10), (-20, 20)),
    asinh=(np.arcsinh, (2.5, 2.5), (-1e3, 1e3), (-1e3, 1e3)),
    acosh=(np.arccosh, (2.5, 2.5), (1, 1e3), (1, 1e3)),
    atanh=(np.arctanh, (2.5, 2.5), (-1, 1), (-1, 1)),
    sigmoid=(lambda x: 1 / (1 + np.exp(-x)), (2.5, 2.5), (-80, 80), (-700, 700)),
    rsqrt=(lambda x: 1 / np.sqrt(x), (1.6, 1.6), (0, 1e9), (0, 1e9)),
    erf=(each(math.erf), (2.5, 3.0), (-5, 5), (-7, 7)),
    gelu_slope=(each(gelu_slope), (4.0, 4.0), (-9, 9), (-12, 12)),
    erfc=(each(math.erfc), (4.5, 6.0), (-4, 10), (-6, 26.5)),
    erfinv=(each(erfinv), (4.0, 6.0), (-0.9999, 0.9999), (-0.9999, 0.9999)),
)


def samples(low, high, kind):
    """Uniform over the domain, dense near zero, and logarithmic."""
    rng = np.random.default_rng(1)
    near = np.exp(rng.uniform(-30, 0, 4000)) * rng.choice([-1, 1], 4000)
    parts = [rng.uniform(low, high, 12000), rng.uniform(max(low, -2), min(high, 2), 6000), near]
    return np.concatenate(parts).clip(low, high).astype(kind)


def computed(name, *arrays):
    """One function over arrays, by a compiled kernel."""
    kind = arrays[0].dtype.name
    bufs = [Buf(f"x{k}", a.shape, None, kind) for k, a in enumerate(arrays)]
    kernel = compile_kernel(nest(arrays[0].shape, lambda i: apply(name, *[b[i] for b in bufs])))
    out = np.empty_like(arrays[0])
    kernel.entry(*[a.ctypes.data for a in arrays], out.ctypes.data)
    return out


def ulps(got, wanted):
    """Distance in units of the last place of the result."""
    wanted = np.asarray(wanted, LONG)
    with np.errstate(over="ignore"):
        rounded = wanted.astype(got.dtype)
    fine = np.isfinite(rounded) & np.isfinite(got)
    space = np.spacing(np.abs(np.where(fine, rounded, 1))).astype(LONG)
    return np.where(fine, np.abs(np.where(fine, got, 0) - np.where(fine, wanted, 0)) / space, 0)


@pytest.mark.parametrize("level", ["native", "baseline"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_error_bound(name, kind, level):
    reference, bounds, single, double = CASES[name]
    x = samples(*(single if kind == "float32" else double), kind)
    with targets.restricted(level):
        got = computed(name, x)
    with np.errstate(all="ignore"):
        wanted = reference(x.astype(LONG))
    bound = bounds[kind == "float64"] + (0 if PRECISE or kind == "float32" else 1)
    worst = ulps(got, wanted)
    assert worst.max() <= bound, f"{worst.max():.2f} ulp at {x[worst.argmax()]!r}"


EDGES = np.array(
    [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1,
        -1,
        0.5,
        -0.5,
        2,
        -2,
        1e-40,
        -1e-40,
        1e-310,
        1e30,
        -1e30,
        100,
        -100,
        1e-8,
        -1e-8,
        750,
        -750,
    ]
)


def same_edges(got, wanted):
    """NaN, infinities and the signs of zeros agree; the rest within a few ulp."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    infinite = np.isinf(wanted) | np.isinf(got)
    np.testing.assert_array_equal(got[infinite], wanted[infinite])
    zero = (wanted == 0) & ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]))
    assert ulps(got, wanted).max() <= 6


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", [n for n in CASES if n not in ("sigmoid", "erfinv")])
def test_edges(name, kind):
    x = np.unique(EDGES.astype(np.float32) if kind == "float32" else EDGES).astype(kind)
    x = np.concatenate([x, np.array([-0.0], kind)])
    with np.errstate(all="ignore"):
        wanted = np.asarray(CASES[name][0](x.astype(LONG))).astype(kind)
    same_edges(computed(name, x), wanted)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", ["erf", "tanh", "gelu_slope", "sigmoid"])
def test_limits_are_reached(name, kind):
    """x (erf(x) + 1) would grow without bounds else."""
    far = np.array([40, 1e3, 1e30, np.inf] * 8, kind)
    np.testing.assert_array_equal(computed(name, far), 1)
    if name != "sigmoid":
        np.testing.assert_array_equal(computed(name, -far), -1)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_powers(kind):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 30, 5000), -np.exp(rng.uniform(-3, 3, 500))]).astype(kind)
    y = np.concatenate([rng.uniform(-10, 10, 5000), rng.integers(-9, 9, 500)]).astype(kind)
    with np.errstate(all="ignore"):
        assert ulps(computed("pow", x, y), np.power(x.astype(LONG), y.astype(LONG))).max() <= 1.0
        a, b = (v.ravel().copy() for v in np.meshgrid(EDGES.astype(kind), EDGES.astype(kind)))
        same_edges(computed("pow", a, b), np.power(a, b))


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_angles_in_all_quadrants(kind):
    a, b = (
        v.ravel().copy()
        for v in np.meshgrid(
            EDGES.astype(np.float32).astype(kind), EDGES.astype(np.float32).astype(kind)
        )
    )
    same_edges(computed("atan2", a, b), np.arctan2(a.astype(LONG), b.astype(LONG)).astype(kind))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_angles_take_the_c_library(name):
    x = np.concatenate([np.random.default_rng(0).uniform(-1e8, 1e8, 200), [1e30, -1e22]])
    wanted = getattr(np, name)(x.astype(LONG))
    assert ulps(computed(name, x), wanted).max() <= 3


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_digamma(kind):
    x = np.random.default_rng(0).uniform(-5, 30, 3000).astype(kind)
    wanted = each(digamma)(x)
    limit = 8 * np.finfo(kind).eps * np.maximum(np.abs(wanted), 1)
    near_pole = np.abs(x - np.rint(x)) < 1e-3
    assert (np.abs(computed("digamma", x) - wanted) <= limit)[(x > 0) | ~near_pole].all()
    edges = computed("digamma", np.array([0.0, -0.0, -1, -2, np.inf], kind))
    np.testing.assert_array_equal(edges, np.array([-np.inf, np.inf, np.nan, np.nan, np.inf], kind))


def test_lanes_and_scalars_give_the_same_bits():
    x = samples(-4, 4, "float32")[:1000]
    for name in ("exp", "tanh", "erf", "sin", "log1p"):
        whole = computed(name, x)
        for k in (0, 7, 999):
            assert computed(name, x[k : k + 1].copy())[0].tobytes() == whole[k].tobytes()


def test_unary_names_are_all_covered():
    from flambeau.loops.expr import OPS, REAL

    ours = {
        n
        for n, (arity, wanted, result) in OPS.items()
        if arity == 1 and wanted == REAL and result == "same"
    }
    plain = {"sqrt", "floor", "ceil", "round", "trunc", "lgamma", "digamma"}
    assert ours == set(CASES) | plain
    assert unary("sqrt", Buf("x", (1,))[0]).kind == "sqrt"
