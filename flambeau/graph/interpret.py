"""Running a graph on an executor, equation by equation: the oracle of every other way to run it.

Below autograd (`run`) nothing is recorded. `run_recorded` goes through autograd with the recording
mode that each equation had, so that the outputs have the history that eager execution gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


def run(
    graph: Graph,
    inputs: Sequence[Any],
    alias: Alias,
    written: Callable[[Any], None],
    constants: Mapping[Value, Any] | None = None,
) -> list[Any]:
    """The outputs, computed by this thread's executor without recording.

    `alias(tensor)` gives the same memory without history; `written(tensor)` is told of writes.
    """
    executor = context.state.executor
    environment: dict[Value, Any] = dict(graph.constants if constants is None else constants)
    environment.update(zip(graph.inputs, inputs))
    last = last_uses(graph)
    for equation, dead in zip(graph.equations, last):
        args = _read(environment, equation.inputs)
        if equation.op == "alias":
            environment[equation.outputs[0]] = alias(args[0])
        elif is_number(equation.op):
            environment[equation.outputs[0]] = function_of(equation.op)(*args)
        elif equation.target is not None:
            target = environment[equation.target]
            executor.execute_inplace(equation.op, target, args, _parameters(environment, equation))
            written(target)
        else:
            result = executor.execute(equation.op, args, _parameters(environment, equation))
            _bind_outputs(environment, equation, result)
        args = None
        for value in dead:
            del environment[value]
    return [environment[v] for v in graph.outputs]


def run_recorded(graph: Graph, inputs: Sequence[Any], alias: Alias) -> list[Any]:
    """The outputs, computed through autograd as the captured code would have."""
    state = context.state
    before = state.grad_enabled, state.stack, state.top
    state.stack, state.top = (), None
    environment: dict[Value, Any] = dict(graph.constants)
    environment.update(zip(graph.inputs, inputs))
    try:
        for equation in graph.equations:
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
    finally:
        state.grad_enabled, state.stack, state.top = before
    return [environment[v] for v in graph.outputs]


def last_uses(graph: Graph) -> list[list[Value]]:
    """For each equation, the values that nothing needs afterwards."""
    needed = set(graph.outputs)
    result: list[list[Value]] = []
    for equation in reversed(graph.equations):
        here = {*equation.values(), *equation.outputs}
        if equation.target is not None:
            here.add(equation.target)
        result.append([v for v in here if v not in needed])
        needed |= here
    return result[::-1]
