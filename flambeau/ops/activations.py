"""Activations that are one kernel each."""

from __future__ import annotations

import math

import numpy as np

from flambeau.core.dtype import COMPLEX, FLOAT, INTEGER
from flambeau.loops.api import const, maximum, minimum, unary
from flambeau.loops.api import where as select
from flambeau.ops.choice import where
from flambeau.ops.creation import like
from flambeau.ops.elementwise import pointwise
from flambeau.ops.error_function import erf
from flambeau.ops.pointwise import conj, sigmoid_ref

# Scalar forms, in the loop language, stand beside the NumPy references.


FLOATS, NUMBERS = (FLOAT, COMPLEX), (INTEGER, FLOAT, COMPLEX)


def gelu_form(x):
    return x * 0.5 * (unary("erf", x * math.sqrt(0.5)) + 1.0)


def gelu_backward_form(g, x):
    return g * (unary("gelu_slope", x) * 0.5 + 0.5)


def gelu_tanh_form(x):
    return x * 0.5 * (unary("tanh", (x + x * x * x * 0.044715) * SQRT_2_PI) + 1.0)


def relu_ref(x):
    return np.maximum(x, x.dtype.type(0))


def relu_into(out, x) -> None:
    np.maximum(x, x.dtype.type(0), out=out)


relu = pointwise(
    "relu",
    relu_ref,
    scalar=lambda x: maximum(x, 0),
    low=0.1,
    into=relu_into,
    vjp=dict(x=lambda ct, out: relu_backward(ct, out)),
)


def zero_gradient(_y):
    """The result does not change with y wherever it has a derivative."""
    return like(_y, 0)


def relu_backward_ref(g, y):
    return np.where(y <= 0, g.dtype.type(0), g)


relu_backward = pointwise(
    "relu_backward",
    relu_backward_ref,
    scalar=lambda g, y: select(y <= 0, 0, g),
    low=0.1,
    names=("g", "y"),
    vjp=dict(g=lambda ct, y: relu_backward(ct, y), y=zero_gradient),
)


def normal_distribution(x: np.ndarray) -> np.ndarray:
    """Probability that a standard normal number is below x."""
    return 0.5 * (1 + erf(x * np.asarray(math.sqrt(0.5), x.dtype)))


def gelu_ref(x):
    return (x * normal_distribution(x)).astype(x.dtype, copy=False)


def gelu_vjp(ct, x):
    return gelu_backward(ct, x)


gelu = pointwise(
    "gelu", gelu_ref, takes=FLOATS, scalar=gelu_form, rule="float", vjp=dict(x=gelu_vjp)
)


def gelu_backward_ref(g, x):
    """g (Phi(x) + x phi(x))."""
    near = np.where(np.isinf(x), x.dtype.type(0), x)
    density = np.exp(-0.5 * near * near) * np.asarray(1 / math.sqrt(2 * math.pi), x.dtype)
    return (g * (normal_distribution(x) + near * density)).astype(x.dtype, copy=False)


def gelu_backward_decomposed(g, x):
    return g * (
        0.5 * (1 + (x * math.sqrt(0.5)).erf()) + x * (-0.5 * x * x).exp() / math.sqrt(2 * math.pi)
    )


gelu_backward = pointwise(
    "gelu_backward",
    gelu_backward_ref,
    scalar=gelu_backward_form,
    rule="float",
    names=("g", "x"),
    vjp="decompose",
    decompose=gelu_backward_decomposed,
)

SQRT_2_PI = math.sqrt(2 / math.pi)


def gelu_tanh_ref(x):
    return 0.5 * x * (1 + np.tanh(SQRT_2_PI * (x + 0.044715 * x * x * x)))


def gelu_tanh_decomposed(x):
    return 0.5 * x * (1 + (SQRT_2_PI * (x + 0.044715 * x * x * x)).tanh())


gelu_tanh = pointwise(
    "gelu_tanh",
    gelu_tanh_ref,
    takes=FLOATS,
    scalar=gelu_tanh_form,
    rule="float",
    vjp="decompose",
    decompose=gelu_tanh_decomposed,
)

# Smooth ---------------------------------------------------------------------------------------


def silu_ref(x):
    return x * sigmoid_ref(x)


def silu_vjp(ct, x):
    s = x.sigmoid()
    return ct * conj(s * (1 + x * (1 - s)))


silu = pointwise(
    "silu",
    silu_ref,
    takes=FLOATS,
    scalar=lambda x: x * unary("sigmoid", x),
    rule="float",
    vjp=dict(x=silu_vjp),
)


def softplus_ref(x, beta, threshold):
    """log(1 + e^(beta x)) / beta, and x itself where beta x > threshold."""
    z = x * beta
    near = np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0)
    return np.where(z > threshold, x, near / beta)


def softplus_form(x, beta, threshold):
    z = x * beta
    near = unary("log1p", unary("exp", -unary("abs", z))) + maximum(z, 0)
    return select(z > threshold, x, near / beta)


def softplus_vjp(ct, x, beta, threshold):
    z = x * beta
    return where(z > threshold, ct, ct * z.sigmoid())


def parameter_samples(*values, low=-2.0, high=2.0):
    def samples(rng):
        for shape in [(), (3,), (2, 3), (0,)]:
            yield (rng.uniform(low, high, shape), *values), {}

    return samples


softplus = pointwise(
    "softplus",
    softplus_ref,
    takes=FLOATS,
    rule="float",
    names=("x", "beta", "threshold"),
    scalar=softplus_form,
    vjp=dict(x=softplus_vjp),
    samples=parameter_samples(1.5, 20.0),
)


def log_sigmoid_ref(x):
    """-log(1 + e^-x) without overflow."""
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def log_sigmoid_form(x):
    return minimum(x, 0) - unary("log1p", unary("exp", -unary("abs", x)))


log_sigmoid = pointwise(
    "log_sigmoid",
    log_sigmoid_ref,
    takes=FLOATS,
    rule="float",
    scalar=log_sigmoid_form,
    vjp=dict(x=lambda ct, x: ct * (-x).sigmoid()),
)


def mish_ref(x):
    return x * np.tanh(softplus_ref(x, 1.0, 20.0))


def mish_vjp(ct, x):
    t = softplus(x, 1.0, 20.0).tanh()
    return ct * (t + x * (1 - t * t) * x.sigmoid())


def mish_form(x):
    return x * unary("tanh", softplus_form(x, const(1.0, x.dtype), const(20.0, x.dtype)))


mish = pointwise(
    "mish", mish_ref, takes=FLOATS, rule="float", scalar=mish_form, vjp=dict(x=mish_vjp)
)


def elu_ref(x, alpha, scale, input_scale):
    """scale max(x, 0) + scale alpha (e^(input_scale x) - 1) for negative x."""
    return np.where(x > 0, x * scale, np.expm1(np.minimum(x, 0) * input_scale) * (alpha * scale))


def elu_form(x, alpha, scale, input_scale):
    low = unary("expm1", minimum(x, 0) * input_scale) * (alpha * scale)
    return select(x > 0, x * scale, low)


def elu_vjp(ct, x, alpha, scale, input_scale):
    slope = (x.clamp(max=0) * input_scale).exp() * (alpha * scale * input_scale)
    return where(x > 0, ct * scale, ct * slope)


elu = pointwise(
    "elu",
    elu_ref,
    takes=FLOATS,
    rule="float",
    names=("x", "alpha", "scale", "input_scale"),
    scalar=elu_form,
    vjp=dict(x=elu_vjp),
    samples=parameter_samples(1.2, 1.1, 0.9),
)

# Piecewise linear -----------------------------------------------------------------------------


def leaky_relu_ref(x, slope):
    return np.where(x > 0, x, x * slope)


leaky_relu = pointwise(
    "leaky_relu",
    leaky_relu_ref,
    takes=FLOATS,
    rule="float",
    names=("x", "slope"),
    scalar=lambda x, slope: select(x > 0, x, x * slope),
    vjp=dict(x=lambda ct, x, slope: where(x > 0, ct, ct * slope)),
    samples=parameter_samples(0.1),
)


def threshold_ref(x, limit, value):
    return np.where(x <= limit, np.asarray(value).astype(x.dtype), x)


threshold = pointwise(
    "threshold",
    threshold_ref,
    takes=NUMBERS,
    names=("x", "limit", "value"),
    scalar=lambda x, limit, value: select(x <= limit, value, x),
    vjp=dict(x=lambda ct, x, limit: where(x <= limit, 0, ct)),
    samples=parameter_samples(0.05, 1.0, low=0.1),
)


def hardtanh_ref(x, low, high):
    return np.clip(x, low, high)


hardtanh = pointwise(
    "hardtanh",
    hardtanh_ref,
    takes=NUMBERS,
    names=("x", "low", "high"),
    scalar=lambda x, low, high: minimum(maximum(x, low), high),
    vjp=dict(x=lambda ct, x, low, high: where((x <= low) | (x >= high), 0, ct)),
    samples=parameter_samples(-1.1, 1.1),
)


def six_clipped(x):
    """x + 3 within [0, 6]"""
    return minimum(maximum(x + 3, 0), 6)


def hardsigmoid_ref(x):
    return np.clip(x + 3, 0, 6) / 6


hardsigmoid = pointwise(
    "hardsigmoid",
    hardsigmoid_ref,
    takes=FLOATS,
    rule="float",
    scalar=lambda x: six_clipped(x) / 6,
    vjp=dict(x=lambda ct, x: where((x > -3) & (x < 3), ct / 6, 0)),
)


def hardswish_ref(x):
    return x * np.clip(x + 3, 0, 6) / 6


def hardswish_vjp(ct, x):
    return where(x <= -3, 0, where(x < 3, ct * (x / 3 + 0.5), ct))


hardswish = pointwise(
    "hardswish",
    hardswish_ref,
    takes=FLOATS,
    rule="float",
    vjp=dict(x=hardswish_vjp),
    scalar=lambda x: x * six_clipped(x) / 6,
)


def softshrink_ref(x, width):
    return np.where(x > width, x - width, np.where(x < -width, x + width, x * 0))


def softshrink_form(x, width):
    return select(x > width, x - width, select(x < -width, x + width, x * 0))


softshrink = pointwise(
    "softshrink",
    softshrink_ref,
    takes=FLOATS,
    rule="float",
    names=("x", "width"),
    low=0.6,
    scalar=softshrink_form,
    vjp=dict(x=lambda ct, x, width: where((x <= width) & (x >= -width), 0, ct)),
    samples=parameter_samples(0.5, low=0.6),
)


def hardshrink_ref(x, width):
    return np.where((x >= -width) & (x <= width), x.dtype.type(0), x)


hardshrink = pointwise(
    "hardshrink",
    hardshrink_ref,
    names=("x", "width"),
    takes=FLOATS,
    scalar=lambda x, width: select((x >= -width) & (x <= width), 0, x),
    vjp=dict(x=lambda ct, x, width: where((x <= width) & (x >= -width), 0, ct)),
    samples=parameter_samples(0.5, low=0.6),
)
