"""Special functions against closed forms and identities, in float64."""

import math

import numpy as np
import pytest

import flambeau as torch
from flambeau import special


def points(low, high, count=401):
    return torch.linspace(low, high, count, dtype=torch.float64)


def close(got, expected, rtol=1e-12, atol=1e-14):
    np.testing.assert_allclose(got.numpy(), np.asarray(expected), rtol=rtol, atol=atol)


@pytest.mark.parametrize(("f", "reference", "low", "high"), [
    (torch.erf, math.erf, -6, 6), (torch.erfc, math.erfc, -6, 20),
    (torch.lgamma, math.lgamma, 0.05, 40)])
def test_against_the_standard_library(f, reference, low, high):
    x = points(low, high)
    close(f(x), [reference(v) for v in x.tolist()], rtol=5e-13)


def test_lgamma_left_of_zero_and_at_its_poles():
    close(torch.lgamma(points(-9.9, -0.05, 113)),
          [math.lgamma(v) for v in points(-9.9, -0.05, 113).tolist()], rtol=1e-11)
    assert torch.lgamma(torch.tensor([0.0, -3.0])).tolist() == [math.inf, math.inf]


def test_lgamma_keeps_relative_accuracy_at_its_zeros():
    x = torch.tensor([1 + 1e-9, 2 - 1e-9], dtype=torch.float64)
    z = x - torch.tensor([1.0, 2.0], dtype=torch.float64)
    slope = torch.tensor([-0.5772156649015329, 0.42278433509846714], dtype=torch.float64)
    close(torch.lgamma(x) / z, slope.numpy(), rtol=1e-8)


def test_inverses():
    x = points(-3.5, 3.5)
    close(torch.erfinv(torch.erf(x)), x.numpy(), rtol=1e-8, atol=1e-12)
    close(special.ndtri(special.ndtr(-x.abs())), -x.abs().numpy(), rtol=1e-12, atol=1e-12)
    close(torch.logit(torch.sigmoid(x)), x.numpy(), rtol=1e-12, atol=1e-12)
    assert special.ndtri(torch.tensor([0.0, 0.5, 1.0])).tolist() == [-math.inf, 0.0, math.inf]


def test_normal_distribution_far_in_its_tail():
    log_half = math.log(0.5)
    zero = torch.tensor(0.0, dtype=torch.float64)
    assert special.log_ndtr(zero).item() == pytest.approx(log_half)
    x = 100.0  # log Phi(-x) = -x^2/2 - log(x sqrt(2 pi)) + log(1 - 1/x^2 + 3/x^4 - ..)
    expected = -x * x / 2 - math.log(x * math.sqrt(2 * math.pi)) + math.log1p(
        -1 / x**2 + 3 / x**4)
    assert special.log_ndtr(torch.tensor(-x, dtype=torch.float64)).item() == pytest.approx(
        expected, rel=1e-12)


def test_digamma_and_polygamma():
    x = points(0.1, 20, 101)
    close(torch.digamma(x + 1) - torch.digamma(x), (1 / x).numpy(), rtol=1e-10, atol=1e-12)
    close(torch.polygamma(1, x) - torch.polygamma(1, x + 1), (x**-2).numpy(), rtol=1e-9)
    one = torch.tensor(1.0, dtype=torch.float64)
    assert torch.digamma(one).item() == pytest.approx(-0.5772156649015329, rel=1e-14)
    assert torch.polygamma(1, one).item() == pytest.approx(math.pi**2 / 6, rel=1e-14)
    assert special.zeta(4 * one, one).item() == pytest.approx(math.pi**4 / 90, rel=1e-14)


@pytest.mark.parametrize("low, high", [(0.02, 30), (24, 60)])
def test_wronskians_of_bessel_functions(low, high):
    x = points(low, high)
    wronskian = special.bessel_j1(x) * special.bessel_y0(x) - special.bessel_j0(
        x) * special.bessel_y1(x)
    close(wronskian, (2 / (math.pi * x)).numpy(), rtol=1e-11)
    modified = special.i0e(x) * special.scaled_modified_bessel_k1(x) + special.i1e(
        x) * special.scaled_modified_bessel_k0(x)
    close(modified, (1 / x).numpy(), rtol=1e-12)


def test_bessel_functions_in_one_argument():
    x = torch.tensor([2.0], dtype=torch.float64)
    # DLMF's tables
    assert special.bessel_j0(x).item() == pytest.approx(0.2238907791412357, rel=1e-13)
    assert special.bessel_y1(x).item() == pytest.approx(-0.1070324315409375, rel=1e-13)
    assert torch.i0(x).item() == pytest.approx(2.2795853023360673, rel=1e-13)
    assert special.modified_bessel_k0(x).item() == pytest.approx(0.1138938727495334, rel=1e-13)


def test_airy_function_solves_its_equation():
    h = 1e-3
    for x in (-15.0, -3.0, -1.0, 0.5, 2.2, 4.0):
        left, mid, right = special.airy_ai(torch.tensor([x - h, x, x + h],
                                                        dtype=torch.float64)).tolist()
        assert (left - 2 * mid + right) / h**2 == pytest.approx(x * mid, rel=1e-4, abs=1e-7)
    zero = special.airy_ai(torch.tensor(0.0, dtype=torch.float64)).item()
    assert zero == pytest.approx(0.3550280538878172, rel=1e-15)


def test_incomplete_gamma_functions():
    x = points(0.01, 30, 97)
    one = torch.ones_like(x)
    close(torch.igamma(one, x), (1 - torch.exp(-x)).numpy(), rtol=1e-12)
    close(torch.igammac(one * 0.5, x), torch.erfc(x.sqrt()).numpy(), rtol=1e-11)
    huge = torch.tensor(1e10, dtype=torch.float64)
    assert torch.igamma(huge, huge).item() == pytest.approx(0.5, abs=1e-5)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 7, 12])
def test_orthogonal_polynomials(n):
    angle = points(0.1, 3, 37)
    x = angle.cos()
    close(special.chebyshev_polynomial_t(x, n), (angle * n).cos().numpy(), rtol=1e-9, atol=1e-12)
    close(special.chebyshev_polynomial_u(x, n) * angle.sin(), (angle * (n + 1)).sin().numpy(),
          rtol=1e-9, atol=1e-12)
    coefficients = [0] * n + [1]
    for f, evaluate in [(special.legendre_polynomial_p, np.polynomial.legendre.legval),
                        (special.hermite_polynomial_h, np.polynomial.hermite.hermval),
                        (special.hermite_polynomial_he, np.polynomial.hermite_e.hermeval),
                        (special.laguerre_polynomial_l, np.polynomial.laguerre.lagval)]:
        close(f(x, n), evaluate(x.numpy(), coefficients), rtol=1e-9, atol=1e-9)
    assert special.chebyshev_polynomial_t(x, -1).tolist() == [0.0] * 37


def test_logarithms_at_the_edges():
    zero, inf = torch.tensor(0.0), math.inf
    assert torch.xlogy(zero, zero) == 0 and special.xlog1py(zero, torch.tensor(-1.0)) == 0
    assert torch.xlogy(zero, torch.tensor(math.nan)).isnan()
    assert special.entr(torch.tensor([0.0, -1.0])).tolist() == [0.0, -inf]
    assert torch.logaddexp(torch.tensor(-inf), torch.tensor(-inf)) == -inf
    assert torch.sinc(zero) == 1
