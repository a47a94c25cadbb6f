"""`torch.compiler`: what programs say to the compiler."""

from __future__ import annotations

from flambeau.compile.marks import (
    allow_in_graph,
    assume_constant_result,
    cudagraph_mark_step_begin,
    disable,
    is_compiling,
    is_dynamo_compiling,
    is_exporting,
    reset,
    set_stance,
)

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "reset",
    "set_stance",
]
