"""Short-time Fourier transforms: windows of a signal, each transformed, and overlap-add back."""

from __future__ import annotations

import math

from flambeau.core.errors import OpError, complaint
from flambeau.fft import transforms
from flambeau.tensor.public import FUNCTIONS, public
from flambeau.tensor.tensor import Tensor


def fft_of(name: str):
    return FUNCTIONS["fft"][name]


def centred_window(x: Tensor, window: Tensor | None, length: int, n_fft: int, dtype) -> Tensor:
    """The window (ones by default) with zeros on both sides up to n_fft."""
    if window is None:
        if length == n_fft:
            return x.new_ones((n_fft,), dtype=dtype)
        window = x.new_ones((length,), dtype=dtype)
    if length == n_fft:
        return window
    left = (n_fft - length) // 2
    right = n_fft - length - left
    from flambeau.tensor.joining import cat

    return cat([window.new_zeros((left,)), window, window.new_zeros((right,))])


def check_window(op: str, n_fft: int, hop: int, length: int, window: Tensor | None) -> None:
    problem = None
    if hop <= 0:
        problem = "hop_length must be positive"
    elif length <= 0 or length > n_fft:
        problem = "0 < win_length <= n_fft must hold"
    elif window is not None and (window.ndim != 1 or window.shape[0] != length):
        problem = "window must be a vector of win_length elements"
    if problem:
        raise OpError(complaint(op, problem, dict(
            n_fft=n_fft, hop_length=hop, win_length=length,
            window=None if window is None else list(window.shape))))


def padded(x: Tensor, side: int, mode: str) -> Tensor:
    """`side` elements more at both ends of the last dimension."""
    if mode == "constant":
        zero = x.new_zeros((*x.shape[:-1], side))
        from flambeau.tensor.joining import cat

        return cat([zero, x, zero], -1)
    if mode == "reflect" and side >= x.shape[-1]:
        raise OpError(complaint("stft", "padding size should be less than the corresponding input "
                                "dimension", dict(padding=side, size=x.shape[-1])))
    from flambeau.functional.padding import pad

    return pad(x.unsqueeze(0), (side, side), mode).squeeze(0)


@public(out=False)
def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True,
         pad_mode="reflect", normalized=False, onesided=None, return_complex=None,
         align_to_window=None):
    """(.., frequencies, frames): the transform of overlapping windows of a signal."""
    op = "stft"
    if input.ndim not in (1, 2) or not (input.is_floating_point() or input.is_complex()):
        raise OpError(complaint(op, "expected a 1D or 2D tensor of floating types", dict(
            shape=list(input.shape), dtype=input.dtype)))
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    check_window(op, n_fft, hop, length, window)
    complex_input = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None and not complex_input:
        raise OpError(complaint(op, "return_complex must be given for real inputs",
                                dict(return_complex=None), "Pass return_complex=True."))
    x = input.unsqueeze(0) if input.ndim == 1 else input
    x = padded(x, n_fft // 2, pad_mode) if center else x
    if n_fft <= 0 or n_fft > x.shape[-1]:
        raise OpError(complaint(op, f"expected 0 < n_fft <= {x.shape[-1]}", dict(n_fft=n_fft)))
    frames = x.unfold(-1, n_fft, hop) * centred_window(x, window, length, n_fft, x.dtype)
    half = not complex_input if onesided is None else onesided
    if half and complex_input:
        raise OpError(complaint(op, "cannot have onesided output if window or input is complex"))
    norm = "ortho" if normalized else None
    y = fft_of("rfft" if half else "fft")(frames, norm=norm).transpose(-1, -2)
    y = y.squeeze(0) if input.ndim == 1 else y
    return FUNCTIONS[""]["view_as_real"](y) if return_complex is False else y


@public(out=False)
def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True,
          normalized=False, onesided=None, length=None, return_complex=False):
    """The signal whose windows have these transforms, by least squares (Griffin and Lim 1984)."""
    op = "istft"
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    half = input.shape[-2] != n_fft if onesided is None and input.ndim > 1 else onesided
    check_spectrum(op, input, n_fft, hop, width, half, return_complex)
    check_window(op, n_fft, hop, width, window)
    x = input.unsqueeze(0) if input.ndim == 2 else input
    x = x.transpose(-1, -2)  # (batch, frames, frequencies)
    norm = "ortho" if normalized else None
    if return_complex:
        pieces = fft_of("ifft")(x, n_fft, norm=norm)
    else:  # of a whole spectrum only the first half counts
        pieces = fft_of("irfft")(x[..., :n_fft // 2 + 1], n_fft, norm=norm)
    shape = centred_window(pieces, window, width, n_fft, pieces.dtype.to_real())
    y = overlapped(pieces * shape, hop)
    weight = overlapped((shape * shape).expand((1, pieces.shape[1], n_fft)), hop)
    start = n_fft // 2 if center else 0
    total = n_fft + hop * (pieces.shape[1] - 1)
    end = start + length if length is not None else total - start if center else total
    y, weight = y[..., start:end], weight[..., start:end]
    if weight._array is not None and weight.numel() and float(weight.abs().min()) < 1e-11:
        raise OpError(complaint(op, "window overlap add must not be zero", dict(
            minimum=float(weight.abs().min())), "Use a window and hop_length that cover all."))
    y = y / weight
    if end > total:
        y = transforms.resized(y, y.ndim - 1, end - start)
    return y.squeeze(0) if input.ndim == 2 else y


def check_spectrum(op: str, x: Tensor, n_fft: int, hop: int, width: int, half: bool,
                   return_complex: bool) -> None:
    problem = None
    if not x.is_complex():
        problem = "requires a complex-valued input tensor"
    elif not x.numel():
        problem = "input tensor cannot be empty"
    elif x.ndim not in (2, 3):
        problem = "expected a tensor with 2 or 3 dimensions"
    elif x.shape[-2] != (n_fft // 2 + 1 if half else n_fft):
        problem = "the frequencies must be n_fft / 2 + 1, or n_fft if not onesided"
    elif not 0 < hop <= width:
        problem = "expected 0 < hop_length <= win_length"
    elif return_complex and half:
        problem = "cannot have onesided input with return_complex=True"
    if problem:
        raise OpError(complaint(op, problem, dict(shape=list(x.shape), dtype=x.dtype,
                                                  n_fft=n_fft, hop_length=hop)))


def overlapped(frames: Tensor, hop: int) -> Tensor:
    """(batch, frames, n) added up at steps of `hop`: rows of hop elements, shifted and summed."""
    batch, count, n = frames.shape
    parts = math.ceil(n / hop)
    frames = transforms.resized(frames, 2, parts * hop).reshape((batch, count, parts, hop))
    rows = [transforms.resized(frames[:, :, k], 1, count + parts - 1).roll(k, 1)
            for k in range(parts)]
    total = rows[0]
    for row in rows[1:]:
        total = total + row
    return total.reshape((batch, -1))[:, :n + hop * (count - 1)]


__all__ = ["stft", "istft"]
