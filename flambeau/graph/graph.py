"""`Graph`: an ordered list of immutable equations over typed values.

A `Value` names a tensor. A pure equation gives its outputs from its inputs; the output of a view
shares the memory of its first input. A *write* has a target instead of outputs and overwrites the
target's memory, as eager execution does, so the order of equations is the order of effects.
`alias` gives the same memory without history (`detach`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from flambeau.core.spec import WEAK, Spec
from flambeau.ops.registry import Primitive

_numbers = itertools.count()


class Value:
    """One tensor of a graph: what it is, not what is in it."""

    __slots__ = ("number", "spec")

    def __init__(self, spec: Spec):
        self.spec = spec
        self.number = next(_numbers)

    def __repr__(self) -> str:
        return f"%{self.number}: {self.spec!r}"


Operand = Any
"""A Value, a Python number or None."""


class Equation:
    """outputs = op(*inputs, **params), or target <- op(*inputs, **params).

    op           a primitive, or "alias"
    open_params  whether a parameter is, or holds, a Value (a number)
    grad_mode    whether gradients were being recorded at this place
    line         the user's source line, for messages; no part of what the equation means
    """

    __slots__ = (
        "grad_mode",
        "inputs",
        "line",
        "op",
        "open_params",
        "outputs",
        "params",
        "several",
        "target",
    )

    op: Primitive | str
    inputs: tuple[Operand, ...]
    params: Mapping[str, Any]
    outputs: tuple[Value, ...]
    target: Value | None
    grad_mode: bool
    several: bool
    open_params: bool
    line: str

    def __init__(
        self,
        op: Primitive | str,
        inputs: Sequence[Operand],
        params: Mapping[str, Any],
        outputs: Sequence[Value] = (),
        target: Value | None = None,
        grad_mode: bool = False,
        several: bool = False,
        line: str = "",
    ):
        put = object.__setattr__
        put(self, "op", op)
        put(self, "inputs", tuple(inputs))
        put(self, "params", dict(params))
        put(self, "outputs", tuple(outputs))
        put(self, "target", target)
        put(self, "grad_mode", grad_mode)
        put(self, "several", several or len(self.outputs) > 1)
        put(self, "open_params", any(map(_is_open, params.values())))
        put(self, "line", line)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("an Equation is immutable; make another with `replaced`")

    @property
    def name(self) -> str:
        return self.op if isinstance(self.op, str) else self.op.name

    @property
    def is_view(self) -> bool:
        """The outputs share the memory of the first input."""
        return self.op == "alias" or (not isinstance(self.op, str) and self.op.kind == "view")

    @property
    def is_random(self) -> bool:
        return not isinstance(self.op, str) and self.op.kind == "random"

    @property
    def is_check(self) -> bool:
        """It may raise, and that is what it is for."""
        return not isinstance(self.op, str) and "checks" in self.op.info

    @property
    def has_effect(self) -> bool:
        """It must run even if nobody uses its outputs, and in its place."""
        return self.target is not None or self.is_random

    def values(self) -> Iterator[Value]:
        """The Values read."""
        yield from (v for v in self.inputs if isinstance(v, Value))
        if self.open_params:
            for held in self.params.values():
                yield from _held(held)

    def uses(self) -> Iterator[Value]:
        """The Values read, and the one that is overwritten."""
        yield from self.values()
        if self.target is not None:
            yield self.target

    def input_specs(self) -> list[Spec | None]:
        """The specs of the operands; a Python number has that of its class."""
        return [v.spec if isinstance(v, Value) else _spec_of_number(v) for v in self.inputs]

    def replaced(self, **fields: Any) -> Equation:
        """The equation with some fields changed."""
        keep = {n: getattr(self, n) for n in self.__slots__ if n != "open_params"}
        return Equation(**{**keep, **fields})

    def __repr__(self) -> str:
        return text(self, {})


def _spec_of_number(value: Any) -> Spec | None:
    if value is None:
        return None
    return WEAK[next(k for k in (bool, int, float, complex) if isinstance(value, k))]


def _held(value: Any) -> Iterator[Value]:
    if isinstance(value, Value):
        yield value
    elif isinstance(value, tuple):
        for element in value:
            yield from _held(element)


def _is_open(value: Any) -> bool:
    return next(_held(value), None) is not None


class Graph:
    """inputs -> outputs through equations; `constants` are tensors that belong to the graph."""

    __slots__ = ("constants", "equations", "inputs", "outputs")

    def __init__(
        self,
        inputs: Iterable[Value],
        equations: Iterable[Equation],
        outputs: Iterable[Value],
        constants: Mapping[Value, Any] | None = None,
    ):
        self.inputs = tuple(inputs)
        self.equations = tuple(equations)
        self.outputs = tuple(outputs)
        self.constants = dict(constants or {})

    def replaced(self, **fields: Any) -> Graph:
        """The graph with some fields changed."""
        keep = {n: getattr(self, n) for n in self.__slots__}
        return Graph(**{**keep, **fields})

    def writes(self) -> set[Value]:
        """Values that some equation overwrites."""
        return {e.target for e in self.equations if e.target is not None}

    def __str__(self) -> str:
        names: dict[Value, str] = {}
        lines = [f"inputs {_typed(self.inputs, names)}"]
        lines += [f"constant {_typed([v], names)}" for v in self.constants]
        lines += [text(e, names) for e in self.equations]
        lines.append("outputs " + ", ".join(_name(v, names) for v in self.outputs))
        return "\n".join(line.rstrip() for line in lines) + "\n"


def _name(value: Value, names: dict[Value, str]) -> str:
    return names.setdefault(value, f"%{len(names)}")


def _typed(values: Iterable[Value], names: dict[Value, str]) -> str:
    return ", ".join(f"{_name(v, names)}: {v.spec!r}" for v in values)


def _operand(value: Operand, names: dict[Value, str]) -> str:
    return _name(value, names) if isinstance(value, Value) else repr(value)


def _parameter(value: Any, names: dict[Value, str]) -> str:
    if _is_open(value) and isinstance(value, tuple):
        return "(" + "".join(_parameter(v, names) + ", " for v in value) + ")"
    return _operand(value, names)


def structure(graph: Graph) -> str:
    """The equations without the specs of values, whose sizes may be symbolic."""
    names: dict[Value, str] = {}
    for value in (*graph.inputs, *graph.constants):
        _name(value, names)
    lines = []
    for equation in graph.equations:
        parts = [_operand(v, names) for v in equation.inputs]
        parts += [f"{k}={_parameter(v, names)}" for k, v in equation.params.items()]
        target = "" if equation.target is None else _name(equation.target, names)
        outputs = [_name(v, names) for v in equation.outputs]
        lines.append(f"{target} {outputs} {equation.name}({', '.join(parts)})")
    lines.append(", ".join(_name(v, names) for v in graph.outputs))
    return "\n".join(lines)


def text(equation: Equation, names: dict[Value, str]) -> str:
    """One line: `%2: float32[3] = add(%0, 1.0)` or `%0 <- copy(%2)`."""
    parts = [_operand(v, names) for v in equation.inputs]
    parts += [f"{k}={_parameter(v, names)}" for k, v in equation.params.items()]
    call = f"{equation.name}({', '.join(parts)})"
    if equation.target is not None:
        return f"{_name(equation.target, names)} <- {call}"
    return f"{_typed(equation.outputs, names)} = {call}"
