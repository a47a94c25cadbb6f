"""A graph as one generated Python function that calls the executor: the fastest way to run a graph
on eager operations, where going through the equations one by one would cost more than they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core import context
from flambeau.graph.graph import Equation, Graph, Value
from flambeau.graph.interpret import Alias, Untouched, last_uses
from flambeau.graph.numbers import function_of, is_number


class GeneratedPlan:
    """A graph made ready to run many times below autograd, as one generated Python function.

    `alias(tensor)` gives the same memory without history; `written(tensor)` is told of writes.
    """

    def __init__(self, graph: Graph, alias: Alias, written: Callable[[Any], None]):
        self.graph = graph
        self.names: dict[Value, str] = {}
        self.constants: dict[str, Any] = {
            "state": context.state,
            "alias": alias,
            "written": written,
            "Untouched": Untouched,
        }
        for value, tensor in graph.constants.items():
            self.names[value] = self._constant(tensor)
        self.function = self._compiled()

    def __call__(self, *inputs: Any) -> list[Any]:
        """The outputs, computed by this thread's executor without recording."""
        return self.function(*inputs)

    def _constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def _name(self, value: Value) -> str:
        return self.names.setdefault(value, f"v{len(self.names)}")

    def _text(self, operand: Any) -> str:
        if isinstance(operand, Value):
            return self._name(operand)
        if type(operand) is tuple:
            return "(" + "".join(self._text(v) + ", " for v in operand) + ")"
        return (
            repr(operand) if type(operand) in (int, bool, type(None)) else self._constant(operand)
        )

    def _parameters(self, equation: Equation) -> str:
        if not equation.open_params:
            return self._constant(dict(equation.params))
        pairs = (f"{k!r}: {self._text(v)}" for k, v in equation.params.items())
        return "{" + ", ".join(pairs) + "}"

    def _step(self, equation: Equation) -> str:
        args = self._text(equation.inputs)
        if equation.op == "alias":
            return f"{self._name(equation.outputs[0])} = alias(*{args})"
        if is_number(equation.op):
            function = self._constant(function_of(equation.op))
            return f"{self._name(equation.outputs[0])} = {function}(*{args})"
        call = f"{self._constant(equation.op)}, {args}, {self._parameters(equation)}"
        if equation.target is not None:
            target = self._name(equation.target)
            call = call.replace(", ", f", {target}, ", 1)
            return f"execute_inplace({call}); written({target})"
        outputs = ", ".join(map(self._name, equation.outputs)) + "," * equation.several
        return f"{outputs} = execute({call})"

    def _compiled(self) -> Callable[..., list[Any]]:
        """Everything before the first effect raises Untouched when it fails."""
        inputs = [self._name(v) for v in self.graph.inputs]
        head = ["execute = state.executor.execute"]
        head.append("execute_inplace = state.executor.execute_inplace")
        lines, effects = ["try:", "    pass"], False
        for equation, dead in zip(self.graph.equations, last_uses(self.graph)):
            if equation.has_effect and not effects:
                effects = True
                lines.append("except Exception as error: raise Untouched from error")
            step = self._step(equation)
            names = [self.names[v] for v in dead if v not in self.graph.constants]
            step += f"; del {', '.join(names)}" if names else ""
            lines.append(step if effects else "    " + step)
        if not effects:
            lines.append("except Exception as error: raise Untouched from error")
        result = ", ".join(self._name(v) for v in self.graph.outputs)
        body = "\n    ".join([*head, *lines, f"return [{result}]"])
        held = ", ".join(f"{c}={c}" for c in self.constants)
        text = f"def program({', '.join([*inputs, held])}):\n    {body}\n"
        space = dict(self.constants)
        exec(compile(text, "<flambeau graph>", "exec"), space)
        return space["program"]
