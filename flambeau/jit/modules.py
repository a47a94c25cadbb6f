"""What `script` and `trace` return: a module or a function that runs as before.

A scripted module shares the parameters, buffers and submodules of the original; methods and
attributes are found there too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.core.errors import ArgumentError, OpError, complaint
from flambeau.jit.archives import save
from flambeau.nn import Module
from flambeau.tensor import Tensor


class ScriptModule(Module):
    """A module as TorchScript sees one; subclass it as you would Module."""

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """See `jit.save`."""
        save(self, f, _extra_files)


class RecursiveScriptModule(ScriptModule):
    """The module that `script` was given, under a class that says so."""

    def __init__(self, original: Module):
        super().__init__()
        self.__dict__["_original"] = original
        for shared in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            self.__dict__[shared] = original.__dict__[shared]
        self.__dict__["training"] = original.training

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        return type(self._original).__name__

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The original's forward, with its hooks."""
        return self._original(*args, **kwargs)

    def train(self, mode: bool = True) -> RecursiveScriptModule:
        """Set the mode, of the original too."""
        self._original.train(mode)
        return super().train(mode)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_original"], name)


class TopLevelTracedModule(RecursiveScriptModule):
    """The module that `trace` was given."""


TracedModule = TopLevelTracedModule


class ScriptFunction:
    """A function that was scripted or traced."""

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """See `jit.save`."""
        save(self, f, _extra_files)


class CompilationUnit:
    """TorchScript source as functions: refused, flambeau runs Python."""

    def __init__(self, lang: str | None = None, _frames_up: int = 0):
        if lang is not None:
            must, hint = "TorchScript source is not compiled", "Write the function in Python."
            raise OpError(complaint("CompilationUnit", must, {}, hint))


def script(obj: Any, optimize: Any = None, example_inputs: Any = None, **kwargs: Any) -> Any:
    """The module, function or class, marked as scripted; it runs as the Python that it is."""
    if isinstance(obj, (ScriptModule, ScriptFunction, type)):
        return obj
    if isinstance(obj, Module):
        return RecursiveScriptModule(obj)
    if callable(obj):
        return ScriptFunction(obj)
    if isinstance(obj, (dict, list)):
        return obj
    facts = {"got": type(obj).__name__}
    raise ArgumentError(complaint("jit.script", "expects a module, function or class", facts))


def trace(
    func: Any = None,
    example_inputs: Any = None,
    check_trace: bool = True,
    strict: bool = True,
    example_kwarg_inputs: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """The module or function, after one run on the examples; Python's own branches stay open."""
    if example_inputs is None and example_kwarg_inputs is None:
        hint = "Pass a tensor, or a tuple of arguments."
        raise ArgumentError(complaint("jit.trace", "example_inputs must be given", {}, hint))
    alone = isinstance(example_inputs, (Tensor, Mapping)) or example_inputs is None
    arguments = (example_inputs,) if alone else tuple(example_inputs)
    if example_inputs is None:
        arguments = ()
    with no_grad():
        func(*arguments, **(example_kwarg_inputs or {}))
    if isinstance(func, Module):
        return func if isinstance(func, ScriptModule) else TopLevelTracedModule(func)
    return ScriptFunction(func)


def trace_module(mod: Module, inputs: dict[str, Any], **options: Any) -> Any:
    """The module, after one run of each named method on its examples."""
    for name, examples in inputs.items():
        arguments = (examples,) if isinstance(examples, Tensor) else tuple(examples)
        with no_grad():
            getattr(mod, name)(*arguments)
    return mod if isinstance(mod, ScriptModule) else TopLevelTracedModule(mod)


def freeze(
    mod: Any,
    preserved_attrs: list[str] | None = None,
    optimize_numerics: bool = True,
) -> Any:
    """The module in evaluation mode, as it is: `compile` folds constants by itself."""
    if not isinstance(mod, ScriptModule):
        must, facts = "expects a ScriptModule", {"got": type(mod).__name__}
        raise OpError(complaint("jit.freeze", must, facts, "Call jit.script."))
    if mod.training:
        must = "freezing is for modules in eval mode"
        raise OpError(complaint("jit.freeze", must, {"training": True}, "Call .eval() first."))
    return mod


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """The module as it is: `compile` optimises."""
    return mod


def run_frozen_optimizations(mod: Any, *args: Any, **kwargs: Any) -> None:
    """Accepted; `compile` optimises."""
