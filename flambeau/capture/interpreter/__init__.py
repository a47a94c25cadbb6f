"""The concolic interpreter: canonical bytecode on real Python objects and traced tensors."""

from flambeau.capture.interpreter import autograd_calls, skipped_steps
from flambeau.capture.interpreter.run import Interpreter

__all__ = ["Interpreter", "autograd_calls", "skipped_steps"]
