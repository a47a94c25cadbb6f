"""`@functional`: put a function into `nn.functional`, open to `__torch_function__`."""

from __future__ import annotations

from collections.abc import Callable

from flambeau.tensor.public import FUNCTIONS, public


def functional(
    f: Callable | None = None,
    *,
    name: str | None = None,
    toplevel: bool = False,
    aliases: tuple[str, ...] = (),
    out: bool = False,
) -> Callable:
    """Register under nn.functional, and with `toplevel` also as `flambeau.name`."""
    if f is None:
        return lambda f: functional(f, name=name, toplevel=toplevel, aliases=aliases, out=out)
    call = public(f, name=name, module="nn.functional", method=False, out=out, aliases=aliases)
    if toplevel:
        for n in (name or f.__name__, *aliases):
            FUNCTIONS[""][n] = call
    return call
