"""Frequencies of the bins of a transform, and rotating them so that zero is in the middle."""

from __future__ import annotations

from flambeau.core.errors import OpError, complaint
from flambeau.ops.dims import normal_dim
from flambeau.tensor.factories import arange
from flambeau.tensor.inspection import get_default_dtype
from flambeau.tensor.joining import cat
from flambeau.tensor.public import public


@public(module="fft")
def fftfreq(n, d=1.0, *, dtype=None, layout=None, device=None, requires_grad=False):
    """[0, 1 .. (n - 1) / 2, -(n / 2) .. -1] / (d n)."""
    options = dict(dtype=dtype or get_default_dtype(), device=device)
    positive, negative = arange(0, (n + 1) // 2, **options), arange(-(n // 2), 0, **options)
    return (cat([positive, negative]) * (1.0 / (n * d))).requires_grad_(requires_grad)


@public(module="fft")
def rfftfreq(n, d=1.0, *, dtype=None, layout=None, device=None, requires_grad=False):
    """[0, 1 .. n / 2] / (d n)."""
    whole = arange(0, n // 2 + 1, dtype=dtype or get_default_dtype(), device=device)
    return (whole * (1.0 / (n * d))).requires_grad_(requires_grad)


def shifted(op: str, x, dim, sign: int):
    given = range(x.ndim) if dim is None else [dim] if hasattr(dim, "__index__") else list(dim)
    dims = [normal_dim(op, d, x.ndim) for d in given]
    if not x.ndim:
        raise OpError(complaint(op, "the input must have at least one dimension")) if given else \
            OpError(complaint(op, "shifts and dimensions must align"))
    if not dims:
        return x.clone()
    moves = [x.shape[d] // 2 if sign > 0 else (x.shape[d] + 1) // 2 for d in dims]
    return x.roll(moves, dims)


@public(module="fft", out=False)
def fftshift(input, dim=None):
    """Bins rotated so that frequency zero is in the middle."""
    return shifted("fft.fftshift", input, dim, 1)


@public(module="fft", out=False)
def ifftshift(input, dim=None):
    """The inverse of fftshift."""
    return shifted("fft.ifftshift", input, dim, -1)
