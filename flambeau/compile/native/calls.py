"""A graph as the work to be done, in order: calls of kernels, and equations for Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flambeau.compile.native.epilogues import Activated
from flambeau.compile.native.kinds import is_plain
from flambeau.core import logs
from flambeau.core.errors import FlambeauError
from flambeau.core.spec import WEAK
from flambeau.eager.native import nests
from flambeau.eager.native.providers import CALLS, activated_call, native_call
from flambeau.graph.graph import Equation, Value

STREAM = Value(WEAK[int])
"""Stands for the address of the default generator's state."""
REFUSALS = (FlambeauError, ArithmeticError, LookupError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Call:
    """One kernel at work.

    arguments  of its entry: tensors and numbers, as values or as Python numbers
    made       values whose memory it fills
    written    values whose memory it changes
    equations  what it computes
    """

    entry: Callable[..., None]
    arguments: tuple[Any, ...]
    made: tuple[Value, ...]
    written: tuple[Value, ...] = ()
    equations: tuple[Equation, ...] = ()

    def uses(self) -> Iterator[Value]:
        yield from (v for v in self.arguments if isinstance(v, Value) and v is not STREAM)
        yield from self.made

    @property
    def is_random(self) -> bool:
        """It draws from the default generator, whose lock must be held."""
        return STREAM in self.arguments


Work = Call | Equation


def uses(work: Work) -> Iterator[Value]:
    """The values that a piece of work reads, makes or changes."""
    if isinstance(work, Call):
        yield from work.uses()
        return
    yield from work.uses()
    yield from work.outputs


def single(equation: Equation, activation: str = "") -> Work:
    """The kernel for one equation; the equation itself where there is none. With an activation,
    which only kernels tuned by hand apply, the kernel gives the activated result."""
    if equation.is_random:
        return drawn(equation)
    if not is_native(equation):
        return equation
    specs = equation.input_specs()
    results = tuple(v.spec for v in equation.outputs)
    try:
        result = results if equation.several else results[0]
        if activation:
            found = activated_call(equation.op, specs, dict(equation.params), result, activation)
        else:
            found = native_call(equation.op, specs, dict(equation.params), result)
    except REFUSALS as error:
        logs.show("breaks", f"{equation.name} runs as an eager operation: {error}")
        return equation
    if found is None or found.results != results:
        return equation
    tensors = [equation.inputs[k] if k >= 0 else equation.outputs[~k] for k in found.arguments]
    numbers = [equation.inputs[k] for k in found.numbers]
    return Call(found.entry, (*tensors, *numbers), equation.outputs, equations=(equation,))


def drawn(equation: Equation) -> Work:
    """Random numbers from the default generator, into dense memory, in its order."""
    from flambeau.runtime import drawing

    target = equation.target
    if equation.open_params or equation.params.get("generator") is not None:
        return equation
    value = equation.outputs[0] if target is None else target
    s = value.spec
    if any(v is not None for v in equation.inputs) or not is_plain(value) or (
            s.reach != s.nbytes or target is not None and not s.is_contiguous):
        return equation
    draw = drawing.draw_of(equation.name, s.numel, s.numpy, dict(equation.params))
    if draw is None:
        return equation
    made, written = (equation.outputs, ()) if target is None else ((), (target,))
    return Call(draw, (STREAM, value), made, written, (equation,))


def activated(pair: Activated) -> list[Work]:
    """One kernel for the pair, or what each has."""
    product, relu = pair.equations
    call = single(product, "relu")
    if not isinstance(call, Call):
        return [single(product), single(relu)]
    (before,), (after,) = product.outputs, relu.outputs
    arguments = tuple(after if v is before else v for v in call.arguments)
    return [Call(call.entry, arguments, (after,), equations=pair.equations)]


def is_native(equation: Equation) -> bool:
    """Something on the CPU of known, nonzero size that is made by a primitive with a kernel."""
    op = equation.op
    if isinstance(op, str) or equation.open_params or equation.has_effect or equation.is_view:
        return False
    known = op.name in CALLS or nests.has_lowering(op)
    return known and all(map(is_plain, (*equation.inputs, *equation.outputs)))
