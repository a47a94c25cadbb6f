"""Numbers in incoming tensors that are known before the graph runs: step counts and the like.

A decision on `step.item()` would end the graph if only the running graph knew the number. Where it
is an element of a tensor from before the frame, changed at most by adding or multiplying plain
numbers, the same number can be computed from the tensor as the call finds it, and the decision
becomes a guard.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.graph import Equation, Value

ARITHMETIC = frozenset(("add", "sub", "mul"))
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
SAME_VALUE = frozenset(("alias", "copy"))
EXACT = {dtypes.float32: "float32", dtypes.float64: "", dtypes.int64: ""}
"""dtypes that may be computed with -> the function that rounds the result, if it needs one."""


class Foresight:
    """The tensors of one number whose value is known, as far as the recorded equations go.

    `compute(name, *terms and numbers)` makes a term; terms are what `Tensors` takes for an input.
    """

    def __init__(self, compute: Callable[..., Any], constants: dict[Value, Any]):
        self.compute, self.constants = compute, constants
        self.known: dict[Value, Any] = {}
        self.groups: dict[Value, list[Value]] = {}
        self.at = 0

    def add(self, value: Value, term: Any) -> None:
        """An incoming tensor of one element; it shares its memory with no other one."""
        self.known[value] = term
        self.groups[value] = [value]

    def forget(self, value: Value) -> None:
        for other in self.groups.get(value, ()):
            self.known.pop(other, None)

    def follow(self, equations: list[Equation]) -> None:
        """Take the equations into account that were recorded since."""
        for equation in equations[self.at :]:
            self._step(equation)
        self.at = len(equations)

    def _step(self, equation: Equation) -> None:
        for value in equation.inputs:
            if isinstance(value, Value) and value in self.constants:
                self._constant(value)
        operands = [v for v in equation.inputs if isinstance(v, Value) and v in self.known]
        target = equation.target
        if target is not None:
            if target in self.known:
                term = self._result(equation)
                self.forget(target)
                if term is not None:
                    self.known.update((v, term) for v in self.groups[target])
            return
        if not operands:
            return
        name = str(getattr(equation.op, "name", equation.op))
        if getattr(equation.op, "kind", "") == "view":
            self.forget(operands[0])  # what is written through the view is not followed
        elif name == "alias":
            out = equation.outputs[0]
            self.known[out] = self.known[operands[0]]
            self.groups[out] = self.groups[operands[0]]
            self.groups[out].append(out)
        elif len(equation.outputs) == 1:
            term = self._result(equation)
            if term is not None:
                self.add(equation.outputs[0], term)

    def _constant(self, value: Value) -> None:
        """A tensor that the frame has made from data."""
        if value not in self.groups and value.spec.numel == 1:
            self.add(value, self.constants[value].detach().item())

    def _result(self, equation: Equation) -> Any:
        """The term for what the equation computes, None if it is not plain arithmetic."""
        name = str(getattr(equation.op, "name", equation.op))
        inputs = [self.known.get(v) if isinstance(v, Value) else v for v in equation.inputs]
        if name in SAME_VALUE and len(inputs) == 1:
            return inputs[0]
        if equation.params or len(inputs) != 2 or not all(map(_is_exact, inputs)):
            return None
        sides = {v.spec.dtype for v in equation.inputs if isinstance(v, Value)}
        dtype = sides.pop()
        if sides or dtype not in EXACT:
            return None
        if name in COMPARISONS:
            return self.compute(name, *inputs)
        out = equation.target or equation.outputs[0]
        if name not in ARITHMETIC or out.spec.dtype is not dtype:
            return None
        term = self.compute(name, *inputs)
        return self.compute(EXACT[dtype], term) if EXACT[dtype] else term


def _is_exact(operand: Any) -> bool:
    """A term, or a number that every float dtype holds as it is."""
    if operand is None or isinstance(operand, bool):
        return False
    return not isinstance(operand, (int, float)) or float(np.float32(operand)) == operand
