"""Elementary functions under PyTorch's names: exponentials, trigonometry, rounding, sign."""

from __future__ import annotations

from flambeau.ops import pointwise
from flambeau.tensor.forms import binary, unary

exp = unary(pointwise.exp, "e ** input.")
exp2 = unary(pointwise.exp2, "2 ** input.", special=("exp2",))
expm1 = unary(pointwise.expm1, "e ** input - 1, accurate near 0.", special=("expm1",))
log = unary(pointwise.log, "Natural logarithm.")
log2 = unary(pointwise.log2, "Logarithm to base 2.")
log10 = unary(pointwise.log10, "Logarithm to base 10.")
log1p = unary(pointwise.log1p, "log(1 + input), accurate near 0.", special=("log1p",))
sqrt = unary(pointwise.sqrt, "Square root.")
rsqrt = unary(pointwise.rsqrt, "1 / sqrt(input).")
sigmoid = unary(pointwise.sigmoid, "1 / (1 + e ** -input).", special=("expit",))

sin = unary(pointwise.sin, "Sine.")
cos = unary(pointwise.cos, "Cosine.")
tan = unary(pointwise.tan, "Tangent.")
asin = unary(pointwise.asin, "Inverse sine.", aliases=("arcsin",))
acos = unary(pointwise.acos, "Inverse cosine.", aliases=("arccos",))
atan = unary(pointwise.atan, "Inverse tangent.", aliases=("arctan",))
sinh = unary(pointwise.sinh, "Hyperbolic sine.")
cosh = unary(pointwise.cosh, "Hyperbolic cosine.")
tanh = unary(pointwise.tanh, "Hyperbolic tangent.")
asinh = unary(pointwise.asinh, "Inverse hyperbolic sine.", aliases=("arcsinh",))
acosh = unary(pointwise.acosh, "Inverse hyperbolic cosine.", aliases=("arccosh",))
atanh = unary(pointwise.atanh, "Inverse hyperbolic tangent.", aliases=("arctanh",))
atan2 = binary(pointwise.atan2, "The angle of the point (other, input).", numbers=False,
               aliases=("arctan2",))

abs = unary(pointwise.abs, "Absolute value.", aliases=("absolute",))
sgn = unary(pointwise.sgn, "input / |input|, and 0 at 0.")
sign = unary(pointwise.sign, "-1, 0 or 1.")
floor = unary(pointwise.floor, "The largest integer not above.")
ceil = unary(pointwise.ceil, "The smallest integer not below.")
trunc = unary(pointwise.trunc, "The integer part.", aliases=("fix",))
