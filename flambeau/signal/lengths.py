"""`torch.hann_window` and its siblings, which take a length and are periodic by default."""

from __future__ import annotations

from collections.abc import Callable

from flambeau.core.errors import OpError, complaint
from flambeau.signal import windows
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor


def checked(op: str, window_length: int, dtype) -> None:
    if dtype is not None and not dtype.is_floating_point:
        raise OpError(complaint(op, "expects floating point dtypes", dict(dtype=dtype)))
    if window_length < 0:
        raise OpError(complaint(op, "requires non-negative window_length",
                                dict(window_length=window_length)))


def made(op: str, window: Callable[..., Tensor], length: int, periodic: bool, dtype, device,
         requires_grad: bool, **shape) -> Tensor:
    checked(op, length, dtype)
    return window(length, sym=not periodic, dtype=dtype, device=device,
                  requires_grad=requires_grad, **shape)


@public(method=False, out=False)
def bartlett_window(window_length, periodic=True, *, dtype=None, layout=None, device=None,
                    pin_memory=False, requires_grad=False):
    """A triangle."""
    return made("bartlett_window", windows.bartlett, window_length, periodic, dtype, device,
                requires_grad)


@public(method=False, out=False)
def blackman_window(window_length, periodic=True, *, dtype=None, layout=None, device=None,
                    pin_memory=False, requires_grad=False):
    """0.42 - 0.5 cos(x) + 0.08 cos(2 x)."""
    return made("blackman_window", windows.blackman, window_length, periodic, dtype, device,
                requires_grad)


@public(method=False, out=False)
def hann_window(window_length, periodic=True, *, dtype=None, layout=None, device=None,
                pin_memory=False, requires_grad=False):
    """(1 - cos(x)) / 2."""
    return made("hann_window", windows.hann, window_length, periodic, dtype, device,
                requires_grad)


@public(method=False, out=False)
def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None,
                   layout=None, device=None, pin_memory=False, requires_grad=False):
    """alpha - beta cos(x)."""
    return made("hamming_window", windows.general_cosine, window_length, periodic, dtype, device,
                requires_grad, a=[alpha, beta])


@public(method=False, out=False)
def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, layout=None,
                  device=None, pin_memory=False, requires_grad=False):
    """i0(beta sqrt(1 - x^2)) / i0(beta)."""
    return made("kaiser_window", windows.kaiser, window_length, periodic, dtype, device,
                requires_grad, beta=float(beta))
