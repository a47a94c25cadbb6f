"""Pointwise functions at zeros, infinities, NaN, denormals and large arguments; result layouts."""

import itertools
import math
import warnings

import numpy as np
import pytest

import flambeau
import flambeau.special

torch = pytest.importorskip("torch")

VALUES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, math.inf, -math.inf, math.nan, 1e-40,
          -1e-10, 3.0, -3.0, 10.0, -10.0, 50.0, -50.0, 88.0, 100.0, 1e10, 1e30, -1e38, 0.9999999,
          1.0000001, math.pi, 7.3]
UNARY = ("abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp "
         "exp2 expm1 floor frac i0 isfinite isinf isnan isneginf isposinf isreal lgamma log log10 "
         "log1p log2 logical_not logit nan_to_num neg rad2deg reciprocal round rsqrt sgn sigmoid "
         "sign signbit sin sinc sinh sqrt square tan tanh trunc angle special.entr special.erfcx "
         "special.i0e special.i1 special.i1e special.log_ndtr special.ndtri").split()
BINARY = ("add sub mul div floor_divide pow maximum minimum fmax fmin atan2 copysign hypot "
          "logaddexp logaddexp2 nextafter xlogy eq lt ge float_power heaviside").split()
TOLERANCE = dict(float32=3e-6, float64=1e-9, bfloat16=2e-2)
# Large enough that the loop compiler takes over from NumPy.
REPEATS = {"float32": (1, 300), "float64": (1,), "bfloat16": (1,)}
CASES = [(kind, n) for kind, counts in REPEATS.items() for n in counts]


def named(lib, name: str):
    for part in name.split("."):
        lib = getattr(lib, part)
    return lib


def as_array(t) -> np.ndarray:
    return np.asarray((t.float() if str(t.dtype).endswith("bfloat16") else t).numpy())


def tensors(kind: str, values: np.ndarray) -> tuple:
    """The same values in both libraries, rounded alike."""
    x = torch.from_numpy(values).to(getattr(torch, kind))
    return x, flambeau.from_numpy(as_array(x).copy()).to(getattr(flambeau, kind))


def assert_same(expected, got, tolerance: float) -> None:
    expected, got = as_array(expected), as_array(got)
    assert expected.dtype == got.dtype and expected.shape == got.shape
    with np.errstate(all="ignore"):
        a, b = expected.astype(float), got.astype(float)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        zeros = (a == 0) & (np.signbit(a) != np.signbit(b))
        near = np.abs(a - b) <= tolerance * (np.abs(a) + 1e-2)
        bad = np.flatnonzero(~(same & ~zeros | near & np.isfinite(a) & np.isfinite(b)))
    assert not bad.size, [(i, a[i], b[i]) for i in bad[:4]]


@pytest.mark.parametrize(("kind", "repeats"), CASES)
@pytest.mark.parametrize("name", UNARY)
def test_unary_at_special_values(name, kind, repeats):
    x, y = tensors(kind, np.tile(VALUES, repeats))
    try:
        expected = named(torch, name)(x)
    except RuntimeError:
        pytest.skip("PyTorch has no such kernel")
    if kind == "bfloat16" and name == "special.ndtri":
        pytest.skip("too coarse")
    assert_same(expected, named(flambeau, name)(y), TOLERANCE[kind])


@pytest.mark.parametrize(("kind", "repeats"), [("float32", 1), ("float32", 10), ("float64", 1)])
@pytest.mark.parametrize("name", BINARY)
def test_binary_at_special_values(name, kind, repeats):
    pairs = np.array(list(itertools.product(VALUES, VALUES)))
    (x, fx), (y, fy) = (tensors(kind, np.tile(pairs[:, k], repeats)) for k in (0, 1))
    assert_same(named(torch, name)(x, y), named(flambeau, name)(fx, fy), TOLERANCE[kind])


# Gradients where functions have kinks, poles or infinite values ------------------------------

KINKS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, math.inf, math.nan, 30.0, -30.0]
ONE = ("abs asin atan ceil cosh erf exp expm1 floor frac log log1p nan_to_num reciprocal "
       "relu round rsqrt sigmoid sign sinc sqrt square tanh trunc special.entr").split()
TWO = ("add sub mul div remainder fmod pow maximum minimum fmax fmin atan2 copysign hypot "
       "logaddexp logaddexp2 xlogy special.xlog1py").split()


def gradients(lib, name: str, *arrays) -> list[np.ndarray]:
    leaves = [lib.from_numpy(a.copy()).requires_grad_() for a in arrays]
    grads = lib.autograd.grad(named(lib, name)(*leaves).sum(), leaves)
    return [np.asarray(g.numpy()) for g in grads]


@pytest.mark.parametrize("name", ONE)
def test_gradient_at_kinks(name):
    expected, got = (gradients(lib, name, np.array(KINKS)) for lib in (torch, flambeau))
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-8)


@pytest.mark.parametrize("name", TWO)
def test_gradient_of_two_operands_at_kinks(name):
    x, y = (np.array(column) for column in zip(*itertools.product(KINKS, KINKS), strict=True))
    expected, got = (gradients(lib, name, x, y) for lib in (torch, flambeau))
    for e, g in zip(expected, got, strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-8)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, -1, 1.5])
def test_gradient_of_powers_at_kinks(exponent):
    expected, got = ([np.asarray(lib.autograd.grad((x**exponent).sum(), x)[0].numpy())
                      for x in [lib.from_numpy(np.array(KINKS)).requires_grad_()]]
                     for lib in (torch, flambeau))
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-8)


# Layouts -------------------------------------------------------------------------------------


def layouts(base: np.ndarray):
    for order in itertools.permutations(range(base.ndim)):
        yield base.transpose(order)
    yield base[..., ::2]
    yield base[1:]
    yield np.broadcast_to(base[:1], base.shape)


def strides(lib, f, *arrays):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # read-only arrays
        return tuple(f(*map(lib.from_numpy, arrays)).stride())


BASE = np.arange(60, dtype=np.float32).reshape(4, 3, 5)


@pytest.mark.parametrize("name", ["exp", "isnan", "clone", "sigmoid", "round", "nan_to_num"])
def test_unary_results_keep_the_memory_order(name):
    for a in layouts(BASE):
        assert strides(flambeau, getattr(flambeau, name), a) == strides(
            torch, getattr(torch, name), a)


def test_binary_results_keep_the_memory_order_of_their_operands():
    for a, b in itertools.product(layouts(BASE), layouts(BASE)):
        for c in (b, b[0], b[:, :1], b[..., :1], b[0, 0]):
            try:
                expected = strides(torch, torch.add, a, c)
            except RuntimeError:
                continue
            assert strides(flambeau, flambeau.add, a, c) == expected
