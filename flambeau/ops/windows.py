"""Reading and writing a strided window of a dense tensor: the algebra behind views and writes.

A *window* is (size, stride, offset) over memory in which the tensor lies with `layout` strides;
the offset counts from the tensor's first element. `window_read`, `window_write` and `window_add`
are each other's adjoints.
"""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import OpError, complaint
from flambeau.core.spec import Spec, contiguous_strides, is_dense, overlaps_itself, spec
from flambeau.ops.registry import primitive


def extent(shape: tuple, strides: tuple) -> int:
    """Elements of memory that a strided shape reaches over."""
    return 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides))


def _check(op: str, shape, layout, size, stride, offset) -> None:
    if 0 not in size and (offset < 0 or offset + extent(size, stride) > extent(shape, layout)):
        raise OpError(complaint(op, "the window must lie inside of the tensor's memory", dict(
            shape=list(shape), size=list(size), stride=list(stride), offset=offset)))


def _memory(x: np.ndarray, layout: tuple) -> np.ndarray:
    """A fresh flat buffer with `x` laid out in it."""
    flat = np.zeros(extent(x.shape, layout), x.dtype)
    _at(flat, x.shape, layout, 0)[...] = x
    return flat


def _at(flat: np.ndarray, size: tuple, stride: tuple, offset: int) -> np.ndarray:
    return np.ndarray(size, flat.dtype, flat, offset * flat.itemsize if flat.size else 0,
                      tuple(s * flat.itemsize for s in stride))


def read_meta(x: Spec, *, layout, size, stride, offset) -> Spec:
    _check("as_strided", x.shape, layout, size, stride, offset)
    return x.like(shape=size)


def read_ref(x, *, layout, size, stride, offset):
    return _at(_memory(x, layout), size, stride, offset).copy()


def read_vjp(ct, _x, layout, size, stride, offset):
    return window_add(ct, shape=tuple(_x.shape), layout=layout, size=size, stride=stride,
                      offset=offset)


def write_meta(x: Spec, src: Spec, *, layout, size, stride, offset) -> Spec:
    _check("as_strided_scatter", x.shape, layout, size, stride, offset)
    if tuple(src.shape) != tuple(size):
        raise OpError(complaint("as_strided_scatter", "src must have the window's size",
                                dict(src=list(src.shape), size=list(size))))
    return spec(x.dtype, x.shape, layout if is_dense(x.shape, layout) else None, x.device)


def write_ref(x, src, *, layout, size, stride, offset):
    flat = _memory(x, layout)
    _at(flat, size, stride, offset)[...] = src
    return _at(flat, x.shape, layout, 0)


def write_vjp_x(ct, _src, layout, size, stride, offset):
    from flambeau.ops.creation import full

    zero = full(shape=tuple(_src.shape), value=0, dtype=ct.dtype, device=ct.device)
    return window_write(ct, zero, layout=layout, size=size, stride=stride, offset=offset)


def write_vjp_src(ct, layout, size, stride, offset):
    return window_read(ct, layout=layout, size=size, stride=stride, offset=offset)


def add_meta(src: Spec, *, shape, layout, size, stride, offset) -> Spec:
    return spec(src.dtype, shape, layout if is_dense(shape, layout) else None, src.device)


def add_ref(src, *, shape, layout, size, stride, offset):
    flat = np.zeros(extent(shape, layout), src.dtype)
    if overlaps_itself(size, stride):
        places = np.full(size, offset)
        for d, s in enumerate(stride):
            along = [-1 if k == d else 1 for k in range(len(size))]
            places += (np.arange(size[d]) * s).reshape(along)
        np.add.at(flat, places.reshape(-1), src.reshape(-1))
    else:
        _at(flat, size, stride, offset)[...] = src
    return _at(flat, shape, layout, 0)


def add_vjp(ct, layout, size, stride, offset):
    return window_read(ct, layout=layout, size=size, stride=stride, offset=offset)


def _samples(rng):
    for shape, size, stride, offset in [((4,), (2,), (2,), 1), ((2, 3), (2, 2), (3, 1), 1),
                                        ((3, 2), (2, 2, 2), (1, 1, 1), 0), ((2, 2), (0,), (1,), 0)]:
        yield shape, dict(layout=contiguous_strides(shape), size=size, stride=stride, offset=offset)


def read_samples(rng):
    for shape, params in _samples(rng):
        yield (rng.normal(size=shape),), params


def write_samples(rng):
    for shape, params in _samples(rng):
        if not overlaps_itself(params["size"], params["stride"]):
            yield (rng.normal(size=shape), rng.normal(size=params["size"])), params


def add_samples(rng):
    for shape, params in _samples(rng):
        yield (rng.normal(size=params["size"]),), dict(shape=shape, **params)


window_read = primitive("window_read", meta=read_meta, ref=read_ref, vjp=dict(x=read_vjp),
                        samples=read_samples, exact=True)
window_write = primitive("window_write", meta=write_meta, ref=write_ref,
                         vjp=dict(x=write_vjp_x, src=write_vjp_src), samples=write_samples,
                         exact=True)
window_add = primitive("window_add", meta=add_meta, ref=add_ref, vjp=dict(src=add_vjp),
                       samples=add_samples)
