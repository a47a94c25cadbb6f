"""Activations."""

from __future__ import annotations

from flambeau.core.dtype import FLOAT, INTEGER
from flambeau.core.errors import DtypeError, OpError, UnsupportedError, ValueRangeError, complaint
from flambeau.functional.register import functional
from flambeau.ops import activations, choice
from flambeau.ops import softmax as softmax_ops
from flambeau.ops.dims import normal_dim
from flambeau.random.primitives import exponential, rrelu_slopes
from flambeau.tensor.factories import arange
from flambeau.tensor.public import assign, public
from flambeau.tensor.tensor import Tensor


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


@functional(out=True)
def gelu(input, approximate="none"):
    """input times the normal distribution function at input; "tanh" approximates it."""
    if approximate not in ("none", "tanh"):
        raise OpError(
            complaint(
                "gelu",
                "approximate argument must be either none or tanh",
                dict(approximate=approximate),
            )
        )
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


def written_by(name: str, primitive, input, inplace: bool, *parameters):
    """The primitive's result, written over the input if asked."""
    if inplace:  # the primitive keeps what its gradient needs of the value it overwrites
        return primitive.inplace(input, input, *parameters)
    return primitive(input, *parameters)


@functional
def relu6(input, inplace=False):
    """min(max(input, 0), 6)."""
    return hardtanh(input, 0.0, 6.0, inplace)


@functional
def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """input clipped to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueRangeError(
            complaint(
                "hardtanh",
                "min_val cannot be greater than max_val",
                dict(min_val=min_val, max_val=max_val),
            )
        )
    if input.dtype.category == INTEGER:
        min_val, max_val = int(min_val), int(max_val)
    return written_by("hardtanh", activations.hardtanh, input, inplace, min_val, max_val)


@functional
def hardsigmoid(input, inplace=False):
    """input / 6 + 1 / 2, clipped to [0, 1]."""
    return written_by("hardsigmoid", activations.hardsigmoid, input, inplace)


@functional
def hardswish(input, inplace=False):
    """input times hardsigmoid(input)."""
    return written_by("hardswish", activations.hardswish, input, inplace)


@functional
def silu(input, inplace=False):
    """input sigmoid(input)."""
    return written_by("silu", activations.silu, input, inplace)


@functional
def mish(input, inplace=False):
    """input tanh(softplus(input))."""
    return written_by("mish", activations.mish, input, inplace)


@functional
def elu(input, alpha=1.0, inplace=False):
    """input where positive, else alpha (e^input - 1)."""
    return written_by("elu", activations.elu, input, inplace, alpha, 1.0, 1.0)


@functional(toplevel=True)
def selu(input, inplace=False):
    """The self-normalising exponential linear unit (Klambauer et al. 2017)."""
    return written_by(
        "selu", activations.elu, input, inplace, 1.6732632423543772, 1.0507009873554805, 1.0
    )


@functional(toplevel=True)
def celu(input, alpha=1.0, inplace=False):
    """max(input, 0) + min(0, alpha (e^(input / alpha) - 1))."""
    if alpha == 0:
        raise OpError(complaint("celu", "alpha cannot be 0"))
    return written_by("celu", activations.elu, input, inplace, alpha, 1.0, 1.0 / alpha)


@functional
def leaky_relu(input, negative_slope=0.01, inplace=False):
    """input where positive, else negative_slope input."""
    return written_by("leaky_relu", activations.leaky_relu, input, inplace, negative_slope)


@functional(toplevel=True)
def threshold(input, threshold, value, inplace=False):
    """input where it exceeds threshold, else value."""
    if input.dtype.category == INTEGER:
        threshold, value = int(threshold), int(value)
    return written_by("threshold", activations.threshold, input, inplace, threshold, value)


@functional(aliases=("log_sigmoid",), out=True)
def logsigmoid(input):
    """log(1 / (1 + e^-input))."""
    return activations.log_sigmoid(input)


@functional(out=True)
def softplus(input, beta=1.0, threshold=20.0):
    """log(1 + e^(beta input)) / beta; the input itself beyond threshold."""
    return activations.softplus(input, float(beta), float(threshold))


@functional(out=True)
def softshrink(input, lambd=0.5):
    """input moved towards zero by lambd, zero within lambd of it."""
    if lambd < 0:
        raise OpError(
            complaint("softshrink", "lambda must be greater or equal to 0", dict(lambd=lambd))
        )
    return activations.softshrink(input, lambd)


@functional(toplevel=True, out=True)
def hardshrink(input, lambd=0.5):
    """input, zero within lambd of zero."""
    return activations.hardshrink(input, lambd)


Tensor.hardshrink = hardshrink


@functional
def tanhshrink(input):
    """input - tanh(input)."""
    return input - input.tanh()


@functional
def softsign(input):
    """input / (1 + |input|)."""
    return input / (input.abs() + 1)


@functional
def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax(-input)."""
    return softmax(-input, dim, dtype=dtype)


@functional
def sigmoid(input):
    """1 / (1 + e^-input)."""
    return input.sigmoid()


@functional
def tanh(input):
    """The hyperbolic tangent."""
    return input.tanh()


def check_floats(name: str, input) -> None:
    if input.dtype.category < FLOAT:
        raise UnsupportedError(
            complaint(name, f"not implemented for {input.dtype}", hint="Convert with `.float()`.")
        )


@functional
def glu(input, dim=-1):
    """First half times sigmoid(second half) along dim."""
    if input.ndim == 0:
        raise OpError(complaint("glu", "does not support 0-dimensional tensors"))
    d = normal_dim("glu", dim, input.ndim)
    if input.shape[d] % 2:
        raise OpError(
            complaint(
                "glu", "Halving dimension must be even", {"dimension": d, "size": input.shape[d]}
            )
        )
    check_floats("glu", input)
    first, second = input.chunk(2, d)
    return first * second.sigmoid()


@functional(toplevel=True)
def prelu(input, weight):
    """input where positive, else weight input; one weight or one per channel."""
    if input.dtype is not weight.dtype:
        must = "input and weight must have one dtype"
        raise DtypeError(complaint("prelu", must, dict(input=input.dtype, weight=weight.dtype)))
    if weight.ndim > 1:
        raise OpError(
            complaint(
                "prelu", "weight must be a scalar or a vector", dict(weight=list(weight.shape))
            )
        )
    if weight.numel() != 1:
        if input.ndim == 0 or weight.numel() != input.shape[1 if input.ndim > 1 else 0]:
            raise OpError(
                complaint(
                    "prelu",
                    "weight must have one element or one per channel",
                    dict(weight=list(weight.shape), input=list(input.shape)),
                )
            )
        weight = weight.reshape(
            tuple(-1 if d == 1 or input.ndim == 1 else 1 for d in range(input.ndim))
        )
    elif weight.ndim:
        weight = weight.reshape(())
    return choice.where(input > 0, input, weight * input)


Tensor.prelu = prelu


@functional(toplevel=True)
def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """Leaky ReLU with slopes drawn from [lower, upper] in training, their mean otherwise."""
    if lower > upper:
        raise OpError(
            complaint(
                "rrelu",
                "Lower bound should be less than or equal to the upper bound",
                dict(lower=lower, upper=upper),
            )
        )
    check_floats("rrelu", input)
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slopes = rrelu_slopes(input.detach(), low=float(lower), high=float(upper))
    return written("rrelu", input, input * slopes.to(input.dtype), inplace)


@functional
def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Samples of the Gumbel-softmax distribution (Jang et al. 2017)."""
    noise = -exponential(shape=tuple(logits.shape), dtype=logits.dtype, rate=1.0).log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    best = soft.argmax(dim, keepdim=True)
    return choice.where(one_hot_like(soft, best, dim), 1.0, 0.0) - soft.detach() + soft


def one_hot_like(x, index, dim: int):
    d = normal_dim("gumbel_softmax", dim, x.ndim)
    shape = tuple(-1 if k == d else 1 for k in range(x.ndim))
    return arange(x.shape[d]).reshape(shape) == index


def _inplace_forms() -> None:
    """`relu_(x)` and its kin."""
    for f in (relu, elu, selu, celu, hardtanh, leaky_relu, threshold, rrelu):

        def inplace(input, *args, _f=f, **kwargs):
            return _f(input, *args, inplace=True, **kwargs)

        inplace.__doc__ = f"In-place form of {f.__name__}."
        functional(
            inplace,
            name=f.__name__ + "_",
            toplevel=f.__name__ in ("relu", "selu", "celu", "rrelu", "threshold"),
        )


_inplace_forms()
