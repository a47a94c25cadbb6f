"""Reading a graph back from its text, for tests, reports and minimised failures."""

from __future__ import annotations

import ast
import re
from typing import Any

from flambeau.core import dtype as dtypes
from flambeau.core.device import device as Device
from flambeau.core.errors import ValueRangeError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.graph.graph import Equation, Graph, Value
from flambeau.ops.registry import REGISTRY

TYPED = re.compile(r"%(\d+): (\w+)\[([\d, ]*)\](?:\[([\d, ]*)\])?(?:@([\w:]+))?")
NAMES = {d.name: d for d in dtypes.ALL}


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n.strip()]


def _spec(match: re.Match) -> Spec:
    strides = None if match[4] is None else _numbers(match[4])
    where = Device(match[5] or "cpu")
    return spec(NAMES[match[2]], _numbers(match[3]), strides, where)


class Parser:
    """Reads one graph; `values` maps printed numbers to Values."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}

    def typed(self, text: str) -> list[Value]:
        """Define the values of `%0: float32[2], %1: ...`."""
        found = []
        for match in TYPED.finditer(text):
            value = self.values[match[1]] = Value(_spec(match))
            found.append(value)
        return found

    def names(self, text: str) -> list[Value]:
        return [self.values[n] for n in re.findall(r"%(\d+)", text)]

    def equation(self, line: str) -> Equation:
        left, sign, right = _halves(line)
        name, _, rest = right.partition("(")
        inputs, params = self.call(rest.rstrip()[:-1])
        op: Any = name if name == "alias" else REGISTRY[name]
        if sign == "<-":
            return Equation(op, inputs, params, target=self.names(left)[0])
        return Equation(op, inputs, params, self.typed(left))

    def call(self, text: str) -> tuple[list[Any], dict[str, Any]]:
        """Operands and parameters."""
        text = re.sub(r"%(\d+)", r"v_\1", text)
        text = re.sub(r"torch\.(\w+)", r"d_\1", text)
        text = re.sub(r"\bdevice\(type='(\w+)'[^)]*\)", r"w_\1", text)
        text = re.sub(r"\bd_Size\(", "(", text)
        parsed = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(parsed, ast.Call)
        params = {k.arg: self.literal(k.value) for k in parsed.keywords if k.arg}
        return [self.literal(a) for a in parsed.args], params

    def literal(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name) and node.id[:2] in ("v_", "d_", "w_"):
            kind, name = node.id[0], node.id[2:]
            makers = {"v": self.values.__getitem__, "d": NAMES.__getitem__, "w": Device}
            return makers[kind](name)
        if isinstance(node, ast.Name) and node.id in ("inf", "nan"):
            return float(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Name):
            return -self.literal(node.operand)
        if isinstance(node, ast.Tuple):
            return tuple(self.literal(e) for e in node.elts)
        if isinstance(node, ast.List):
            return [self.literal(e) for e in node.elts]
        return ast.literal_eval(node)


def _halves(line: str) -> tuple[str, str, str]:
    for sign in (" <- ", " = "):
        if sign in line:
            left, _, right = line.partition(sign)
            return left, sign.strip(), right
    raise ValueRangeError(complaint("graph", "a line must be an equation", dict(line=line)))


def parse(text: str) -> Graph:
    """The graph whose `str` is `text`; constants come back without their data."""
    parser = Parser()
    inputs: list[Value] = []
    constants: dict[Value, Any] = {}
    equations, outputs = [], []
    for line in text.strip().splitlines():
        word, _, rest = line.partition(" ")
        if word == "inputs":
            inputs = parser.typed(rest)
        elif word == "constant":
            constants.update(dict.fromkeys(parser.typed(rest)))
        elif word == "outputs":
            outputs = parser.names(rest)
        else:
            equations.append(parser.equation(line))
    return Graph(inputs, equations, outputs, constants)
