"""Special functions: `torch.special.*`, and those that also have a place in `torch`."""

from __future__ import annotations

import math

from flambeau.core import context
from flambeau.core import dtype as dtypes
from flambeau.core.dtype import FLOAT
from flambeau.core.errors import OpError, complaint
from flambeau.ops import logarithms
from flambeau.ops.special import bessel, error, gamma, polynomials
from flambeau.tensor.forms import binary, tensor_argument, unary
from flambeau.tensor.public import FUNCTIONS, public
from flambeau.tensor.tensor import Tensor

# In `torch` and on Tensor as well ------------------------------------------------------------

erf = unary(error.erf, "The error function.", special=("erf",))
erfc = unary(error.erfc, "1 - erf, accurate where it is small.", special=("erfc",))
erfinv = unary(error.erfinv, "The inverse of erf.", special=("erfinv",))
lgamma = unary(gamma.lgamma, "log |gamma(input)|.", special=("gammaln",))
digamma = unary(gamma.digamma, "The derivative of lgamma.", special=("digamma", "psi"))
i0 = unary(bessel.i0, "The modified Bessel function I of order 0.", special=("i0",))
sinc = unary(logarithms.sinc, "sin(pi x) / (pi x).", special=("sinc",))
igamma = binary(gamma.igamma, "The regularised lower incomplete gamma function P(input, other).",
                numbers=False, special=("gammainc",))
igammac = binary(gamma.igammac, "The regularised upper incomplete gamma function Q(input, other).",
                 numbers=False, special=("gammaincc",))
xlogy = binary(logarithms.xlogy, "input log(other), and 0 where input is 0.", number_first=True,
               inplace_function=True, special=("xlogy",))
logaddexp = binary(logarithms.logaddexp, "log(e ** input + e ** other).", numbers=False,
                   inplace=False)
logaddexp2 = binary(logarithms.logaddexp2, "log2(2 ** input + 2 ** other).", numbers=False,
                    inplace=False)
hypot = binary(logarithms.hypot, "sqrt(input ** 2 + other ** 2).", numbers=False)


def logit_(self, eps=None):
    """self <- log(self / (1 - self))."""
    return context.bind_inplace(logarithms.logit, self, (self,), dict(eps=eps))


@public(inplace=logit_, inplace_function=True, special=("logit",))
def logit(input, eps=None):
    """log(x / (1 - x)), with x first limited to [eps, 1 - eps]."""
    return logarithms.logit(tensor_argument("logit", input), eps=eps)


# polygamma -----------------------------------------------------------------------------------


def polygamma_of(n: int, x: Tensor) -> Tensor:
    """The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, x)."""
    if not isinstance(n, int) or n < 0:
        raise OpError(complaint("polygamma", "polygamma(n, x) does not support negative n",
                                dict(n=n)))
    if n == 0:
        return digamma(x)
    if x.dtype.category < FLOAT:
        x = x.to(dtypes.default_dtype())
    sign = 1.0 if n % 2 else -1.0
    return gamma.zeta(float(n + 1), x) * (sign * math.factorial(n))


@public(method=False, special=("polygamma",))
def polygamma(n, input):
    """The n-th derivative of the digamma function."""
    return polygamma_of(n, tensor_argument("polygamma", input))


@public(function=False, name="polygamma", out=False)
def polygamma_method(self, n):
    """The n-th derivative of the digamma function."""
    return polygamma_of(n, self)


@public(function=False, out=False)
def polygamma_(self, n):
    """self <- its polygamma of order n."""
    return self.copy_(polygamma_of(n, self))


@public(inplace=True, special=("multigammaln",))
def mvlgamma(input, p):
    """The logarithm of the multivariate gamma function of dimension p."""
    if p < 1:
        raise OpError(complaint("mvlgamma", "p has to be greater than or equal to 1", dict(p=p)))
    x = input if input.dtype.category >= FLOAT else input.to(dtypes.default_dtype())
    total = p * (p - 1) / 4 * math.log(math.pi)
    for j in range(p):
        total = lgamma(x - j / 2) + total
    return total


# Only in torch.special -----------------------------------------------------------------------


def special_unary(primitive, doc: str) -> None:
    unary(primitive, doc, module="special", method=False, inplace=False)


def special_binary(primitive, doc: str) -> None:
    binary(primitive, doc, module="special", method=False, inplace=False, number_first=True)


for _primitive, _doc in [
        (error.erfcx, "e ** (x * x) erfc(x)."), (error.ndtr, "The normal distribution function."),
        (error.ndtri, "The quantile function of the normal distribution."),
        (error.log_ndtr, "The logarithm of the normal distribution function."),
        (logarithms.entr, "-x log(x)."), (bessel.airy_ai, "Airy's function Ai."),
        (bessel.spherical_bessel_j0, "sin(x) / x.")]:
    special_unary(_primitive, _doc)

for _name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "i0e", "i1", "i1e",
              "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0",
              "scaled_modified_bessel_k1"):
    special_unary(getattr(bessel, _name), f"The Bessel function {_name}.")
for _name, _primitive in (("modified_bessel_i0", bessel.i0), ("modified_bessel_i1", bessel.i1)):
    unary(_primitive, f"The Bessel function {_name}.", name=_name, module="special", method=False,
          inplace=False)
for _name, _primitive in polynomials.POLYNOMIALS.items():
    special_binary(_primitive, f"{_name}: of `input`, of degree `other`.")
special_binary(logarithms.xlog1py, "input log(1 + other), and 0 where input is 0.")
special_binary(gamma.zeta, "Hurwitz's zeta function: the sum of (other + k) ** -input.")


@public(module="special", method=False)
def log_softmax(input, dim, *, dtype=None):
    """log(softmax(input)) along `dim`."""
    return FUNCTIONS[""]["log_softmax"](input, dim, dtype=dtype)


@public(module="special", method=False)
def softmax(input, dim, *, dtype=None):
    """e ** input over its sum along `dim`."""
    return FUNCTIONS[""]["softmax"](input, dim, dtype=dtype)
