"""What happens to an element of a product before it is stored for good.

An epilogue sees a vector of results and where it belongs, and may read further operands, whose
addresses the caller passes behind the three matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from flambeau.codegen.text import Function, Operand, Value, element_of, lanes_of, vector, zero


@dataclass(frozen=True, slots=True)
class Place:
    """Where a vector of results goes: its row, its first column and how many lanes count."""

    row: Operand
    column: Operand
    lanes: int
    pointers: tuple[Value, ...]  # the epilogue's further operands
    element: str = "float"  # their type; the results themselves may be wider

    def load(self, f: Function, pointer: int, index: Operand, type: str) -> Value:
        """A vector of an operand, widened to `type`; lanes that do not count are zero."""
        at = f.gep(self.pointers[pointer], index, self.element)
        if self.element == element_of(type):
            return f.load_lanes(type, at, self.lanes)
        x = f.load_lanes(vector(lanes_of(type), self.element), at, self.lanes)
        return f.cast("fpext", x, type)


class Epilogue(Protocol):
    """`name` must differ between epilogues that differ; `pointers` counts the operands."""

    @property
    def name(self) -> str: ...

    @property
    def pointers(self) -> int: ...

    def apply(self, f: Function, x: Value, place: Place) -> Value: ...


@dataclass(frozen=True, slots=True)
class Pointwise:
    """x -> function(f, x), for example an activation, after an optional bias along the columns."""

    name: str
    function: Callable[[Function, Value], Value] | None = None
    bias: bool = False

    @property
    def pointers(self) -> int:
        return int(self.bias)

    def apply(self, f: Function, x: Value, place: Place) -> Value:
        if self.bias:
            x = f.fadd(x, place.load(f, 0, place.column, x.type))
        return self.function(f, x) if self.function else x


@dataclass(frozen=True, slots=True)
class ScaleShift:
    """x -> function(f, x scale + shift), both along the columns."""

    name: str
    function: Callable[[Function, Value], Value]
    pointers: int = 2

    def apply(self, f: Function, x: Value, place: Place) -> Value:
        scale, shift = (place.load(f, k, place.column, x.type) for k in range(2))
        return self.function(f, f.fma(x, scale, shift))


@dataclass(frozen=True, slots=True)
class AddMatrix:
    """x + R[row, column], R with `stride` elements from row to row; then another epilogue."""

    stride: int
    then: Pointwise | None = None

    @property
    def name(self) -> str:
        return f"add{self.stride}" + (self.then.name if self.then else "")

    @property
    def pointers(self) -> int:
        return 1 + (self.then.pointers if self.then else 0)

    def apply(self, f: Function, x: Value, place: Place) -> Value:
        index = f.add(f.mul(place.row, self.stride), place.column)
        x = f.fadd(x, place.load(f, 0, index, x.type))
        if not self.then:
            return x
        rest = replace(place, pointers=place.pointers[1:])
        return self.then.apply(f, x, rest)


def relu(f: Function, x: Value) -> Value:
    """max(x, 0); NaN stays NaN."""
    return f.select(f.compare("olt", x, zero(x.type)), zero(x.type), x)


NAMED: dict[str, Epilogue] = {
    "bias": Pointwise("bias", None, True),
    "relu": Pointwise("relu", relu),
    "bias_relu": Pointwise("bias_relu", relu, True),
    "scale_shift_relu": ScaleShift("scale_shift_relu", relu),
}


def named(epilogue: Epilogue | str | None) -> Epilogue | None:
    """An epilogue object for one of the names in NAMED."""
    return NAMED[epilogue] if isinstance(epilogue, str) else epilogue
