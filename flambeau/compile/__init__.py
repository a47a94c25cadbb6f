"""`flambeau.compile` and what belongs to it."""

from __future__ import annotations

import functools
import importlib
import sys
import types
from typing import Any

from flambeau.aot import differentiable
from flambeau.capture.capture import Options
from flambeau.compile.backends import backend_of, register_backend
from flambeau.compile.compiled import compiled
from flambeau.compile.settings import settings_of


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "native",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    verify: bool = False,
) -> Any:
    """The same function or module, running as captured programs.

    fullgraph   raise instead of running a part as plain Python
    dynamic     None: numbers and sizes that change become symbolic; True: from the start; False:
                never
    backend     a name, or (graph, example inputs) -> callable
    mode        "sync": calls wait for their programs; "max-autotune": kernels are timed against
                each other; other names of PyTorch's change nothing
    options     "tier": "background" or "sync"; "max_autotune": True
    verify      run eager operations beside, and name the first operation that differs
    """
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
            verify=verify,
        )
    settings = settings_of(mode, options)
    run = backend_of(backend, settings._replace(wait=settings.wait or verify))
    if verify:
        run = importlib.import_module("flambeau.compile.verification").Verified(run)
    chosen = Options(
        run, differentiable, fullgraph, frozenset(), dynamic is False, dynamic is True
    )
    if disable:
        return model
    from flambeau.nn import Module

    if isinstance(model, Module):
        module = importlib.import_module("flambeau.compile.module")
        return module.OptimizedModule(model, chosen)
    return compiled(model, chosen)


class _Callable(types.ModuleType):
    """`torch.compile` is a function, and importing this package puts the package in its place."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return compile(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
__all__ = ["compile", "register_backend"]
