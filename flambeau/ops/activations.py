"""Activations that are one kernel each."""

from __future__ import annotations

import math

import numpy as np

from flambeau.ops.elementwise import pointwise


def relu_ref(x):
    return np.maximum(x, x.dtype.type(0))


def relu_into(out, x) -> None:
    np.maximum(x, x.dtype.type(0), out=out)


relu = pointwise("relu", relu_ref, low=0.1, into=relu_into,
                 vjp=dict(x=lambda ct, out: ct.masked_fill(out <= 0, 0.0)))


def normal_distribution(x: np.ndarray) -> np.ndarray:
    """Probability that a standard normal number is below x."""
    from flambeau.ops.error_function import erf

    return 0.5 * (1 + erf(x * np.asarray(math.sqrt(0.5), x.dtype)))


def gelu_ref(x):
    return (x * normal_distribution(x)).astype(x.dtype, copy=False)


def gelu_vjp(ct, x):
    return gelu_backward(ct, x)


gelu = pointwise("gelu", gelu_ref, rule="float", vjp=dict(x=gelu_vjp))


def gelu_backward_ref(g, x):
    """g (Phi(x) + x phi(x))."""
    density = np.exp(-0.5 * x * x) * np.asarray(1 / math.sqrt(2 * math.pi), x.dtype)
    return (g * (normal_distribution(x) + x * density)).astype(x.dtype, copy=False)


def gelu_backward_decomposed(g, x):
    return g * (0.5 * (1 + (x * math.sqrt(0.5)).erf())
                + x * (-0.5 * x * x).exp() / math.sqrt(2 * math.pi))


gelu_backward = pointwise("gelu_backward", gelu_backward_ref, rule="float", names=("g", "x"),
                          vjp="decompose", decompose=gelu_backward_decomposed)

SQRT_2_PI = math.sqrt(2 / math.pi)


def gelu_tanh_ref(x):
    return 0.5 * x * (1 + np.tanh(SQRT_2_PI * (x + 0.044715 * x * x * x)))


def gelu_tanh_decomposed(x):
    return 0.5 * x * (1 + (SQRT_2_PI * (x + 0.044715 * x * x * x)).tanh())


gelu_tanh = pointwise("gelu_tanh", gelu_tanh_ref, rule="float", vjp="decompose",
                      decompose=gelu_tanh_decomposed)
