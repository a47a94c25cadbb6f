"""Running sums, products and extrema along a dimension."""

from __future__ import annotations

import math

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import dtype as DType
from flambeau.core.spec import Spec, spec
from flambeau.loops.api import cast, const, guarded, nest, scan, store
from flambeau.ops.logarithms import logaddexp_ref
from flambeau.ops.registry import primitive
from flambeau.ops.scattering import scatter_sum


def line_samples(rng):
    for shape, dim in [((4,), 0), ((2, 3), 1), ((3, 2, 2), 0), ((2, 0), 1), ((), 0)]:
        yield (rng.normal(size=shape),), dict(dim=dim)


def scan_meta(x: Spec, *, dim, reverse, dtype: DType) -> Spec:
    return spec(dtype, x.shape, None, x.device)


def scan_samples(rng):
    for operands, params in line_samples(rng):
        for reverse in (False, True):
            yield operands, dict(params, reverse=reverse, dtype=dtypes.float64)


def _scanned(ufunc: np.ufunc, x, dim: int, reverse: bool, dtype: DType):
    """Narrow floats arrive as float32 and are rounded once at the end."""
    wide = x.dtype if dtype.is_narrow_float and x.dtype.kind == "f" else dtype.numpy
    if not x.ndim:
        return x.astype(wide)
    if reverse:
        x = np.flip(x, dim)
    out = ufunc.accumulate(x, axis=dim, dtype=wide)
    return np.ascontiguousarray(np.flip(out, dim)) if reverse else out


def scan_lower(combine: str):
    """A `lower` rule: a running fold in the dtype of arithmetic, from either end."""
    def lower(outs, x, *, dim, reverse=False, dtype: DType | None = None):
        if not x.shape or x.shape[dim] == 1:
            return None

        def body(p):
            along = p[dim]
            at = x.shape[dim] - 1 - along if reverse else along
            place = (*p[:dim], at, *p[dim + 1:])
            value = cast(x[place], outs[0].dtype.wide)
            running = scan(combine, along, value)
            found = running if isinstance(running, tuple) else (running,)
            return tuple(store(out, place, v) for out, v in zip(outs, found))

        return nest(x.shape, body)

    return lower


# cumsum --------------------------------------------------------------------------------------


def cumsum_ref(x, *, dim, reverse, dtype: DType):
    return _scanned(np.add, x, dim, reverse, dtype)


def cumsum_vjp(ct, dim, reverse):
    return cumsum(ct, dim=dim, reverse=not reverse, dtype=ct.dtype)


cumsum = primitive("cumsum", meta=scan_meta, ref=cumsum_ref, vjp=dict(x=cumsum_vjp),
                   lower=scan_lower("add"), samples=scan_samples)

# cumprod -------------------------------------------------------------------------------------


def cumprod_ref(x, *, dim, reverse, dtype: DType):
    return _scanned(np.multiply, x, dim, reverse, dtype)


def cumprod_vjp(ct, x, dim, reverse, out):
    """d/dx[k] = (product before k) * S[k], S[k] = ct[k] + x[k+1] S[k+1]; exact at zeros."""
    if not x.ndim:
        return ct
    x = x.to(out.dtype).conj()
    after = shifted(x, dim=dim, reverse=not reverse, fill=0)
    tails = recurrence(ct, after, dim=dim, reverse=not reverse)
    return shifted(out.conj(), dim=dim, reverse=reverse, fill=1) * tails


cumprod = primitive("cumprod", meta=scan_meta, ref=cumprod_ref, vjp=dict(x=cumprod_vjp),
                    lower=scan_lower("mul"), samples=scan_samples)

# shifted: one step along a dimension ---------------------------------------------------------


def shifted_meta(x: Spec, *, dim, reverse, fill) -> Spec:
    return spec(x.dtype, x.shape, None, x.device)


def shifted_ref(x, *, dim, reverse, fill):
    """out[k] = x[k - 1] (reverse: x[k + 1]); `fill` enters at the end that has no neighbour."""
    out = np.full(x.shape, fill, x.dtype)
    if x.ndim and x.shape[dim]:
        lead = (slice(None),) * dim
        early, late = lead + (slice(None, -1),), lead + (slice(1, None),)
        target, source = (early, late) if reverse else (late, early)
        out[target] = x[source]
    return out


def shifted_lower(outs, x, *, dim, reverse, fill):
    """The element beside, read where there is one."""
    (out,) = outs
    if not x.shape:
        return None

    def body(i):
        beside = i[dim] + 1 if reverse else i[dim] - 1
        inside = beside < x.shape[dim] if reverse else beside >= 0
        return guarded(inside, x, (*i[:dim], beside, *i[dim + 1:]), const(fill, out.dtype))

    return nest(x.shape, body, out=out)


def shifted_samples(rng):
    for operands, params in line_samples(rng):
        for reverse in (False, True):
            yield operands, dict(params, reverse=reverse, fill=1)


shifted = primitive(
    "shifted", meta=shifted_meta, ref=shifted_ref, lower=shifted_lower, samples=shifted_samples,
    exact=True,
    vjp=dict(x=lambda ct, dim, reverse: shifted(ct, dim=dim, reverse=not reverse, fill=0)))

# recurrence ----------------------------------------------------------------------------------


def recurrence_meta(a: Spec, b: Spec, *, dim, reverse) -> Spec:
    return spec(dtypes.promote_types(a.dtype, b.dtype), a.shape, None, a.device)


def recurrence_ref(a, b, *, dim, reverse):
    """out[k] = a[k] + b[k] out[k - 1], starting from zero (reverse: from the other end)."""
    if not a.ndim or not a.size:
        return np.array(a)
    a, b = np.moveaxis(a, dim, 0), np.moveaxis(b, dim, 0)
    if reverse:
        a, b = a[::-1], b[::-1]
    out = _sequential(a, b) if a.size >= a.shape[0] ** 2 or len(a) < 64 else _doubling(a, b)
    return np.moveaxis(out[::-1] if reverse else out, 0, dim)


def _sequential(a, b):
    out = np.empty(a.shape, np.result_type(a, b))
    before = np.zeros(a.shape[1:], out.dtype)
    for k in range(len(a)):
        before = out[k] = a[k] + b[k] * before
    return out


def _doubling(a, b):
    """Steps of 1, 2, 4 ..: each element composes its map with the one `step` before."""
    a, b = np.array(a), np.array(b)
    step = 1
    while step < len(a):
        a[step:] = a[step:] + b[step:] * a[:-step]
        b[step:] = b[step:] * b[:-step]
        step *= 2
    return a


def recurrence_vjp(ct, b, dim, reverse, out, needs):
    """ga[k] = ct[k] + b[k+1] ga[k+1]; gb[k] = ga[k] out[k-1]."""
    after = shifted(b.conj(), dim=dim, reverse=not reverse, fill=0)
    ga = recurrence(ct, after, dim=dim, reverse=not reverse)
    gb = ga * shifted(out.conj(), dim=dim, reverse=reverse, fill=0) if needs[1] else None
    return ga, gb


def recurrence_samples(rng):
    for operands, params in line_samples(rng):
        for reverse in (False, True):
            yield (*operands, rng.normal(size=operands[0].shape)), dict(params, reverse=reverse)


recurrence = primitive("recurrence", meta=recurrence_meta, ref=recurrence_ref,
                       vjp=recurrence_vjp, samples=recurrence_samples)

# cummax, cummin ------------------------------------------------------------------------------


def cumulative_extremum_meta(x: Spec, *, dim) -> tuple[Spec, Spec]:
    return spec(x.dtype, x.shape, None, x.device), spec(dtypes.int64, x.shape, None, x.device)


def cumulative_extremum_vjp(ct, out1, _x, dim):
    return scatter_sum(ct, out1, shape=tuple(_x.shape), dim=dim)


def cumulative_extremum(name: str, ufunc: np.ufunc, combine: str):
    """(extremum so far, where it is): the latest of equal ones; NaN wins and stays."""
    def ref(x, *, dim):
        if not x.ndim:
            return x.copy(), np.zeros((), np.int64)
        best = ufunc.accumulate(x, axis=dim)
        here = np.arange(x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(x.ndim)])
        at = np.where((x == best) | (x != x), here, 0)
        return best, np.maximum.accumulate(at, axis=dim)

    return primitive(name, meta=cumulative_extremum_meta, ref=ref, samples=line_samples,
                     lower=scan_lower(combine), vjp=dict(x=cumulative_extremum_vjp))


cummax = cumulative_extremum("cummax", np.maximum, "argmax")
cummin = cumulative_extremum("cummin", np.minimum, "argmin")

# logcumsumexp --------------------------------------------------------------------------------


def logcumsumexp_meta(x: Spec, *, dim) -> Spec:
    return spec(x.dtype, x.shape, None, x.device)


def logcumsumexp_ref(x, *, dim):
    """log of the running sum of e^x."""
    if not x.ndim or not x.size:
        return x.copy()
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, axis=dim)
    lines = np.moveaxis(x, dim, 0)
    out = lines.copy()
    for k in range(1, len(out)):
        out[k] = logaddexp_ref(out[k - 1], lines[k])
    return np.moveaxis(out, 0, dim)


def logcumsumexp_vjp(ct, x, out, dim):
    """dx[i] = e^(x[i] - out[i]) S[i], S[i] = ct[i] + e^(out[i] - out[i+1]) S[i+1]: all factors
    are at most one, and 0 where everything so far is e^-inf."""
    if not x.ndim:
        return ct
    nothing = (out.real if out.dtype.is_complex else out) == -math.inf
    following = shifted(out, dim=dim, reverse=True, fill=math.inf)
    shrink = (out - following).exp().masked_fill(out == following, 1).masked_fill(nothing, 0)
    tails = recurrence(ct, shrink.conj(), dim=dim, reverse=True)
    return tails * (x - out).exp().masked_fill(nothing, 0).conj()


logcumsumexp = primitive("logcumsumexp", meta=logcumsumexp_meta, ref=logcumsumexp_ref,
                         vjp=dict(x=logcumsumexp_vjp), lower=scan_lower("logaddexp"),
                         samples=line_samples)
