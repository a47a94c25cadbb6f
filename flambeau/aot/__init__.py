"""Ahead-of-time autograd: the forward and backward pass of a captured graph as two programs."""

from flambeau.aot.program import differentiable
from flambeau.aot.trace import Traced, trace

__all__ = ["Traced", "differentiable", "trace"]
