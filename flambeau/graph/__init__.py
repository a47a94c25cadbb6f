"""Graphs: what a captured or traced function does to tensors, as ordered equations."""

from flambeau.graph.graph import Equation, Graph, Value
from flambeau.graph.interpret import run
from flambeau.graph.parse import parse
from flambeau.graph.verify import GraphError, verify

__all__ = ["Equation", "Graph", "GraphError", "Value", "parse", "run", "verify"]
