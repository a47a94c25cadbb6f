"""Module: the base class of every layer and model."""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any

from flambeau.core.errors import ArgumentError, UnsupportedError, complaint
from flambeau.nn.modules.conversion import Conversion
from flambeau.nn.modules.hooks import (
    HookRegistration,
    call_with_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from flambeau.nn.modules.registration import Registration
from flambeau.nn.modules.state import IncompatibleKeys, StateDict
from flambeau.nn.modules.tables import HOOK_TABLES, MODULE_TABLES

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_IncompatibleKeys = IncompatibleKeys


class Module(Registration, HookRegistration, StateDict, Conversion):
    """A function of tensors that owns parameters, buffers and other modules.

    Subclasses call super().__init__() first, assign what they own to attributes, and define
    forward(); calling the module runs forward() with the hooks around it.
    """

    dump_patches = False
    _version = 1
    call_super_init = False
    training: bool
    _compiled_call_impl: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            raise ArgumentError(
                complaint(
                    "Module.__init__",
                    "no arguments are expected",
                    {"args": args, "kwargs": sorted(kwargs)},
                    "Take them in your own __init__ and call super().__init__() without.",
                )
            )
        state = self.__dict__
        state["training"] = True
        for table in MODULE_TABLES:
            state[table] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_is_full_backward_hook"] = None
        for table in HOOK_TABLES:
            state[table] = OrderedDict()
        self._touch()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every subclass defines it."""
        raise UnsupportedError(
            complaint(
                type(self).__name__,
                'a module must define "forward"',
                hint="Add def forward(self, ...): to the class.",
            )
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._intercepted:
            if self._compiled_call_impl is not None:
                return self._compiled_call_impl(*args, **kwargs)
            return call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """A call that passes by what `compile` has put in front."""
        if self._intercepted:
            return call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile this module's call; arguments as for flambeau.compile."""
        package = sys.modules[__name__.partition(".")[0]]  # compile lies above nn
        self._compiled_call_impl = package.compile(self._call_impl, *args, **kwargs)
        self._intercept()

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What a module shows of itself between the brackets; override."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): {indented(repr(child), 2)}" for name, child in self._modules.items()
        ]
        return bracketed(self._get_name(), lines, children)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        state.pop("_changed_at", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        own = self.__dict__
        own.update(state)
        for table in HOOK_TABLES:
            own.setdefault(table, OrderedDict())
        own.setdefault("_non_persistent_buffers_set", set())
        own.setdefault("_is_full_backward_hook", None)
        own["_intercepted"] = any(own[table] for table in HOOK_TABLES)
        self._touch()

    def _replicate_for_data_parallel(self) -> Any:
        """A shallow copy with tables of its own."""
        replica = type(self).__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        for table in MODULE_TABLES:
            replica.__dict__[table] = replica.__dict__[table].copy()
        return replica


def indented(text: str, spaces: int) -> str:
    """text with every line but the first moved to the right."""
    return text.replace("\n", "\n" + " " * spaces)


def bracketed(name: str, lines: list[str], children: list[str]) -> str:
    """`name(...)`: on one line if there are no children and at most one line to show."""
    if not children and len(lines) <= 1:
        return f"{name}({''.join(lines)})"
    return "\n  ".join([f"{name}(", *lines, *children]) + "\n)"
