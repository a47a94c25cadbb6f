"""Views: the same memory under another shape and other strides.

`meta` of a view gives (spec, offset): the offset in elements of the result, counted from the
operand's first element.
"""

from __future__ import annotations

import math

from flambeau.core.errors import ShapeError, complaint
from flambeau.core.spec import Spec, contiguous_strides, spec
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
