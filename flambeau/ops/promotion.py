"""PyTorch's result types: the category decides first, then the widest within it.

Operands count in three tiers: tensors with dimensions, zero-dimensional tensors, Python numbers.
A lower tier takes part only if its category (bool < integer < float < complex) is higher.
"""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import BOOL, COMPLEX, FLOAT, INTEGER, promote_types
from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import ShapeError, complaint
from flambeau.core.spec import Spec


def result_dtype(*operands: Spec) -> DType:
    """The dtype in which an op on these operands computes."""
    sized = zero_dim = number = None
    for s in operands:
        if s.weak:
            number = _join(number, _of_weak(s))
        elif s.ndim == 0:
            zero_dim = _join(zero_dim, s.dtype)
        else:
            sized = _join(sized, s.dtype)
    result = sized
    for lower in (zero_dim, number):
        if lower is None:
            continue
        if result is None:
            result = lower
        elif lower.category > result.category:
            result = _raise_category(result, lower)
    return result


def _join(a: DType | None, b: DType) -> DType:
    return b if a is None else promote_types(a, b)


def _of_weak(s: Spec) -> DType:
    default = dtypes.default_dtype()
    return {BOOL: dtypes.bool, INTEGER: dtypes.int64, FLOAT: default,
            COMPLEX: default.to_complex()}[s.dtype.category]


def _raise_category(high: DType, low: DType) -> DType:
    """`low` has the higher category and the lower tier: a float keeps its width as complex."""
    if low.category == COMPLEX and high.category == FLOAT:
        return high.to_complex()
    return low


def floating(d: DType) -> DType:
    """Integers and bools become the default float; floats and complex stay."""
    return d if d.category >= FLOAT else dtypes.default_dtype()


def fits(op: str, shape: tuple, target: tuple) -> None:
    """`shape` must broadcast to `target`, the shape of memory that is written to."""
    if shape != target and broadcast_shapes(op, shape, target) != target:
        raise ShapeError(complaint(
            op, "the tensor written to must have the shape of the result",
            dict(output=list(target), operand=list(shape)),
            "Broadcasting may not change the tensor that is written to."))


def broadcast_shapes(op: str, *shapes: tuple) -> tuple[int, ...]:
    """The common shape under broadcasting; ShapeError names the sizes that differ."""
    first = shapes[0]
    if all(s == first for s in shapes):
        return tuple(first)
    rank = max(len(s) for s in shapes)
    result = [1] * rank
    for s in shapes:
        for d, n in enumerate(s, rank - len(s)):
            if n == 1 or n == result[d]:
                continue
            if result[d] != 1:
                raise ShapeError(complaint(
                    op, f"sizes must match or be 1 at dimension {d}",
                    dict(shapes=" and ".join(str(list(s)) for s in shapes)),
                    "Reshape or expand one of the operands."))
            result[d] = n
    return tuple(result)
