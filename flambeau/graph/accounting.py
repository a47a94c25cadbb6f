"""How much work an equation is: floating-point operations and bytes, from shapes alone."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from flambeau.graph.graph import Equation, Value

ROWS = {"softmax": 5, "log_softmax": 5, "layer_norm": 8, "group_norm": 8, "batch_norm": 6}
"""Operations an element of what is more than one operation an element."""


def operations(equation: Equation) -> int:
    """Floating-point operations; a multiplication with its addition counts as two. What is not a
    product counts one for each element that it reads or makes."""
    if equation.is_view:
        return 0
    of = PRODUCTS.get(equation.name)
    shapes = [tuple(v.spec.shape) if isinstance(v, Value) else () for v in equation.inputs]
    outs = [tuple(v.spec.shape) for v in equation.outputs]
    if of is not None:
        return of(shapes, outs, equation.params)
    return ROWS.get(equation.name, 1) * max(map(prod, [*shapes, *outs]), default=0)


def matmul_operations(shapes: list[tuple], outs: list[tuple], params: Any) -> int:
    """2 m n k: every element of the result is a sum along the last dimension of x."""
    return 2 * prod(outs[0]) * shapes[0][-1]


def conv_operations(shapes: list[tuple], outs: list[tuple], params: Any) -> int:
    """Every pixel of the result is a sum over the channels of its group and the window."""
    return 2 * prod(outs[0]) * prod(shapes[1][1:])


def conv_input_operations(shapes: list[tuple], outs: list[tuple], params: Any) -> int:
    return 2 * prod(shapes[0]) * prod(shapes[1][1:])


def conv_weight_operations(shapes: list[tuple], outs: list[tuple], params: Any) -> int:
    return 2 * prod(shapes[0]) * prod(outs[0][1:])


def attention_operations(shapes: list[tuple], outs: list[tuple], params: Any) -> int:
    """Two products, of queries with keys and of weights with values; a mask saves nothing."""
    (*_, size), (*_, keys, width) = shapes[0], shapes[2]
    return 2 * prod(shapes[0][:-1]) * keys * (size + width)


def attention_backward_operations(shapes: list[tuple], outs: list[tuple], params: Any) -> int:
    """Five products where the forward pass has two."""
    return attention_operations(shapes[1:], outs, params) * 5 // 2


PRODUCTS = {
    "matmul": matmul_operations,
    "linear": matmul_operations,
    "conv": conv_operations,
    "conv_affine": conv_operations,
    "conv_input": conv_input_operations,
    "conv_weight": conv_weight_operations,
    "attention": attention_operations,
    "attention_backward": attention_backward_operations,
}


def nbytes(values: Iterable[Any]) -> int:
    """Bytes of tensors, each counted once; repeated elements of an expanded one are one."""
    total = 0
    for v in dict.fromkeys(v for v in values if isinstance(v, Value) and not v.spec.weak):
        sizes = [n for n, stride in zip(v.spec.shape, v.spec.strides) if stride]
        total += prod(sizes) * v.spec.dtype.itemsize
    return total
