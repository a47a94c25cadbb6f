"""Floats as they lie in memory: of the type computed in, or bfloat16 where that is float32."""

from __future__ import annotations

from dataclasses import dataclass

from flambeau.codegen.target import Target
from flambeau.codegen.templates.rounding import to_bfloat
from flambeau.codegen.text import Function, Operand, Value, element_of, lanes_of, vector

COMPUTED = {"float": "float", "double": "double", "bfloat": "float"}  # of what memory holds


@dataclass(frozen=True, slots=True)
class Stored:
    """Loads widen, stores round to nearest; `element` is what memory holds.

    The target is needed only to round.
    """

    element: str
    target: Target | None = None

    def load(self, f: Function, type: str, at: Value, count: int) -> Value:
        """The first `count` elements, the other lanes zero."""
        return self._wide(f, f.load_lanes(self._of(type), at, count), type)

    def load_masked(self, f: Function, type: str, at: Value, mask: Value) -> Value:
        return self._wide(f, f.load_masked(self._of(type), at, mask), type)

    def store(self, f: Function, x: Value, at: Value, count: int) -> None:
        f.store_lanes(self._narrow(f, x), at, count)

    def store_masked(self, f: Function, x: Value, at: Value, mask: Value) -> None:
        f.store_masked(self._narrow(f, x), at, mask)

    def gep(self, f: Function, pointer: Value, index: Operand) -> Value:
        return f.gep(pointer, index, self.element)

    def _of(self, type: str) -> str:
        return vector(lanes_of(type), "i16" if self._narrows(type) else self.element)

    def _narrows(self, type: str) -> bool:
        return element_of(type) != self.element

    def _wide(self, f: Function, x: Value, type: str) -> Value:
        return widened(f, x) if self._narrows(type) else x

    def _narrow(self, f: Function, x: Value) -> Value:
        if not self._narrows(x.type):
            return x
        assert self.target is not None
        return f.cast("bitcast", to_bfloat(f, x, self.target), self._of(x.type))


def widened(f: Function, x: Value) -> Value:
    """float32 of bfloat16 as 16-bit integers: CPUs without bfloat16 move and widen them as well."""
    lanes = lanes_of(x.type)
    bits = f.cast("zext", x, vector(lanes, "i32"))
    return f.cast("bitcast", f.binary("shl", bits, 16), vector(lanes, "float"))
