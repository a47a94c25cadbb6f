"""Matrix products by generated kernels, where the operands' strides are those of matrices."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.spec import Spec
from flambeau.eager.native.call import NativeCall

KINDS = (dtypes.float32, dtypes.float64, dtypes.bfloat16)
SMALL = 1 << 15  # multiply-adds; below, NumPy is as fast


def matrix_layout(shape: tuple, strides: tuple) -> tuple[bool, int] | None:
    """(transposed, leading dimension) of the last two dimensions, or None."""
    rows, columns = shape[-2:]
    a, b = strides[-2:]
    if b == 1 or columns == 1:
        lead = a if rows > 1 else max(columns, 1)
        return (False, lead) if lead >= columns else None
    if a == 1 or rows == 1:
        lead = b if columns > 1 else max(rows, 1)
        return (True, lead) if lead >= rows else None
    return None


def row_layout(s: Spec) -> tuple[int, int] | None:
    """(rows, distance between rows) of a tensor seen as a matrix of its last dimension."""
    if s.ndim == 1:
        return (1, s.shape[0]) if s.strides[0] == 1 else None
    rows = math.prod(s.shape[:-1])
    if s.shape[-1] > 1 and s.strides[-1] != 1:
        return None
    step = None
    for n, stride in zip(reversed(s.shape[:-1]), reversed(s.strides[:-1])):
        if n == 1:
            continue
        if step is None:
            first, step = stride, stride * n
        elif stride != step:
            return None
        else:
            step *= n
    lead = s.shape[-1] if step is None else first
    return (rows, lead) if lead >= s.shape[-1] else None


def is_small(primitive, specs: list) -> bool:
    """Is the product faster in NumPy than a kernel can be entered?"""
    columns = specs[1].shape[0 if primitive.name == "linear" else -1]
    return specs[0].numel * columns < SMALL


def takes_tail(s: Spec) -> bool:
    """Whether a kernel's tiles hold results as memory does; widened products are rounded later."""
    from flambeau.codegen import target

    return s.dtype is not dtypes.bfloat16 or target.host().bfloat16_dot


def linear_call(primitive, specs: list, params: dict, result, tail=None) -> NativeCall | None:
    """rows of x times W^T, the bias added where a tile is stored; then a tail for the tile."""
    if primitive.name != "linear":
        return None
    x, w, b = specs
    if x.dtype not in KINDS or 0 in (*x.shape, *w.shape) or (tail and not takes_tail(x)):
        return None
    rows, weight = row_layout(x), matrix_layout(w.shape, w.strides)
    if rows is None or weight is None or (b is not None and b.strides != (1,)):
        return None
    from flambeau.codegen.templates import gemm

    program = gemm(rows[0], w.shape[0], x.shape[-1], x.dtype.name, False, not weight[0], rows[1],
                   weight[1], epilogue=None if b is None else "bias", tail=tail)
    return NativeCall(program, (0, 1, ~0) if b is None else (0, 1, ~0, 2), (result,))


def matmul_call(primitive, specs: list, params: dict, result, tail=None) -> NativeCall | None:
    """Batches of products; batch strides may be anything, zero included. One that is no batch may
    have a tail."""
    if primitive.name != "matmul":
        return None
    x, y = specs
    if x.dtype not in KINDS or 0 in (*x.shape, *y.shape) or (tail and not takes_tail(x)):
        return None
    left, right = (matrix_layout(s.shape, s.strides) for s in (x, y))
    if left is None or right is None or 0 in result.shape:
        return None
    from flambeau.codegen.templates import gemm

    n = x.ndim - 2
    program = gemm(x.shape[-2], y.shape[-1], x.shape[-1], x.dtype.name, left[0], right[0], left[1],
                   right[1], batch=tuple(x.shape[:n]), batch_a=tuple(x.strides[:n]),
                   batch_b=tuple(y.strides[:n]), batch_c=tuple(result.strides[:n]), tail=tail)
    return NativeCall(program, (0, 1, ~0), (result,))
