"""Discrete Fourier transforms over several dimensions: complex, from real, to real.

`scale` multiplies the sums and `forward` gives the sign of the exponent, so that the three
normalisations of PyTorch are numbers here. Each transform's derivative is another one.
"""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import OpError, complaint
from flambeau.core.spec import Spec
from flambeau.ops.registry import primitive


def check_sizes(op: str, x: Spec, dims) -> None:
    if any(x.shape[d] < 1 for d in dims):
        raise OpError(complaint(op, "the number of data points must be positive", dict(
            shape=list(x.shape), dim=list(dims))))


def complex_meta(x: Spec, *, dims, scale, forward) -> Spec:
    check_sizes("fft", x, dims)
    return x.like(shape=tuple(x.shape))


def complex_ref(x, *, dims, scale, forward):
    """NumPy scales by 1 with norm "backward" forwards and "forward" backwards."""
    y = np.fft.fftn(x, axes=dims) if forward else np.fft.ifftn(x, axes=dims, norm="forward")
    return y if scale == 1 else y * y.dtype.type(scale)


def complex_vjp(ct, dims, scale, forward):
    return fft_complex(ct, dims=dims, scale=scale, forward=not forward)


def complex_samples(rng):
    for shape, dims in [((4,), (0,)), ((2, 3), (0, 1)), ((2, 3, 4), (1,)), ((0, 3), (1,))]:
        for forward in (True, False):
            yield ((rng.normal(size=shape) + 1j * rng.normal(size=shape),),
                   dict(dims=dims, scale=0.5, forward=forward))


fft_complex = primitive("fft_complex", meta=complex_meta, ref=complex_ref,
                        vjp=dict(x=complex_vjp), samples=complex_samples)

# From real -----------------------------------------------------------------------------------


def from_real_meta(x: Spec, *, dims, scale, forward) -> Spec:
    """The last of `dims` keeps its first half, as the rest follows by symmetry."""
    check_sizes("rfft", x, dims)
    shape = list(x.shape)
    shape[dims[-1]] = shape[dims[-1]] // 2 + 1
    return x.like(shape=shape, dtype=x.dtype.to_complex())


def from_real_ref(x, *, dims, scale, forward):
    y = np.fft.rfftn(x, axes=dims)
    y = y if forward else y.conj()
    return y if scale == 1 else y * y.dtype.type(scale)


def from_real_vjp(ct, _x, dims, scale, forward):
    """The real part of the transform of ct, filled up with zeros."""
    last = dims[-1]
    missing = _x.shape[last] - ct.shape[last]
    if missing:
        zero = ct.new_zeros([missing if d == last else n for d, n in enumerate(ct.shape)])
        from flambeau.ops.joining import cat

        ct = cat(ct, zero, dim=last)
    return fft_complex(ct, dims=dims, scale=scale, forward=not forward).real


def from_real_samples(rng):
    for shape, dims in [((4,), (0,)), ((5,), (0,)), ((2, 3), (0, 1)), ((2, 3, 4), (1,))]:
        yield (rng.normal(size=shape),), dict(dims=dims, scale=0.5, forward=True)
    yield (rng.normal(size=(2, 5)),), dict(dims=(1,), scale=1, forward=False)


fft_from_real = primitive("fft_from_real", meta=from_real_meta, ref=from_real_ref,
                          vjp=dict(x=from_real_vjp), samples=from_real_samples)

# To real -------------------------------------------------------------------------------------


def to_real_meta(x: Spec, *, dims, size, scale, forward) -> Spec:
    """The last of `dims` has the first half of a Hermitian signal, `size` is its whole length."""
    check_sizes("irfft", x, dims)
    if size < 1:
        raise OpError(complaint("irfft", "the number of data points must be positive",
                                dict(n=size)))
    shape = [size if d == dims[-1] else n for d, n in enumerate(x.shape)]
    return x.like(shape=shape, dtype=x.dtype.to_real())


def to_real_ref(x, *, dims, size, scale, forward):
    x = x.conj() if forward else x
    for d in dims[:-1]:
        x = np.fft.ifft(x, axis=d, norm="forward")
    y = np.fft.irfft(x, size, axis=dims[-1], norm="forward")
    return y if scale == 1 else y * y.dtype.type(scale)


def to_real_vjp(ct, _x, dims, size, scale, forward):
    """The transform of ct, twice where the other half of the signal said the same."""
    last, kept = dims[-1], _x.shape[dims[-1]]
    g = fft_from_real(ct, dims=dims, scale=scale, forward=not forward)
    missing = kept - g.shape[last]
    if missing > 0:
        from flambeau.ops.joining import cat

        zero = g.new_zeros([missing if d == last else n for d, n in enumerate(g.shape)])
        g = cat(g, zero, dim=last)
    elif missing < 0:
        g = g.narrow(last, 0, kept)
    return g * doubled(g, last, size)


def doubled(g, last: int, size: int):
    """1 for the constant term and for the highest one of an even size, 2 elsewhere."""
    weights = g.new_ones((g.shape[last],), dtype=g.dtype.to_real()).detach() * 2
    weights[0] = 1
    if size % 2 == 0 and size // 2 < g.shape[last]:
        weights[size // 2] = 1
    return weights.reshape([-1 if d == last else 1 for d in range(g.ndim)])


def to_real_samples(rng):
    for shape, dims, size in [((3,), (0,), 4), ((3,), (0,), 5), ((2, 3), (0, 1), 4),
                              ((2, 3), (1,), 3), ((2, 2), (1,), 6)]:
        for forward in (True, False):
            yield ((rng.normal(size=shape) + 1j * rng.normal(size=shape),),
                   dict(dims=dims, size=size, scale=0.5, forward=forward))


fft_to_real = primitive("fft_to_real", meta=to_real_meta, ref=to_real_ref,
                        vjp=dict(x=to_real_vjp), samples=to_real_samples)
