"""Convolutions of any number of spatial dimensions, and their two adjoints.

`conv(x, w)`, `conv_input(g, w)` and `conv_weight(g, x)` are bilinear; each one's derivatives are
the other two, so they may be differentiated as often as one likes. x is (N, C, *spatial), w is
(K, C / groups, *kernel), g is (N, K, *output). `conv_input` is the transposed convolution.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from flambeau.core.errors import DtypeError, OpError, ShapeError, complaint
from flambeau.core.spec import Spec, channels_last_strides, is_contiguous, spec
from flambeau.ops.elementwise import common_device
from flambeau.ops.registry import primitive


def output_sizes(spatial, kernel, stride, padding, dilation) -> tuple[int, ...]:
    """floor((n + 2 padding - dilation (kernel - 1) - 1) / stride) + 1 for each dimension."""
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1
                 for n, k, s, p, d in zip(spatial, kernel, stride, padding, dilation))


def check_pair(op: str, x: Spec, w: Spec, groups: int) -> None:
    if x.dtype is not w.dtype:
        raise DtypeError(complaint(op, "input and weight must have one dtype", dict(
            input=x.dtype, weight=w.dtype), "Convert the input with `.to(weight.dtype)`."))
    if x.shape[1] != w.shape[1] * groups:
        raise ShapeError(complaint(
            op, f"given groups={groups}, weight of size {list(w.shape)}, expected input "
            f"{list(x.shape)} to have {w.shape[1] * groups} channels",
            dict(channels=x.shape[1])))


def layout_like(operands: tuple[Spec, ...], shape) -> tuple | None:
    """channels_last if any operand is, as PyTorch decides it."""
    for s in operands:
        if s.ndim >= 4 and not is_contiguous(s.shape, s.strides) and (
                s.strides == channels_last_strides(s.shape)):
            return channels_last_strides(shape)
    return None


def dense(x):
    """x, or a copy where it has gaps or repeats elements as expanded cotangents do."""
    s = x._spec
    if is_contiguous(s.shape, s.strides) or (
            s.ndim == 4 and s.strides == channels_last_strides(s.shape)):
        return x
    return x.contiguous()


# conv ----------------------------------------------------------------------------------------


def conv_meta(x: Spec, w: Spec, b: Spec | None, *, stride, padding, dilation, groups) -> Spec:
    check_pair("conv", x, w, groups)
    if w.shape[0] % groups:
        raise OpError(complaint("conv", "out channels must be divisible by groups",
                                dict(channels=w.shape[0], groups=groups)))
    sizes = output_sizes(x.shape[2:], w.shape[2:], stride, padding, dilation)
    if any(n < 1 for n in sizes) and 0 not in x.shape:
        raise ShapeError(complaint(
            "conv", "Kernel size can't be greater than actual input size", dict(
                input=list(x.shape[2:]), padding=list(padding), kernel=list(w.shape[2:]))))
    if b is not None and tuple(b.shape) != (w.shape[0],):
        raise ShapeError(complaint("conv", f"expected bias to be 1-dimensional with {w.shape[0]} "
                                   "elements", dict(bias=list(b.shape))))
    if b is not None and b.dtype is not x.dtype:
        raise DtypeError(
            complaint(
                "conv", "input and bias must have one dtype", dict(input=x.dtype, bias=b.dtype)
            )
        )
    shape = (x.shape[0], w.shape[0], *(max(n, 0) for n in sizes))
    return spec(x.dtype, shape, layout_like((x, w), shape), common_device("conv", [x, w]))


def columns(x: np.ndarray, kernel, sizes, stride, padding, dilation, groups) -> np.ndarray:
    """Every window as a column: (N, groups, C / groups * kernel, output positions)."""
    if any(padding):
        x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    x = np.ascontiguousarray(x)
    n, c = x.shape[:2]
    item = x.strides
    view = np.lib.stride_tricks.as_strided(
        x, (n, c, *kernel, *sizes),
        (*item[:2], *(s * d for s, d in zip(item[2:], dilation)),
         *(s * t for s, t in zip(item[2:], stride))), writeable=False)
    return view.reshape(n, groups, c // groups * math.prod(kernel), math.prod(sizes))


def conv_ref(x, w, b, *, stride, padding, dilation, groups):
    sizes = output_sizes(x.shape[2:], w.shape[2:], stride, padding, dilation)
    shape = (x.shape[0], w.shape[0], *sizes)
    if 0 in shape or 0 in x.shape:
        out = np.zeros(shape, x.dtype)
    else:
        cols = columns(x, w.shape[2:], sizes, stride, padding, dilation, groups)
        rows = w.reshape(groups, w.shape[0] // groups, -1)
        out = np.matmul(rows, cols).reshape(shape)
    if b is not None:
        out += b.reshape(-1, *(1 for _ in sizes))
    return out


def conv_vjp(ct, x, w, _b, stride, padding, dilation, groups, needs):
    how = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    ct = dense(ct) if needs[0] or needs[1] else ct
    return (conv_input(ct, w, shape=tuple(x.shape), **how) if needs[0] else None,
            conv_weight(ct, x, shape=tuple(w.shape), **how) if needs[1] else None,
            ct.sum((0, *range(2, ct.ndim))) if needs[2] else None)


CASES = [  # x, w, stride, padding, dilation, groups
    ((2, 3, 5), (4, 3, 3), (1,), (1,), (1,), 1),
    ((2, 4, 5, 4), (2, 2, 3, 2), (2, 1), (1, 0), (1, 2), 2),
    ((1, 2, 3, 3, 3), (2, 2, 2, 1, 2), (1, 2, 1), (0, 0, 1), (1, 1, 1), 1),
]


def conv_samples(rng):
    for x, w, stride, padding, dilation, groups in CASES:
        yield ((rng.normal(size=x), rng.normal(size=w), rng.normal(size=w[0])),
               dict(stride=stride, padding=padding, dilation=dilation, groups=groups))


conv = primitive("conv", meta=conv_meta, ref=conv_ref, vjp=conv_vjp, samples=conv_samples)


# conv_input ----------------------------------------------------------------------------------


def input_meta(g: Spec, w: Spec, *, shape, stride, padding, dilation, groups) -> Spec:
    if g.dtype is not w.dtype:
        raise DtypeError(complaint("conv_transpose", "input and weight must have one dtype", dict(
            input=g.dtype, weight=w.dtype), "Convert the input with `.to(weight.dtype)`."))
    return spec(g.dtype, shape, layout_like((g, w), shape), common_device("conv", [g, w]))


def input_ref(g, w, *, shape, stride, padding, dilation, groups):
    """Multiply by the transposed weight, then add every column back to its window."""
    if 0 in g.shape or 0 in shape:
        return np.zeros(shape, g.dtype)
    sizes, kernel = g.shape[2:], w.shape[2:]
    rows = w.reshape(groups, w.shape[0] // groups, -1)
    flat = g.reshape(g.shape[0], groups, g.shape[1] // groups, -1)
    cols = np.matmul(rows.transpose(0, 2, 1), flat)
    cols = cols.reshape(shape[0], shape[1], *kernel, *sizes)
    padded = np.zeros((*shape[:2], *(n + 2 * p for n, p in zip(shape[2:], padding))), g.dtype)
    for at in itertools.product(*map(range, kernel)):
        window = tuple(slice(a * d, a * d + (n - 1) * s + 1, s)
                       for a, d, n, s in zip(at, dilation, sizes, stride))
        padded[(slice(None), slice(None), *window)] += cols[(slice(None), slice(None), *at)]
    return padded[(slice(None), slice(None),
                   *(slice(p, p + n) for p, n in zip(padding, shape[2:])))]


def input_vjp(ct, g, w, stride, padding, dilation, groups, needs):
    ct = dense(ct)
    how = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    return (conv_fit(ct, w, g.shape, how) if needs[0] else None,
            conv_weight(g, ct, shape=tuple(w.shape), **how) if needs[1] else None)


def conv_fit(x, w, shape, how):
    """conv, cut to the output sizes that were asked for (output padding leaves a rest)."""
    y = conv(x, w, None, **how)
    return y if y.shape == shape else y[tuple(slice(0, n) for n in shape)]


def input_samples(rng):
    for x, w, stride, padding, dilation, groups in CASES:
        sizes = output_sizes(x[2:], w[2:], stride, padding, dilation)
        yield ((rng.normal(size=(x[0], w[0], *sizes)), rng.normal(size=w)),
               dict(shape=x, stride=stride, padding=padding, dilation=dilation, groups=groups))


conv_input = primitive("conv_input", meta=input_meta, ref=input_ref, vjp=input_vjp,
                       samples=input_samples)


# conv_weight ---------------------------------------------------------------------------------


def weight_meta(g: Spec, x: Spec, *, shape, stride, padding, dilation, groups) -> Spec:
    return spec(g.dtype, shape, layout_like((g, x), shape), common_device("conv", [g, x]))


def weight_ref(g, x, *, shape, stride, padding, dilation, groups):
    if 0 in g.shape or 0 in x.shape or 0 in shape:
        return np.zeros(shape, g.dtype)
    cols = columns(x, shape[2:], g.shape[2:], stride, padding, dilation, groups)
    flat = g.reshape(g.shape[0], groups, g.shape[1] // groups, -1)
    return np.matmul(flat, cols.transpose(0, 1, 3, 2)).sum(0).reshape(shape)


def weight_vjp(ct, g, x, stride, padding, dilation, groups, needs):
    ct = dense(ct)
    how = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    return (conv_fit(x, ct, g.shape, how) if needs[0] else None,
            conv_input(g, ct, shape=tuple(x.shape), **how) if needs[1] else None)


def weight_samples(rng):
    for x, w, stride, padding, dilation, groups in CASES:
        sizes = output_sizes(x[2:], w[2:], stride, padding, dilation)
        yield ((rng.normal(size=(x[0], w[0], *sizes)), rng.normal(size=x)),
               dict(shape=w, stride=stride, padding=padding, dilation=dilation, groups=groups))


conv_weight = primitive("conv_weight", meta=weight_meta, ref=weight_ref, vjp=weight_vjp,
                        samples=weight_samples)
