"""Convolutions whose activation is applied where a tile is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from flambeau.graph import Graph
from flambeau.graph.graph import Equation, Value


@dataclass(frozen=True, slots=True)
class Activated:
    """outputs = relu(product); nobody else sees what the product alone gives."""

    product: Equation
    relu: Equation

    @property
    def equations(self) -> tuple[Equation, Equation]:
        return self.product, self.relu

    def values(self) -> Iterator[Value]:
        """What both read."""
        return self.product.values()

    @property
    def name(self) -> str:
        return f"{self.product.name}_relu"


def activations(graph: Graph) -> dict[Equation, Activated]:
    """product -> the pair that stands in its place; the pair's second equation is dropped."""
    uses = Counter(graph.outputs)
    for equation in graph.equations:
        uses.update(equation.uses())
    products = {e.outputs[0]: e for e in graph.equations if e.name == "conv" and e.outputs}
    found = {}
    for equation in graph.equations:
        product = products.get(equation.inputs[0]) if is_relu(equation) else None
        if product is not None and uses[equation.inputs[0]] == 1 and fits(product, equation):
            found[product] = Activated(product, equation)
    return found


def is_relu(equation: Equation) -> bool:
    return equation.name == "relu" and equation.target is None


def fits(product: Equation, relu: Equation) -> bool:
    """A convolution without bias may have a faster kernel that takes no epilogue."""
    return product.inputs[2] is not None and product.outputs[0].spec is relu.outputs[0].spec
