"""`torch.compiler`: what programs say to the compiler."""

from __future__ import annotations

from flambeau.compile import compile, config
from flambeau.compile.backends import list_backends
from flambeau.compile.explain import explain, explain_recompile
from flambeau.compile.marks import (
    allow_in_graph,
    assume_constant_result,
    cudagraph_mark_step_begin,
    disable,
    is_compiling,
    is_dynamo_compiling,
    is_exporting,
    nested_compile_region,
    reset,
    set_stance,
    substitute_in_graph,
    wait,
    wrap_numpy,
)
from flambeau.core.nearest import missing_name

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "config",
    "cudagraph_mark_step_begin",
    "disable",
    "explain",
    "explain_recompile",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "nested_compile_region",
    "reset",
    "set_stance",
    "substitute_in_graph",
    "wait",
    "wrap_numpy",
]

__getattr__ = missing_name(__name__)
