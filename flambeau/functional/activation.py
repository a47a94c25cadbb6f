"""Activations."""

from __future__ import annotations

from flambeau.functional.register import functional
from flambeau.ops import activations, softmax as softmax_ops
from flambeau.ops.dims import normal_dim
from flambeau.tensor.public import assign, public


def written(name: str, input, result, inplace: bool):
    """`result`, or `input` overwritten by it."""
    return assign(name, input, result) if inplace else result


@functional
def relu(input, inplace=False):
    """max(input, 0)."""
    if inplace:
        return activations.relu.inplace(input, input)
    return activations.relu(input)


public(activations.relu, name="relu", inplace=True, out=False)


@functional
def gelu(input, approximate="none"):
    """input times the normal distribution function at input; "tanh" approximates it."""
    return activations.gelu_tanh(input) if approximate == "tanh" else activations.gelu(input)


def row_dim(name: str, input, dim, dtype):
    if dim is None:  # PyTorch's old rule, kept for scripts that rely on it
        dim = 0 if input.ndim in (0, 1, 3) else 1
    if dtype is not None:
        input = input.to(dtype)
    return input, normal_dim(name, dim, input.ndim)


@functional
def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(input) normalised to sum to one along dim."""
    input, d = row_dim("softmax", input, dim, dtype)
    return softmax_ops.softmax(input, dim=d)


@functional
def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """Logarithm of softmax, computed without overflow."""
    input, d = row_dim("log_softmax", input, dim, dtype)
    return softmax_ops.log_softmax(input, dim=d)


@public(name="softmax")
def tensor_softmax(input, dim, dtype=None):
    """exp(input) normalised to sum to one along dim."""
    return softmax(input, dim, dtype=dtype)


@public(name="log_softmax")
def tensor_log_softmax(input, dim, dtype=None):
    """Logarithm of softmax along dim."""
    return log_softmax(input, dim, dtype=dtype)
