"""Running a graph on an executor, equation by equation: the oracle of every other way to run it.

Below autograd (`run`) nothing is recorded. `run_recorded` goes through autograd with the recording
mode that each equation had, so that the outputs have the history that eager execution gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau.core import context
from flambeau.graph.graph import Equation, Graph, Value
from flambeau.graph.numbers import function_of, is_number

Alias = Callable[[Any], Any]


def _read(environment: dict[Value, Any], inputs: tuple) -> tuple:
    return tuple(environment[v] if isinstance(v, Value) else v for v in inputs)


def _parameters(environment: dict[Value, Any], equation: Equation) -> dict[str, Any]:
    """The parameters, with numbers of the graph put in."""
    params = dict(equation.params)
    if equation.open_params:
        for name, value in params.items():
            params[name] = _closed(environment, value)
    return params


def _closed(environment: dict[Value, Any], value: Any) -> Any:
    if isinstance(value, Value):
        return environment[value]
    if isinstance(value, tuple):
        return tuple(_closed(environment, v) for v in value)
    return value


def _bind_outputs(environment: dict[Value, Any], equation: Equation, result: Any) -> None:
    results = result if equation.several else (result,)
    for value, got in zip(equation.outputs, results):
        environment[value] = got


class Untouched(Exception):
    """A graph has failed before it changed anything; the cause is what went wrong."""


class Plan:
    """A graph made ready to run many times below autograd.

    `alias(tensor)` gives the same memory without history; `written(tensor)` is told of writes.
    """

    def __init__(self, graph: Graph, alias: Alias, written: Callable[[Any], None]):
        self.graph, self.alias, self.written = graph, alias, written
        self.steps = list(zip(graph.equations, last_uses(graph)))
        self.touches = next(
            (k for k, e in enumerate(graph.equations) if e.has_effect), len(graph.equations)
        )

    def __call__(self, *inputs: Any) -> list[Any]:
        """The outputs, computed by this thread's executor without recording."""
        environment: dict[Value, Any] = dict(self.graph.constants)
        environment.update(zip(self.graph.inputs, inputs))
        done = 0
        try:
            for done, (equation, dead) in enumerate(self.steps):  # noqa: B007
                self._step(equation, environment)
                for value in dead:
                    del environment[value]
        except Exception as error:
            if done <= self.touches:
                raise Untouched from error
            raise
        return [environment[v] for v in self.graph.outputs]

    def _step(self, equation: Equation, environment: dict[Value, Any]) -> None:
        executor = context.state.executor
        args = _read(environment, equation.inputs)
        if equation.op == "alias":
            environment[equation.outputs[0]] = self.alias(args[0])
        elif is_number(equation.op):
            environment[equation.outputs[0]] = function_of(equation.op)(*args)
        elif equation.target is not None:
            target = environment[equation.target]
            params = _parameters(environment, equation)
            executor.execute_inplace(equation.op, target, args, params)
            self.written(target)
        else:
            result = executor.execute(equation.op, args, _parameters(environment, equation))
            _bind_outputs(environment, equation, result)


def run(
    graph: Graph, inputs: Sequence[Any], alias: Alias, written: Callable[[Any], None]
) -> list[Any]:
    """The outputs of one run."""
    return Plan(graph, alias, written)(*inputs)


def run_recorded(graph: Graph, inputs: Sequence[Any], alias: Alias) -> list[Any]:
    """The outputs, computed through autograd as the captured code would have."""
    state = context.state
    before = state.grad_enabled, state.stack, state.top
    state.stack, state.top = (), None
    environment: dict[Value, Any] = dict(graph.constants)
    environment.update(zip(graph.inputs, inputs))
    touched = False
    try:
        for equation in graph.equations:
            touched = touched or equation.has_effect
            state.grad_enabled = equation.grad_mode
            args = _read(environment, equation.inputs)
            if equation.op == "alias":
                environment[equation.outputs[0]] = alias(args[0])
            elif is_number(equation.op):
                environment[equation.outputs[0]] = function_of(equation.op)(*args)
            elif equation.target is not None:
                target = environment[equation.target]
                context.bind_inplace(equation.op, target, args, _parameters(environment, equation))
            else:
                result = context.bind(equation.op, args, _parameters(environment, equation))
                _bind_outputs(environment, equation, result)
    except Exception as error:
        if not touched:
            raise Untouched from error
        raise
    finally:
        state.grad_enabled, state.stack, state.top = before
    return [environment[v] for v in graph.outputs]


def last_uses(graph: Graph) -> list[list[Value]]:
    """For each equation, the values that nothing needs afterwards."""
    needed = set(graph.outputs)
    result: list[list[Value]] = []
    for equation in reversed(graph.equations):
        here = {*equation.uses(), *equation.outputs}
        result.append([v for v in here if v not in needed])
        needed |= here
    return result[::-1]
