"""Copies in front of equations whose kernels cannot walk their operands.

A transposed batch, as multi-head attention makes it, has no one distance between rows; a copy costs
little beside the product, and joins the kernel of whatever is around it.
"""

from __future__ import annotations

from flambeau.compile.native.kinds import is_plain
from flambeau.core.spec import Spec, spec
from flambeau.eager.native import recurrences
from flambeau.eager.native.products import KINDS, matrix_layout, row_layout
from flambeau.graph import Graph
from flambeau.graph.graph import Equation, Value
from flambeau.ops.casts import copy


def with_contiguous(graph: Graph) -> Graph:
    """Equations read copies of the operands that their kernels cannot walk."""
    equations: list[Equation] = []
    for equation in graph.equations:
        bad = unwalkable(equation)
        if not bad:
            equations.append(equation)
            continue
        inputs = list(equation.inputs)
        for k in bad:
            value = inputs[k]
            s = value.spec
            inputs[k] = Value(spec(s.dtype, s.shape, None, s.device))
            strides = inputs[k].spec.strides
            equations.append(Equation(copy, (value,), {"strides": strides}, (inputs[k],),
                                      line=equation.line))
        equations.append(Equation(equation.op, tuple(inputs), equation.params, equation.outputs,
                                  line=equation.line))
    return graph.replaced(equations=equations)


def unwalkable(equation: Equation) -> list[int]:
    """Places of the operands that need a copy."""
    walkable = WALKABLE.get(equation.name)
    if walkable is None or equation.target is not None or equation.open_params:
        return []
    if not all(map(is_plain, (*equation.inputs, *equation.outputs))):
        return []
    specs = equation.input_specs()
    found = [k for k, s in enumerate(specs)
             if s is not None and s.dtype in KINDS and not walkable(k, s)]
    return found if found and gives_the_same(equation, specs, found) else []


def gives_the_same(equation: Equation, specs: list[Spec | None], places: list[int]) -> bool:
    """Are the results laid out alike when these operands are contiguous?"""
    dense = [None if s is None else spec(s.dtype, s.shape, None, s.device) if k in places else s
             for k, s in enumerate(specs)]
    made = equation.op.meta(*dense, **equation.params)
    results = made if isinstance(made, tuple) else (made,)
    return all(v.spec == s for v, s in zip(equation.outputs, results, strict=True))


def in_linear(place: int, s: Spec) -> bool:
    if place == 2:
        return s.strides == (1,)
    return in_matmul(place, s) if place else row_layout(s) is not None


def in_matmul(place: int, s: Spec) -> bool:
    return matrix_layout(s.shape, s.strides) is not None


def in_attention(place: int, s: Spec) -> bool:
    if s.ndim < 4:
        return True
    return s.strides[-1] == 1 or s.shape[-1] == 1


def is_dense(place: int, s: Spec) -> bool:
    return s.is_contiguous


WALKABLE = {
    "linear": in_linear,
    "matmul": in_matmul,
    **dict.fromkeys(("attention", "attention_backward"), in_attention),
    **dict.fromkeys(("sort", "topk", "recurrence", "path_scores", "path_scores_backward",
                     *recurrences.NAMES), is_dense),
}
"""primitive -> can its kernel read an operand (its place, its spec) where it is?"""
