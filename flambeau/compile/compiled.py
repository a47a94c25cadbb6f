"""`compile(fn)`: a callable that answers for `fn` with captured programs."""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

from flambeau.capture import frame_hook
from flambeau.capture.bytecodes import argument_names
from flambeau.capture.capture import Options
from flambeau.capture.values import static
from flambeau.compile import config
from flambeau.compile.frames import Offered
from flambeau.compile.sites import FailedGuard, Region, Site, can_capture
from flambeau.core.errors import ArgumentError, complaint

regions: weakref.WeakSet[Region] = weakref.WeakSet()


def entry_function(
    function: types.FunctionType, site: Site, call: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """A function with the signature of `function` that hands its raw arguments to the site, or to
    `call`."""
    code = function.__code__
    names = argument_names(code)
    parameters = signature_text(code)
    text = f"def enter({parameters}): return call(function, {', '.join(names)})"
    space: dict[str, Any] = {"call": call or site.call, "function": function}
    exec(compile(text, "<flambeau enter>", "exec"), space)
    made = space["enter"]
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    made.__name__, made.__qualname__ = function.__name__, function.__qualname__
    frame_hook_skip(made)
    return made


def frame_hook_skip(function: types.FunctionType) -> None:
    if frame_hook.hook.cache_info().currsize:
        frame_hook.skip(function.__code__)


def signature_text(code: types.CodeType) -> str:
    """The parameter list; defaults are put in afterwards, so any name will do for them."""
    names = list(argument_names(code))
    parts = names[: code.co_argcount]
    if code.co_posonlyargcount:
        parts.insert(code.co_posonlyargcount, "/")
    at = code.co_argcount + code.co_kwonlyargcount
    rest = names[at:]
    if code.co_flags & 0x04:
        parts.append("*" + rest.pop(0))
    elif code.co_kwonlyargcount:
        parts.append("*")
    parts += names[code.co_argcount : at]
    if code.co_flags & 0x08:
        parts.append("**" + rest.pop(0))
    return ", ".join(parts)


class Compiled:
    """A compiled function. Calling it has the effect of calling the original."""

    inlined = True
    """The interpreter calls `function` instead."""

    def __init__(self, function: types.FunctionType, options: Options):
        functools.update_wrapper(self, function)
        self.function = function
        self.options = options
        self.region = Region(options, function.__qualname__)
        if frame_hook.available():
            self.region.frames = Offered(self.region)
        else:
            self.region.entry = entry_function
        regions.add(self.region)
        self.site = self.region.site(function.__code__, function.__globals__)
        self.enter = entry_function(function, self.site)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not config.enabled:
            return self.function(*args, **kwargs)
        if self.site.code is not self.function.__code__ or self.region.sites == {}:
            self._renew()
        return self.enter(*args, **kwargs)

    def _renew(self) -> None:
        """After a reset, or when the function's code was replaced."""
        function = self.function
        self.site = self.region.site(function.__code__, function.__globals__)
        self.enter = entry_function(function, self.site)

    def explain_recompile(self, *args: Any, **kwargs: Any) -> list[FailedGuard]:
        """What in a call with these arguments the newest program does not serve; empty if it
        would answer."""
        bound: list[tuple] = []
        ask = entry_function(self.function, self.site, lambda _, *values: bound.append(values))
        ask(*args, **kwargs)
        return self.site.explain_recompile(self.function, bound[0])

    def __get__(self, owner: Any, cls: type | None = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __repr__(self) -> str:
        return f"<compiled {self.function.__qualname__}>"

    def __reduce__(self) -> tuple:
        return remake, (self.function, self.options)

    def __deepcopy__(self, memo: dict) -> Compiled:
        return remake(self.function, self.options)

    @property
    def _torchdynamo_orig_callable(self) -> Any:
        return self.function


def remake(function: types.FunctionType, options: Options) -> Compiled:
    return Compiled(function, options)


def compiled(target: Any, options: Options) -> Any:
    """The compiled form of a function, a bound method or a callable object."""
    if isinstance(target, Compiled):
        return target
    if isinstance(target, types.FunctionType):
        return Compiled(target, options) if can_capture(target.__code__) else target
    if isinstance(target, types.MethodType) and isinstance(target.__func__, types.FunctionType):
        inner = compiled(target.__func__, options)
        return types.MethodType(inner, target.__self__)
    call = static(type(target), "__call__")
    if isinstance(call, types.FunctionType):
        return types.MethodType(compiled(call, options), target)
    if callable(target):
        return target
    raise ArgumentError(
        complaint("compile", "a callable is needed", {"got": type(target).__name__})
    )
