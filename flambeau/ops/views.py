"""Views: the same memory under another shape and other strides.

`meta` of a view gives (spec, offset): the offset in elements of the result, counted from the
operand's first element.
"""

from __future__ import annotations

import builtins
import math

import numpy as np

from flambeau.core.dtype import int64
from flambeau.core.errors import ShapeError, complaint
from flambeau.core.spec import Spec, contiguous_strides, spec
from flambeau.loops.api import guarded, nest
from flambeau.ops.registry import primitive
from flambeau.ops.windows import add_samples as _window_samples
from flambeau.ops.windows import window_add


def strided(x: Spec, shape, strides, offset: int = 0) -> tuple[Spec, int]:
    return spec(x.dtype, shape, strides, x.device), offset


# as_strided ----------------------------------------------------------------------------------


def as_strided_meta(x: Spec, *, size, stride, offset):
    return strided(x, size, stride, offset)


def as_strided_vjp(ct, _x, size, stride, offset):
    return window_add(ct, shape=tuple(_x.shape), layout=_x.strides, size=size, stride=stride,
                      offset=offset)


def as_strided_samples(rng):
    for _, params in _window_samples(rng):
        shape = params.pop("shape")
        params.pop("layout")
        yield (rng.normal(size=shape),), params


as_strided = primitive("as_strided", meta=as_strided_meta, vjp=dict(x=as_strided_vjp), kind="view",
                       samples=as_strided_samples)

# permute -------------------------------------------------------------------------------------


def permute_meta(x: Spec, *, dims):
    return strided(x, [x.shape[d] for d in dims], [x.strides[d] for d in dims])


def permute_vjp(ct, dims):
    return permute(ct, dims=tuple(sorted(range(len(dims)), key=dims.__getitem__)))


def permute_samples(rng):
    for shape, dims in [((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((), ()), ((0, 2), (1, 0))]:
        yield (rng.normal(size=shape),), dict(dims=dims)


permute = primitive("permute", meta=permute_meta, vjp=dict(x=permute_vjp), kind="view",
                    samples=permute_samples)

# expand --------------------------------------------------------------------------------------


def expand_meta(x: Spec, *, shape):
    """`shape` is complete and legal; see tensor.shaping.expand for the user's checks."""
    lead = len(shape) - x.ndim
    strides = [0 if d < lead or (x.shape[d - lead] == 1 and n != 1) else x.strides[d - lead]
               for d, n in enumerate(shape)]
    return strided(x, shape, strides)


def expand_samples(rng):
    for shape, target in [((3,), (2, 3)), ((2, 1), (2, 4)), ((), (2, 2)), ((1,), (0,))]:
        yield (rng.normal(size=shape),), dict(shape=target)


# The engine sums the cotangent back to the operand's shape.
expand = primitive("expand", meta=expand_meta, vjp=dict(x=lambda ct: ct), kind="view",
                   samples=expand_samples)

# view ----------------------------------------------------------------------------------------


def view_strides(shape, strides, target) -> tuple[int, ...] | None:
    """Strides that show (shape, strides) as `target` without moving data; None if impossible.

    The old dimensions are cut into runs that are contiguous in memory; each run must be split
    exactly by consecutive new dimensions.
    """
    if 0 in shape or not shape:
        return contiguous_strides(target)
    result = [0] * len(target)
    new = len(target) - 1
    run, step = 1, strides[-1]
    for old in range(len(shape) - 1, -1, -1):
        run *= shape[old]
        if old and (shape[old - 1] == 1 or strides[old - 1] == run * step):
            continue
        filled = 1
        while new >= 0 and (filled < run or target[new] == 1):
            result[new] = filled * step
            filled *= target[new]
            new -= 1
        if filled != run:
            return None
        if old:
            run, step = 1, strides[old - 1]
    return tuple(result) if new < 0 else None


def view_meta(x: Spec, *, shape):
    if x.is_contiguous:
        return strided(x, shape, None)
    strides = view_strides(x.shape, x.strides, shape)
    if strides is None or math.prod(shape) != x.numel:
        raise ShapeError(complaint(
            "view", "size and strides must allow the new shape without moving data",
            dict(shape=list(x.shape), strides=x.strides, view=list(shape)),
            "Use .reshape(...) instead."))
    return strided(x, shape, strides)


def view_vjp(ct, _x):
    return ct.reshape(tuple(_x.shape))


def view_samples(rng):
    for shape, target in [((6,), (2, 3)), ((2, 3), (6,)), ((), (1, 1)), ((0, 3), (3, 0)),
                          ((4, 1, 3), (2, 6))]:
        yield (rng.normal(size=shape),), dict(shape=target)


view = primitive("view", meta=view_meta, vjp=dict(x=view_vjp), kind="view", samples=view_samples)

# slice ---------------------------------------------------------------------------------------


def slice_meta(x: Spec, *, dim, start, stop, step):
    """Elements start, start + step, .. below stop; all three already within bounds."""
    count = max(0, (stop - start + (step - 1)) // step)
    shape = [count if d == dim else n for d, n in enumerate(x.shape)]
    strides = [s * step if d == dim else s for d, s in enumerate(x.strides)]
    return strided(x, shape, strides, start * x.strides[dim] if count > 0 else 0)


def slice_vjp(ct, _x, dim, start, stop, step):
    return slice_scatter_zeros(ct, shape=tuple(_x.shape), dim=dim, start=start, stop=stop,
                               step=step)


def slice_samples(rng):
    for shape, dim, start, stop, step in [((5,), 0, 1, 5, 2), ((2, 4), 1, 0, 2, 1),
                                          ((3, 2), 0, 3, 3, 1)]:
        yield (rng.normal(size=shape),), dict(dim=dim, start=start, stop=stop, step=step)


slice = primitive("slice", meta=slice_meta, vjp=dict(x=slice_vjp), kind="view",
                  samples=slice_samples, cuts=True)


def scatter_zeros_meta(src: Spec, *, shape, dim, start, stop, step) -> Spec:
    return spec(src.dtype, shape, None, src.device)


def scatter_zeros_ref(src, *, shape, dim, start, stop, step):
    out = np.zeros(shape, src.dtype)
    out[(builtins.slice(None),) * dim + (builtins.slice(start, stop, step),)] = src
    return out


def scatter_zeros_lower(outs, src, *, shape, dim, start, stop, step):
    """Elements outside of the slice read nothing."""
    if step != 1:
        return None

    def body(i):
        at = i[dim] - start
        inside = (i[dim] >= start) & (i[dim] < stop)
        return guarded(inside, src, (*i[:dim], at, *i[dim + 1:]), 0)

    return nest(tuple(shape), body, out=outs[0])


def scatter_zeros_vjp(ct, dim, start, stop, step):
    return slice(ct, dim=dim, start=start, stop=stop, step=step)


def scatter_zeros_samples(rng):
    for (x,), params in slice_samples(rng):
        index = (builtins.slice(None),) * params["dim"] + (
            builtins.slice(params["start"], params["stop"], params["step"]),)
        yield (x[index],), dict(params, shape=x.shape)


# The adjoint of slice: zeros with `src` in place of the slice.
slice_scatter_zeros = primitive("slice_scatter_zeros", meta=scatter_zeros_meta,
                                ref=scatter_zeros_ref, vjp=dict(src=scatter_zeros_vjp),
                                lower=scatter_zeros_lower, samples=scatter_zeros_samples,
                                exact=True)

# select --------------------------------------------------------------------------------------


def select_meta(x: Spec, *, dim, index):
    """One index of a dimension, which disappears; index within bounds."""
    return strided(x, x.shape[:dim] + x.shape[dim + 1:], x.strides[:dim] + x.strides[dim + 1:],
                   index * x.strides[dim])


def select_vjp(ct, _x, dim, index):
    row = view(ct.contiguous(), shape=tuple(1 if d == dim else n for d, n in enumerate(_x.shape)))
    return slice_scatter_zeros(row, shape=tuple(_x.shape), dim=dim, start=index, stop=index + 1,
                               step=1)


def select_samples(rng):
    for shape, dim, index in [((5,), 0, 1), ((2, 4), 1, 3), ((2, 3, 0), 1, 0)]:
        yield (rng.normal(size=shape),), dict(dim=dim, index=index)


select = primitive("select", meta=select_meta, vjp=dict(x=select_vjp), kind="view",
                   samples=select_samples, cuts=True)

# another dtype -------------------------------------------------------------------------------


def view_as_dtype_meta(x: Spec, *, dtype):
    """The same bytes as another dtype; the last dimension scales when sizes differ."""
    if dtype.itemsize == x.itemsize:
        return spec(dtype, x.shape, x.strides, x.device), 0
    if not x.ndim or x.strides[-1] != 1:
        raise ShapeError(complaint(
            "view", "the last dimension must be contiguous to view as a dtype of another size",
            dict(shape=list(x.shape), strides=x.strides, dtype=dtype)))
    shape = [*x.shape[:-1], x.shape[-1] * x.itemsize // dtype.itemsize]
    if shape[-1] * dtype.itemsize != x.shape[-1] * x.itemsize:
        raise ShapeError(complaint("view", "the last size must divide into the new dtype",
                                   dict(shape=list(x.shape), dtype=dtype)))
    strides = [s * x.itemsize // dtype.itemsize for s in x.strides[:-1]] + [1]
    return spec(dtype, shape, strides, x.device), 0


def view_as_dtype_samples(rng):
    for shape in [(4,), (2, 3)]:
        yield (rng.normal(size=shape),), dict(dtype=int64)


view_as_dtype = primitive("view_as_dtype", meta=view_as_dtype_meta, kind="view",
                          samples=view_as_dtype_samples)
