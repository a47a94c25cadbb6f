"""`compile(verify=True)`: every run of a program is compared with eager operations.

The graph runs twice on the same inputs, once on eager operations and once on the backend. If an
output or a written input differs, the backend is asked for intermediate values, one after the
other, until the first operation is found whose result differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.autograd.views import bump
from flambeau.core.errors import FlambeauError, complaint
from flambeau.graph import Equation, Graph, Value
from flambeau.graph.interpret import Plan
from flambeau.graph.numbers import is_number
from flambeau.random.generator import default_generator
from flambeau.tensor.tensor import Tensor, alias

RELATIVE, ABSOLUTE = 1e-3, 1e-5


class VerificationError(FlambeauError, AssertionError):
    """A backend and eager execution give different results."""


class Verified:
    """A backend, checked on each run."""

    def __init__(self, backend: Callable):
        self.backend = backend

    def __call__(self, graph: Graph, examples: list[Any]) -> Callable:
        return _Checked(graph, self.backend, examples)


class _Checked:
    def __init__(self, graph: Graph, backend: Callable, examples: list[Any]):
        self.graph, self.backend, self.examples = graph, backend, examples
        self.run = backend(graph, examples)

    def __call__(self, *inputs: Any) -> list[Any]:
        state = default_generator.engine.get_state()
        copies = _copies(inputs)
        want = Plan(self.graph, alias, bump)(*copies)
        default_generator.engine.set_state(state)
        before = _copies(inputs)
        got = self.run(*inputs)
        pairs = [*zip(want, got), *zip(copies, inputs)]
        if not all(_close(a, b) for a, b in pairs):
            raise self._difference(before, state)
        return got

    def _difference(self, inputs: list[Any], state: Any) -> VerificationError:
        """The first operation of the graph whose result differs."""
        for at, equation in enumerate(self.graph.equations):
            value = equation.target or equation.outputs[0]
            if is_number(equation.op):
                continue
            part = self.graph.replaced(equations=self.graph.equations[: at + 1], outputs=(value,))
            runs = []
            for run in (Plan(part, alias, bump), self.backend(part, self.examples)):
                default_generator.engine.set_state(state)
                runs.append(run(*_copies(inputs))[0])
            if not _close(*runs):
                return _error(equation, value, *runs)
        return VerificationError(complaint("compile", "the program must equal eager execution"))


def _error(equation: Equation, value: Value, want: Any, got: Any) -> VerificationError:
    facts = {"operation": repr(equation), "eager": want, "compiled": got, "at": equation.line}
    return VerificationError(
        complaint(
            "compile",
            "the program must equal eager execution",
            facts,
            'Report this, and use backend="eager" meanwhile.',
        )
    )


def _copies(inputs: Any) -> list[Any]:
    """Copies that share memory as the inputs do not: aliases among inputs stay apart."""
    return [t.detach().clone() if isinstance(t, Tensor) else t for t in inputs]


def _close(want: Any, got: Any) -> bool:
    if not isinstance(want, Tensor):
        return want == got or want != want
    if want.dtype is not got.dtype or tuple(want.shape) != tuple(got.shape):
        return False
    same = (want == got) | ((want != want) & (got != got))
    near = (
        (want - got).abs() <= ABSOLUTE + RELATIVE * want.abs()
        if (want.dtype.is_floating_point or want.dtype.is_complex)
        else same
    )
    return bool((same | near).all())
