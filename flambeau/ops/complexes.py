"""Complex numbers: their parts as views, conjugates, angles."""

from __future__ import annotations

import numpy as np

from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import DtypeError, OpError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.ops.elementwise import pointwise, result_spec
from flambeau.ops.promotion import result_dtype
from flambeau.ops.registry import primitive


def complex_samples(rng):
    for shape in [(), (3,), (2, 3), (0,)]:
        yield (rng.normal(size=shape) + 1j * rng.normal(size=shape),), {}


conj = pointwise("conj", np.conjugate, vjp=dict(x=lambda ct: ct.conj()), samples=complex_samples)

# Views ---------------------------------------------------------------------------------------


def part_meta(name: str, offset: int):
    def meta(x: Spec) -> tuple[Spec, int]:
        needs_complex(name, x.dtype)
        return spec(x.dtype.to_real(), x.shape, [2 * s for s in x.strides], x.device), offset

    return meta


def needs_complex(name: str, d: DType) -> None:
    if not d.is_complex:
        raise DtypeError(complaint(name, f"{name} is only implemented for complex tensors",
                                   dict(dtype=d)))


real = primitive("real", meta=part_meta("real", 0), kind="view", samples=complex_samples,
                 vjp=dict(x=lambda ct: complex(ct, ct * 0)))
imag = primitive("imag", meta=part_meta("imag", 1), kind="view", samples=complex_samples,
                 vjp=dict(x=lambda ct: complex(ct * 0, ct)))


def view_as_real_meta(x: Spec) -> tuple[Spec, int]:
    """(.., 2): real and imaginary parts beside each other."""
    needs_complex("view_as_real", x.dtype)
    return spec(x.dtype.to_real(), (*x.shape, 2), (*[2 * s for s in x.strides], 1), x.device), 0


view_as_real = primitive("view_as_real", meta=view_as_real_meta, kind="view",
                         samples=complex_samples,
                         vjp=dict(x=lambda ct: view_as_complex(ct.contiguous())))


def view_as_complex_meta(x: Spec) -> tuple[Spec, int]:
    problem = None
    if x.dtype.is_complex or not x.dtype.is_floating_point or x.dtype.to_complex() is x.dtype:
        problem = "the dtype must be float64, float32 or float16"
    elif x.ndim == 0 or x.shape[-1] != 2:
        problem = "Tensor must have a last dimension of size 2"
    elif x.strides[-1] != 1 or any(s % 2 for s in x.strides[:-1]):
        problem = "Tensor must have a last dimension of stride 1, and even strides elsewhere"
    if problem:
        raise OpError(complaint("view_as_complex", problem, dict(
            dtype=x.dtype, shape=list(x.shape), strides=x.strides), "Use .contiguous()."))
    return spec(x.dtype.to_complex(), x.shape[:-1], [s // 2 for s in x.strides[:-1]], x.device), 0


def view_as_complex_samples(rng):
    for shape in [(2,), (3, 2), (0, 2)]:
        yield (rng.normal(size=shape),), {}


view_as_complex = primitive("view_as_complex", meta=view_as_complex_meta, kind="view",
                            samples=view_as_complex_samples,
                            vjp=dict(x=lambda ct: view_as_real(ct)))

# complex -------------------------------------------------------------------------------------


def complex_meta(real: Spec, imag: Spec) -> Spec:
    """real + i imag, of one floating dtype."""
    if real.dtype is not imag.dtype or not real.dtype.is_floating_point:
        raise DtypeError(complaint(
            "complex", "both parts must be of the same floating dtype",
            dict(real=real.dtype, imag=imag.dtype)))
    return result_spec("complex", (real, imag), result_dtype(real, imag).to_complex())


def complex_ref(real, imag):
    shape = np.broadcast_shapes(real.shape, imag.shape)
    out = np.empty(shape, np.result_type(real.dtype, np.complex64))
    out.real, out.imag = real, imag
    return out


def pair_samples(rng):
    for a, b in [((), ()), ((3,), (3,)), ((2, 1), (1, 3)), ((0,), (0,))]:
        yield (rng.normal(size=a), rng.normal(size=b)), {}


complex = primitive("complex", meta=complex_meta, ref=complex_ref, samples=pair_samples,
                    vjp=dict(real=lambda ct: real(ct), imag=lambda ct: imag(ct)))


# angle ---------------------------------------------------------------------------------------


def angle_ref(x):
    """The argument; of reals 0 or pi, and NaN of NaN."""
    if x.dtype.kind == "c":
        return np.angle(x)
    turned = np.where(x < 0, np.pi, 0).astype(x.dtype)
    return np.where(np.isnan(x), x, turned)


def angle_vjp(ct, x):
    """i x / |x|^2 for complex, zero for reals and at 0."""
    if not x.dtype.is_complex:
        return ct * 0
    size = x.abs()
    return (x * 1j * (ct / (size * size))).masked_fill(size == 0, 0)


angle = pointwise("angle", angle_ref, rule="float real", samples=complex_samples,
                  vjp=dict(x=angle_vjp))
