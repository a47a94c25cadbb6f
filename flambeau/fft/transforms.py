"""The eighteen transforms: complex, real or Hermitian; of one, two or n dimensions; and back.

Every one is: choose dimensions and sizes, pad or trim, transform, with a factor of normalisation.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flambeau.core import dtype as dtypes
from flambeau.core.errors import DimError, OpError, UnsupportedError, complaint
from flambeau.ops import fourier
from flambeau.ops.dims import normal_dim
from flambeau.tensor.forms import tensor_argument
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor


def factor(op: str, norm: str | None, forward: bool, count: int) -> float:
    """What multiplies the sums: 1, 1 / n or 1 / sqrt(n)."""
    if norm not in (None, "backward", "forward", "ortho"):
        raise OpError(complaint(op, "norm must be 'forward', 'backward' or 'ortho'",
                                dict(norm=repr(norm))))
    if norm == "ortho":
        return 1 / math.sqrt(count) if count else 1.0
    return 1 / max(count, 1) if (norm == "forward") == forward else 1.0


def ready(op: str, x: Tensor, complex_input: bool) -> Tensor:
    """Integers become the default float; reals become complex where that is needed."""
    tensor_argument(op, x)
    if x.dtype.category < dtypes.FLOAT:
        x = x.to(dtypes.default_dtype())
    if x.dtype.to_real().itemsize < 4:
        raise UnsupportedError(complaint(op, "half precision is not supported", dict(
            dtype=x.dtype), "Convert with `.to(torch.float32)`."))
    return x.to(x.dtype.to_complex()) if complex_input and not x.is_complex() else x


def needs_real(op: str, x: Tensor) -> None:
    if x.is_complex():
        raise OpError(complaint(op, "expected a real input tensor", dict(dtype=x.dtype)))


def resized(x: Tensor, d: int, n: int) -> Tensor:
    """Trimmed, or padded with zeros, to n along d."""
    have = x.shape[d]
    if have == n:
        return x
    if have > n:
        return x.narrow(d, 0, n)
    from flambeau.tensor.joining import cat

    return cat([x, x.new_zeros([n - have if k == d else m for k, m in enumerate(x.shape)])], d)


def sizes(op: str, x: Tensor, s, dim) -> tuple[list[int], list[int]]:
    """(dimensions, sizes): -1 in s keeps a size; s alone means the last dimensions."""
    s = None if s is None else [s] if hasattr(s, "__index__") else list(s)
    if dim is None:
        count = x.ndim if s is None else len(s)
        if count > x.ndim:
            raise OpError(complaint(op, "got shape with more values than input has dimensions",
                                    dict(s=s, ndim=x.ndim)))
        dims = list(range(x.ndim - count, x.ndim))
    else:
        given = [dim] if hasattr(dim, "__index__") else list(dim)
        dims = [normal_dim(op, d, x.ndim) for d in given]
        if len(set(dims)) != len(dims):
            raise OpError(complaint(op, "FFT dims must be unique", dict(dim=given)))
        if s is not None and len(s) != len(dims):
            raise OpError(complaint(op, "when given, dim and shape arguments must have the same "
                                    "length", dict(s=s, dim=given)))
    found = [x.shape[d] if s is None or s[i] == -1 else s[i] for i, d in enumerate(dims)]
    if any(n < 1 for n in found):
        raise OpError(complaint(op, "invalid number of data points", dict(sizes=found)))
    return dims, found


def complex_transform(op: str, x: Tensor, dims, found, norm, forward: bool) -> Tensor:
    x = ready(op, x, True)
    scale = factor(op, norm, forward, math.prod(found))
    for d, n in zip(dims, found):
        x = resized(x, d, n)
    if not dims:
        return x.clone()
    return fourier.fft_complex(x, dims=tuple(dims), scale=scale, forward=forward)


def real_transform(op: str, x: Tensor, dims, found, norm, forward: bool) -> Tensor:
    """Half of the spectrum of a real input."""
    tensor_argument(op, x)
    needs_real(op, x)
    x = ready(op, x, False)
    if not dims:
        raise OpError(complaint(op, "at least one dimension must be transformed"))
    scale = factor(op, norm, forward, math.prod(found))
    for d, n in zip(dims, found):
        x = resized(x, d, n)
    return fourier.fft_from_real(x, dims=tuple(dims), scale=scale, forward=forward)


def hermitian_transform(op: str, x: Tensor, dims, found, norm, forward: bool) -> Tensor:
    """A real output from half of its spectrum; the last of `found` is its length."""
    x = ready(op, x, True)
    if not dims:
        raise OpError(complaint(op, "at least one dimension must be transformed"))
    scale = factor(op, norm, forward, math.prod(found))
    for d, n in zip(dims[:-1], found[:-1]):
        x = resized(x, d, n)
    x = resized(x, dims[-1], found[-1] // 2 + 1)
    return fourier.fft_to_real(x, dims=tuple(dims), size=found[-1], scale=scale, forward=forward)


def halved(op: str, x: Tensor, s, dim) -> tuple[list[int], list[int]]:
    """Like `sizes`, for an input that is half a spectrum: its length defaults to 2 (n - 1)."""
    given = None if s is None else [s] if hasattr(s, "__index__") else list(s)
    open_end = given is None or not given or given[-1] == -1
    dims, found = sizes(op, x, s, dim)
    if dims and open_end:
        found[-1] = 2 * (x.shape[dims[-1]] - 1)
        if found[-1] < 1:
            raise OpError(complaint(op, "invalid number of data points", dict(n=found[-1])))
    return dims, found


KINDS: dict[str, tuple[Callable, Callable, bool]] = {
    "fft": (complex_transform, sizes, True),
    "ifft": (complex_transform, sizes, False),
    "rfft": (real_transform, sizes, True),
    "irfft": (hermitian_transform, halved, False),
    "hfft": (hermitian_transform, halved, True),
    "ihfft": (real_transform, sizes, False),
}
TEXTS = {
    "fft": "The transform of a signal",
    "ifft": "The inverse of fft",
    "rfft": "The first half of the transform of a real signal",
    "irfft": "The inverse of rfft",
    "hfft": "The real transform of a Hermitian signal, given by its first half",
    "ihfft": "The inverse of hfft",
}


def one_dimension(name: str) -> None:
    transform, measure, forward = KINDS[name]

    def function(input, n=None, dim=-1, norm=None):
        op = f"fft.{name}"
        tensor_argument(op, input)
        if not input.ndim:
            raise DimError(complaint(op, "the input must have at least one dimension"))
        d = normal_dim(op, dim, input.ndim)
        if n is not None and n < 1:
            raise OpError(complaint(op, "invalid number of data points", dict(n=n)))
        dims, found = measure(op, input, None if n is None else [n], [d])
        return transform(op, input, dims, found, norm, forward)

    function.__name__, function.__doc__ = name, f"{TEXTS[name]}, along one dimension."
    public(function, name=name, module="fft")


def several_dimensions(name: str, default: tuple[int, int] | None) -> None:
    transform, measure, forward = KINDS[name]
    full = name + ("n" if default is None else "2")

    def function(input, s=None, dim=default, norm=None):
        op = f"fft.{full}"
        tensor_argument(op, input)
        dims, found = measure(op, input, s, dim)
        return transform(op, input, dims, found, norm, forward)

    where = "several dimensions" if default is None else "two dimensions"
    function.__name__, function.__doc__ = full, f"{TEXTS[name]}, along {where}."
    public(function, name=full, module="fft")


for _name in KINDS:
    one_dimension(_name)
    several_dimensions(_name, (-2, -1))
    several_dimensions(_name, None)
