"""`torch._dynamo`: the names that scripts touch."""

from __future__ import annotations

from flambeau.compile import config, register_backend
from flambeau.compile.backends import list_backends
from flambeau.compile.explain import explain, explain_recompile
from flambeau.compile.marks import (
    allow_in_graph,
    assume_constant_result,
    disable,
    graph_break,
    is_compiling,
    mark_dynamic,
    mark_static,
    mark_static_address,
    maybe_mark_dynamic,
    reset,
)
from flambeau.compile.records import Unsupported
from flambeau.core.nearest import missing_name

__all__ = [
    "Unsupported",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "explain",
    "explain_recompile",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "register_backend",
    "reset",
]

__getattr__ = missing_name(__name__)
