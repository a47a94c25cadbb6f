"""`torch.signal.windows`: tapering windows of M points.

Symmetric ones (`sym=True`) reach both ends; periodic ones leave out the last point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from flambeau.core.errors import ArgumentError, ValueRangeError, complaint
from flambeau.tensor.factories import arange, linspace
from flambeau.tensor.inspection import get_default_dtype
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
           "general_hamming", "hamming", "hann", "kaiser", "nuttall"]


def points(op: str, M: int, start: float, end: float, options: dict) -> Tensor:
    """M points from start to end, in the dtype of the window."""
    dtype, device = options["dtype"] or get_default_dtype(), options["device"]
    if not dtype.is_floating_point or dtype.itemsize < 4:
        raise ValueRangeError(complaint(op, "expects float32 or float64 dtypes", dict(dtype=dtype)))
    if options["layout"] is not None and str(options["layout"]) != "torch.strided":
        raise ValueRangeError(complaint(op, "is implemented for strided tensors only",
                                        dict(layout=options["layout"])))
    if M < 0:
        raise ValueRangeError(complaint(op, "requires non-negative window length", dict(M=M)))
    if M == 0:
        return arange(0, dtype=dtype, device=device)
    return linspace(start, end, M, dtype=dtype, device=device)


def finished(window: Tensor, options: dict) -> Tensor:
    return window.requires_grad_() if options["requires_grad"] else window


def keywords(dtype, layout, device, requires_grad) -> dict:
    return dict(dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def windowed(f):
    return public(f, module="signal.windows", out=False)


@windowed
def general_cosine(M, *, a, sym=True, dtype=None, layout=None, device=None,
                   requires_grad=False):
    """The sum of (-1)^i a[i] cos(2 pi i n / (M - 1))."""
    options = keywords(dtype, layout, device, requires_grad)
    if not isinstance(a, Iterable):
        raise ArgumentError(complaint("general_cosine", "coefficients must be a list/tuple",
                                      dict(a=repr(a))))
    if not a:
        raise ValueRangeError(complaint("general_cosine", "coefficients cannot be empty"))
    end = 2 * math.pi * (1 if sym or M < 2 else (M - 1) / M)
    n = points("general_cosine", M, 0, end if M != 1 else 0, options)
    total = n * 0
    for i, weight in enumerate(a):
        total = total + (-1) ** i * weight * (n * i).cos()
    if M == 1:
        total = total * 0 + 1
    return finished(total, options)


@windowed
def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=None,
                    device=None, requires_grad=False):
    """alpha - (1 - alpha) cos(2 pi n / (M - 1))."""
    return general_cosine(M, a=[alpha, 1 - alpha], sym=sym, dtype=dtype, layout=layout,
                          device=device, requires_grad=requires_grad)


@windowed
def hamming(M, *, sym=True, dtype=None, layout=None, device=None,
            requires_grad=False):
    """general_hamming with alpha 0.54."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device,
                           requires_grad=requires_grad)


@windowed
def hann(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """general_hamming with alpha 0.5."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device,
                           requires_grad=requires_grad)


@windowed
def blackman(M, *, sym=True, dtype=None, layout=None, device=None,
             requires_grad=False):
    """Three cosine terms: 0.42, 0.5, 0.08."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout,
                          device=device, requires_grad=requires_grad)


@windowed
def nuttall(M, *, sym=True, dtype=None, layout=None, device=None,
            requires_grad=False):
    """Four cosine terms with the lowest side lobes (Nuttall 1981)."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym,
                          dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


@windowed
def cosine(M, *, sym=True, dtype=None, layout=None, device=None,
           requires_grad=False):
    """sin(pi (n + 1/2) / M)."""
    options = keywords(dtype, layout, device, requires_grad)
    step = math.pi / (M if sym or M == 1 else M + 1) if M else 0.0
    n = points("cosine", M, 0.5 * step, (M - 0.5) * step, options)
    return finished(n.sin(), options)


@windowed
def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=None,
                device=None, requires_grad=False):
    """exp(-|n - center| / tau)."""
    options = keywords(dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueRangeError(complaint("exponential", "Tau must be positive", dict(tau=tau)))
    if sym and center is not None:
        raise ValueRangeError(complaint("exponential", "Center must be None for symmetric windows",
                                        dict(center=center)))
    middle = (M if not sym and M > 1 else M - 1) / 2 if center is None else center
    n = points("exponential", M, -middle / tau, (-middle + M - 1) / tau, options)
    return finished((-n.abs()).exp(), options)


@windowed
def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=None, device=None,
             requires_grad=False):
    """exp(-(n - middle)^2 / (2 std^2))."""
    options = keywords(dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueRangeError(complaint("gaussian", "Standard deviation must be positive",
                                        dict(std=std)))
    middle = (M if not sym and M > 1 else M - 1) / 2
    scale = 1 / (std * math.sqrt(2))
    n = points("gaussian", M, -middle * scale, (-middle + M - 1) * scale, options)
    return finished((-n * n).exp(), options)


@windowed
def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=None, device=None,
           requires_grad=False):
    """i0(beta sqrt(1 - ((n - middle) / middle)^2)) / i0(beta)."""
    options = keywords(dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueRangeError(complaint("kaiser", "beta must be non-negative", dict(beta=beta)))
    n = points("kaiser", M, 0, 0, options)
    if M == 1:
        return finished(n * 0 + 1, options)
    if M:
        end = beta if sym else -beta + 2.0 * beta * (M - 1) / M
        n = points("kaiser", M, -beta, end, options)
    top = n.new_full((), beta)
    inside = (top * top - n * n).clamp(min=0).sqrt()
    return finished(inside.i0() / top.i0(), options)


@windowed
def bartlett(M, *, sym=True, dtype=None, layout=None, device=None,
             requires_grad=False):
    """A triangle: 1 - |2 n / (M - 1) - 1|."""
    options = keywords(dtype, layout, device, requires_grad)
    end = 1.0 if sym or M < 2 else 1.0 - 2.0 / M
    n = points("bartlett", M, -1, end, options)
    if M == 1:
        return finished(n * 0 + 1, options)
    return finished(1 - n.abs(), options)
