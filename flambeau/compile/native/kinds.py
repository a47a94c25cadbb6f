"""Which equations are loops, and which have a kernel tuned by hand."""

from __future__ import annotations

from flambeau.core.spec import Spec
from flambeau.eager.native import nests, poolings
from flambeau.graph.graph import Equation, Value

ELEMENTWISE = ("copy", "fill", "masked_fill")  # each element written depends on itself alone


def is_plain(value: object) -> bool:
    """A tensor in CPU memory with elements of known number, or a number."""
    if not isinstance(value, Value):
        return True
    s = value.spec
    return isinstance(s, Spec) and (s.weak or (
        s.device.type == "cpu" and s.numel > 0 and nests.is_known(s.dtype)
        and all(isinstance(n, int) for n in s.shape)))


def is_loop(equation: Equation) -> bool:
    """Can the equation be part of a segment?"""
    op = equation.op
    if isinstance(op, str) or equation.open_params or equation.is_random:
        return False
    if not all(map(is_plain, (*equation.inputs, *equation.outputs))):
        return False
    if equation.target is not None:
        return is_plain(equation.target) and equation.target.spec.numel > 0 and (
            op.name in ELEMENTWISE or op.kind == "pointwise") and nests.has_lowering(op)
    return nests.has_lowering(op) and not has_template(equation)


def has_indices(equation: Equation) -> bool:
    """May the equation look into memory at places that a tensor holds?"""
    return not equation.is_view and equation.op.kind != "pointwise" and any(
        not v.spec.weak and not v.spec.dtype.is_floating_point for v in equation.values())


def has_template(equation: Equation) -> bool:
    """Is there a kernel tuned by hand, which beats what the loop compiler makes?"""
    results = tuple(v.spec for v in equation.outputs)
    result = results if len(results) > 1 else results[0]
    specs = equation.input_specs()
    return poolings.described(equation.op, specs, equation.params, result) is not None
