"""Elementary functions by name: a table where there is one, our own code, or the C library."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau.codegen import libm, maths, special, tables
from flambeau.codegen.text import Function, Value


def function(f: Function, name: str, args: Sequence[Value]) -> Value:
    """The value of an elementary function; those without code of ours come from the C library."""
    if tables.has_table(f, name, args[0]):
        return tables.looked_up(f, name, args[0])
    own = maths.FUNCTIONS.get(name) or special.FUNCTIONS.get(name)
    return own(f, *args) if own is not None else libm.per_lane(f, name, list(args))
