"""Folding dimensions: sums, products, extrema, logical."""

from __future__ import annotations

import builtins
import math

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import DimError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.ops.along import place
from flambeau.ops.folding import (
    folding,
    line_extremum_lower,
    logical_lower,
    logsumexp_lower,
    norm_lower,
    position_lower,
    var_lower,
)
from flambeau.ops.registry import primitive
from flambeau.ops.scans import cumprod, shifted


def reduced_shape(shape: tuple, dim: tuple[int, ...], keepdim: bool) -> list[int]:
    """`dim` is sorted and counted from the front."""
    if keepdim:
        return [1 if d in dim else n for d, n in enumerate(shape)]
    return [n for d, n in enumerate(shape) if d not in dim]


def spread(ct, shape: tuple, dim: tuple[int, ...], keepdim: bool):
    """A reduced cotangent, broadcast back over the reduced dimensions."""
    if not keepdim:
        ct = ct.reshape(tuple(reduced_shape(shape, dim, True)))
    return ct.expand(tuple(shape))


# sum -----------------------------------------------------------------------------------------


def sum_meta(x: Spec, *, dim, keepdim, dtype: DType) -> Spec:
    return spec(dtype, reduced_shape(x.shape, dim, keepdim), None, x.device)


def sum_ref(x, *, dim, keepdim, dtype: DType):
    """Pairwise within NumPy; narrow floats arrive as float32."""
    wide = x.dtype if dtype.is_narrow_float and x.dtype.kind == "f" else dtype.numpy
    return np.add.reduce(x, axis=dim, dtype=wide, keepdims=keepdim)


def sum_vjp(ct, _x, dim, keepdim):
    return spread(ct, _x.shape, dim, keepdim)


def reduction_samples(rng):
    for shape, dim in [((4,), (0,)), ((2, 3), (1,)), ((2, 3, 4), (0, 2)), ((2, 0), (1,)), ((), ())]:
        for keepdim in (False, True):
            yield (rng.normal(size=shape),), dict(dim=dim, keepdim=keepdim)


def sum_samples(rng):
    for operands, params in reduction_samples(rng):
        yield operands, dict(params, dtype=dtypes.float64)


sum = primitive("sum", meta=sum_meta, ref=sum_ref, vjp=dict(x=sum_vjp), samples=sum_samples,
                lower=folding("add"))


# mean ----------------------------------------------------------------------------------------


def mean_ref(x, *, dim, keepdim, dtype: DType):
    total = sum_ref(x, dim=dim, keepdim=keepdim, dtype=dtype)
    return total / count(x.shape, dim)


def count(shape: tuple, dim: tuple[int, ...]) -> int:
    """How many elements fold into one."""
    return math.prod(shape[d] for d in dim)


def mean_vjp(ct, _x, dim, keepdim):
    n = count(_x.shape, dim)
    return spread(ct / n, _x.shape, dim, keepdim) if n else ct.new_zeros(tuple(_x.shape))


def mean_samples(rng):
    for (x,), params in sum_samples(rng):
        if x.size:
            yield (x,), params


mean = primitive("mean", meta=sum_meta, ref=mean_ref, vjp=dict(x=mean_vjp), samples=mean_samples,
                 lower=folding("add", finish=lambda value, n: value / float(n)))

# prod ----------------------------------------------------------------------------------------


def prod_ref(x, *, dim, keepdim, dtype: DType):
    wide = x.dtype if dtype.is_narrow_float and x.dtype.kind == "f" else dtype.numpy
    return np.multiply.reduce(x, axis=dim, dtype=wide, keepdims=keepdim)


def prod_vjp(ct, x, dim, keepdim):
    """ct times the product of all others, as (product before) * (product after): exact at 0."""
    if not x.ndim:
        return ct
    kept = [d for d in range(x.ndim) if d not in dim]
    order = (*kept, *dim)
    lines = x.to(ct.dtype).conj().permute(order).reshape(
        tuple(x.shape[d] for d in kept) + (count(x.shape, dim),))
    at = len(kept)
    before, after = [shifted(cumprod(lines, dim=at, reverse=r, dtype=lines.dtype),
                             dim=at, reverse=r, fill=1) for r in (False, True)]
    others = (before * after).reshape(tuple(x.shape[d] for d in order))
    others = others.permute(tuple(sorted(range(x.ndim), key=order.__getitem__)))
    return spread(ct, x.shape, dim, keepdim) * others


prod = primitive("prod", meta=sum_meta, ref=prod_ref, vjp=dict(x=prod_vjp), samples=sum_samples,
                 lower=folding("mul"))

# Extrema -------------------------------------------------------------------------------------


def extremum_meta(name: str):
    def meta(x: Spec, *, dim, keepdim) -> Spec:
        if any_empty(x.shape, dim):
            raise DimError(complaint(name, "reduced dimensions must not be empty",
                                     dict(shape=list(x.shape), dim=dim)))
        return spec(x.dtype, reduced_shape(x.shape, dim, keepdim), None, x.device)

    return meta


def extremum_vjp(ct, x, out, dim, keepdim):
    """Shared equally by all elements that attain it."""
    best = spread(out, x.shape, dim, keepdim)
    share = ((x == best) | ((x != x) & (best != best))).to(ct.dtype)
    return spread(ct, x.shape, dim, keepdim) * share / share.sum(dim, True)


def extremum(name: str, ufunc: np.ufunc, combine: str):
    def ref(x, *, dim, keepdim):
        return ufunc.reduce(x, axis=dim, keepdims=keepdim)

    return primitive(name, meta=extremum_meta(name), ref=ref, vjp=dict(x=extremum_vjp),
                     samples=full_samples, lower=folding(combine))


def full_samples(rng):
    for (x,), params in reduction_samples(rng):
        if x.size:
            yield (x,), params


amax, amin = extremum("amax", np.maximum, "max"), extremum("amin", np.minimum, "min")


def position_meta(name: str):
    def meta(x: Spec, *, dim, keepdim) -> Spec:
        """`dim` is one dimension, or None for the position in the flattened tensor."""
        if x.numel == 0 and (dim is None or x.shape[dim] == 0):
            raise DimError(complaint(name, "Expected reduction dim to be specified for "
                                     "input.numel() == 0, and that dim to have non-zero size",
                                     dict(shape=list(x.shape), dim=dim)))
        dims = tuple(range(x.ndim)) if dim is None else (dim,)
        return spec(dtypes.int64, reduced_shape(x.shape, dims, keepdim), None, x.device)

    return meta


def position(name: str, find):
    """The first position of the extremum; NaN counts as the extremum."""
    def ref(x, *, dim, keepdim):
        return find(x, axis=dim if x.ndim else None, keepdims=keepdim)

    return primitive(name, meta=position_meta(name), ref=ref, samples=position_samples,
                     lower=position_lower(name))


def position_samples(rng):
    for shape, dim in [((4,), 0), ((2, 3), 1), ((2, 3), None), ((), None)]:
        yield (rng.normal(size=shape),), dict(dim=dim, keepdim=False)


argmax, argmin = position("argmax", np.argmax), position("argmin", np.argmin)


def line_extremum_meta(name: str):
    single = position_meta(name)

    def meta(x: Spec, *, dim, keepdim) -> tuple[Spec, Spec]:
        index = single(x, dim=dim, keepdim=keepdim)
        return spec(x.dtype, index.shape, None, x.device), index

    return meta


def line_extremum_vjp(ct, out1, _x, dim, keepdim):
    """All of ct goes to the position that was reported."""
    if not keepdim and _x.ndim:
        shape = tuple(reduced_shape(_x.shape, (dim,), True))
        ct, out1 = ct.reshape(shape), out1.reshape(shape)
    return place(ct, out1, shape=tuple(_x.shape), dim=dim)


def line_extremum(name: str, find, ufunc: np.ufunc, combine: str):
    """(values, positions) along one dimension."""
    def ref(x, *, dim, keepdim):
        if not x.ndim:
            return x.copy(), np.zeros((), np.int64)
        return (ufunc.reduce(x, axis=dim, keepdims=keepdim),
                find(x, axis=dim, keepdims=keepdim))

    return primitive(name, meta=line_extremum_meta(name), ref=ref, vjp=dict(x=line_extremum_vjp),
                     samples=line_extremum_samples, lower=line_extremum_lower(combine))


def line_extremum_samples(rng):
    for operands, params in position_samples(rng):
        if params["dim"] is not None:
            yield operands, params


max_along = line_extremum("max_along", np.argmax, np.maximum, "argmax")
min_along = line_extremum("min_along", np.argmin, np.minimum, "argmin")

# Logical -------------------------------------------------------------------------------------


def logical_meta(x: Spec, *, dim, keepdim) -> Spec:
    kind = dtypes.uint8 if x.dtype is dtypes.uint8 else dtypes.bool
    return spec(kind, reduced_shape(x.shape, dim, keepdim), None, x.device)


def logical(name: str, fold):
    def ref(x, *, dim, keepdim):
        return fold(x, axis=dim, keepdims=keepdim)

    return primitive(name, meta=logical_meta, ref=ref, samples=reduction_samples,
                     lower=logical_lower(name))


any, all = logical("any", np.any), logical("all", np.all)

# Hash ----------------------------------------------------------------------------------------


def hash_meta(x: Spec, *, dim, keepdim) -> Spec:
    return spec(dtypes.uint64, reduced_shape(x.shape, dim, keepdim), None, x.device)


def hash_ref(x, *, dim, keepdim):
    """Exclusive or of the bits of all elements as float64 or int64."""
    bits = x.astype(np.float64 if x.dtype.kind == "f" else np.int64).view(np.uint64)
    return np.bitwise_xor.reduce(bits, axis=dim, keepdims=keepdim)


hash_bits = primitive("hash_bits", meta=hash_meta, ref=hash_ref, samples=reduction_samples)

# Variance ------------------------------------------------------------------------------------


def var_meta(x: Spec, *, dim, correction, keepdim) -> Spec:
    return spec(x.dtype.to_real(), reduced_shape(x.shape, dim, keepdim), None, x.device)


def var_ref(x, *, dim, correction, keepdim):
    """Two passes; the second corrects for the rounding of the mean (Chan, Golub, LeVeque 1983)."""
    n = count(x.shape, dim)
    d = np.asarray(x - np.add.reduce(x, axis=dim, keepdims=True) / n)
    rest = np.abs(np.add.reduce(d, axis=dim, keepdims=keepdim))
    d = d.real * d.real + d.imag * d.imag if x.dtype.kind == "c" else np.multiply(d, d, out=d)
    total = np.add.reduce(d, axis=dim, keepdims=keepdim)
    return (total - rest * rest / n) / total.dtype.type(max(n - correction, 0))


def var_vjp(ct, x, dim, correction, keepdim):
    n = count(x.shape, dim)
    scale = 2 / (n - correction) if n > correction else math.nan
    return spread(ct * scale, x.shape, dim, keepdim) * (x - x.mean(dim, True))


def var_samples(rng):
    for (x,), params in full_samples(rng):
        for correction in (0, 1):
            if count(x.shape, params["dim"]) > 1:
                yield (x,), dict(params, correction=correction)


var = primitive("var", meta=var_meta, ref=var_ref, vjp=dict(x=var_vjp), samples=var_samples,
                lower=var_lower)

# Norms ---------------------------------------------------------------------------------------


def norm_meta(x: Spec, *, ord, dim, keepdim, dtype: DType) -> Spec:
    return spec(dtype.to_real(), reduced_shape(x.shape, dim, keepdim), None, x.device)


def norm_ref(x, *, ord, dim, keepdim, dtype: DType):
    """(sum |x|^p)^(1/p), the limits at 0 (how many are not zero) and at plus and minus inf."""
    x = np.abs(x if dtype.is_narrow_float else x.astype(dtype.numpy, copy=False))
    keep = dict(axis=dim, keepdims=keepdim)
    if ord == 2:
        return np.sqrt(np.sum(x * x, **keep))
    if ord == 1:
        return np.sum(x, **keep)
    if ord == 0:
        return np.sum((x != 0).astype(x.dtype), **keep)
    if math.isinf(ord):
        return np.max(x, initial=0, **keep) if ord > 0 else np.min(x, **keep)
    return np.sum(x ** ord, **keep) ** (1 / ord)


def norm_vjp(ct, x, out, ord, dim, keepdim):
    """x |x|^(p-2) ct / norm^(p-1); zero where the norm is zero."""
    ct, out = (spread(t, x.shape, dim, keepdim) for t in (ct, out))
    if ord == 0:
        return ct * 0
    if ord == 1:
        return ct * x.sgn()
    if ord == 2:
        return x * (ct / out).masked_fill(out == 0, 0)
    size = x.abs()
    if math.isinf(ord):
        attains = ((size == out) | (size != size)).to(ct.dtype)
        return x.sgn() * (ct * attains / attains.sum(dim, True))
    if ord < 2:
        scaled = x.sgn() * size ** (ord - 1)
        scaled = scaled.masked_fill(x == 0, 0) if ord < 1 else scaled
    else:
        scaled = x * size ** (ord - 2)
    return scaled * (ct / out ** (ord - 1)).masked_fill(out == 0, 0)


def norm_samples(rng):
    for (x,), params in full_samples(rng):
        for ord in (2, 1, 3, 0.5, math.inf, -math.inf):
            yield (x,), dict(ord=ord, **params, dtype=dtypes.float64)


vector_norm = primitive("vector_norm", meta=norm_meta, ref=norm_ref, vjp=dict(x=norm_vjp),
                        samples=norm_samples, lower=norm_lower)

# logsumexp -----------------------------------------------------------------------------------


def logsumexp_meta(x: Spec, *, dim, keepdim) -> Spec:
    return spec(x.dtype, reduced_shape(x.shape, dim, keepdim), None, x.device)


def logsumexp_ref(x, *, dim, keepdim):
    """log sum e^x, shifted by the largest finite term so that nothing overflows."""
    if any_empty(x.shape, dim):
        return np.log(np.sum(np.exp(x), axis=dim, keepdims=keepdim))
    top = np.max(x.real, axis=dim, keepdims=True)
    top = np.where(np.isfinite(top), top, 0).astype(x.real.dtype)
    total = np.log(np.sum(np.exp(x - top), axis=dim, keepdims=True)) + top
    return total if keepdim else total.squeeze(dim)


def any_empty(shape: tuple, dim: tuple[int, ...]) -> bool:
    return builtins.any(shape[d] == 0 for d in dim) if shape else False


def logsumexp_vjp(ct, x, out, dim, keepdim):
    """ct softmax(x); 0 where every term is e^-inf, so that a fully masked row stays finite."""
    out = spread(out, x.shape, dim, keepdim)
    share = (x - out).exp().masked_fill(out.real == -math.inf if out.dtype.is_complex
                                        else out == -math.inf, 0)
    return spread(ct, x.shape, dim, keepdim) * (share.conj() if x.dtype.is_complex else share)


logsumexp = primitive("logsumexp", meta=logsumexp_meta, ref=logsumexp_ref,
                      vjp=dict(x=logsumexp_vjp), samples=full_samples, lower=logsumexp_lower)
