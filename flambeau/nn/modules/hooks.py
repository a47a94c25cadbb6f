"""Callbacks around a module's call: before and after forward, and when gradients pass.

A module without callbacks does not pay for them: `_intercepted`, on the instance or (for global
hooks) on the class, is the one thing that `Module.__call__` looks at. A table may be changed
directly as well, but only a registration switches the slow path on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from flambeau.autograd.handles import RemovableHandle
from flambeau.core.errors import OpError, complaint
from flambeau.nn.modules.gradient_hooks import GradientWatch, watch_first_gradient
from flambeau.nn.modules.tables import Tables

Hook = Callable[..., Any]


class GlobalHooks:
    """Hooks that hold for every module of the process."""

    def __init__(self) -> None:
        self.forward_pre: dict[int, Hook] = {}
        self.forward: dict[int, Hook] = {}
        self.forward_with_kwargs: dict[int, bool] = {}
        self.forward_always_called: dict[int, bool] = {}
        self.backward_pre: dict[int, Hook] = {}
        self.backward: dict[int, Hook] = {}
        self.backward_is_full: bool | None = None
        self.parameter_registration: dict[int, Hook] = {}
        self.buffer_registration: dict[int, Hook] = {}
        self.module_registration: dict[int, Hook] = {}


GLOBAL = GlobalHooks()


def add_hook(table: dict[int, Hook], hook: Hook, *extra: dict, prepend: bool = False) -> Any:
    """Append (or prepend) hook to table; the handle also clears its marks in the extra tables."""
    handle = RemovableHandle(table, extra_dict=list(extra))
    table[handle.id] = hook
    if prepend:
        for key in [k for k in table if k != handle.id]:
            table[key] = table.pop(key)
    return handle


class HookRegistration(Tables):
    """The part of Module that registers hooks on one module."""

    _intercepted = False

    def _intercept(self) -> None:
        self._touch()
        self.__dict__["_intercepted"] = True

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """hook(module, args) before forward; what it returns replaces the positional arguments.

        with_kwargs: hook(module, args, kwargs), which may return a new (args, kwargs).
        """
        marks = self._forward_pre_hooks_with_kwargs
        handle = add_hook(self._forward_pre_hooks, hook, marks, prepend=prepend)
        if with_kwargs:
            marks[handle.id] = True
        self._intercept()
        return handle

    def register_forward_hook(
        self,
        hook: Hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """hook(module, args, output) after forward; what it returns replaces the output.

        with_kwargs: hook(module, args, kwargs, output). always_call: also if forward raises, with
        output None.
        """
        marks = self._forward_hooks_with_kwargs, self._forward_hooks_always_called
        handle = add_hook(self._forward_hooks, hook, *marks, prepend=prepend)
        if with_kwargs:
            marks[0][handle.id] = True
        if always_call:
            marks[1][handle.id] = True
        self._intercept()
        return handle

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_output) before the gradients of the inputs are computed."""
        handle = add_hook(self._backward_pre_hooks, hook, prepend=prepend)
        self._intercept()
        return handle

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_input, grad_output) when the gradients of the inputs are known."""
        self._choose_backward_kind(full=True)
        handle = add_hook(self._backward_hooks, hook, prepend=prepend)
        self._intercept()
        return handle

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """hook(module, grad_input, grad_output) of the module's last operation only.

        Deprecated: register_full_backward_hook gives the gradients of the module.
        """
        self._choose_backward_kind(full=False)
        handle = add_hook(self._backward_hooks, hook)
        self._intercept()
        return handle

    def _choose_backward_kind(self, full: bool) -> None:
        if self._is_full_backward_hook not in (None, full):
            raise OpError(
                complaint(
                    "register_backward_hook",
                    "full and non-full backward hooks cannot be mixed on one module",
                    {"module": type(self).__name__},
                    "Use register_full_backward_hook for all.",
                )
            )
        self.__dict__["_is_full_backward_hook"] = full


def call_with_hooks(module: Any, args: tuple, kwargs: dict) -> Any:
    """module.forward(*args, **kwargs) with every hook around it."""
    pending = {**GLOBAL.forward, **module._forward_hooks}
    try:
        args, kwargs = run_pre_hooks(module, args, kwargs)
        watch, partial = gradient_watch(module)
        if watch is not None:
            args = watch.wrap_inputs(args)
        result = module.forward(*args, **kwargs)
        for key in list(pending):
            hook = pending.pop(key)
            replaced = run_forward_hook(module, key, hook, args, kwargs, result)
            result = result if replaced is None else replaced
        if watch is not None:
            result = watch.wrap_outputs(result)
        if partial:
            watch_first_gradient(module, partial, result)
        return result
    except Exception:
        run_always_called(module, pending, args, kwargs)
        raise


def run_pre_hooks(module: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments, after each forward pre-hook had its turn."""
    for key, hook in [*GLOBAL.forward_pre.items(), *module._forward_pre_hooks.items()]:
        if key not in module._forward_pre_hooks_with_kwargs:
            replaced = hook(module, args)
            if replaced is not None:
                args = replaced if isinstance(replaced, tuple) else (replaced,)
            continue
        replaced = hook(module, args, kwargs)
        if replaced is None:
            continue
        if not (isinstance(replaced, tuple) and len(replaced) == 2):
            raise OpError(
                complaint(
                    "forward pre-hook",
                    "a hook with kwargs must return None or (args, kwargs)",
                    {"result": repr(replaced)},
                )
            )
        args, kwargs = replaced
    return args, kwargs


def run_forward_hook(
    module: Any, key: int, hook: Hook, args: tuple, kwargs: dict, result: Any
) -> Any:
    """Call one forward hook in the form it was registered for."""
    if key in module._forward_hooks_with_kwargs or key in GLOBAL.forward_with_kwargs:
        return hook(module, args, kwargs, result)
    return hook(module, args, result)


def run_always_called(module: Any, pending: dict, args: tuple, kwargs: dict) -> None:
    """After an exception: the hooks that want to run all the same, and have not yet."""
    for key, hook in pending.items():
        always = key in module._forward_hooks_always_called
        if not always and key not in GLOBAL.forward_always_called:
            continue
        try:
            run_forward_hook(module, key, hook, args, kwargs, None)
        except Exception as error:
            warnings.warn(
                f"a forward hook with always_call=True raised {error!r} while another exception "
                "was being handled",
                stacklevel=4,
            )


def gradient_watch(module: Any) -> tuple[GradientWatch | None, list[Hook]]:
    """What watches the gradients of this call, and the non-full hooks."""
    full: list[Hook] = []
    partial: list[Hook] = []
    (full if GLOBAL.backward_is_full else partial).extend(GLOBAL.backward.values())
    own = full if module._is_full_backward_hook is not False else partial
    own.extend(module._backward_hooks.values())
    before = [*GLOBAL.backward_pre.values(), *module._backward_pre_hooks.values()]
    watch = GradientWatch(module, full, before) if full or before else None
    return watch, partial


def _globally(table: dict[int, Hook], hook: Hook, *extra: dict) -> RemovableHandle:
    HookRegistration._intercepted = True
    return add_hook(table, hook, *extra)


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """hook(module, args) before the forward of every module."""
    return _globally(GLOBAL.forward_pre, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """hook(module, args, output) after the forward of every module."""
    marks = GLOBAL.forward_with_kwargs, GLOBAL.forward_always_called
    handle = _globally(GLOBAL.forward, hook, *marks)
    if with_kwargs:
        marks[0][handle.id] = True
    if always_call:
        marks[1][handle.id] = True
    return handle


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """hook(module, grad_output) before the backward of every module."""
    return _globally(GLOBAL.backward_pre, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """hook(module, grad_input, grad_output) in the backward of every module."""
    return _register_global_backward(hook, full=True)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """The non-full form of register_module_full_backward_hook (deprecated)."""
    return _register_global_backward(hook, full=False)


def _register_global_backward(hook: Hook, full: bool) -> RemovableHandle:
    if GLOBAL.backward and GLOBAL.backward_is_full is not full:
        raise OpError(
            complaint(
                "register_module_backward_hook",
                "full and non-full backward hooks cannot both be global",
                hint="Use register_module_full_backward_hook for all.",
            )
        )
    GLOBAL.backward_is_full = full
    return _globally(GLOBAL.backward, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """hook(module, name, parameter) at every register_parameter; a result replaces it."""
    return add_hook(GLOBAL.parameter_registration, hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """hook(module, name, buffer) at every register_buffer; a result replaces it."""
    return add_hook(GLOBAL.buffer_registration, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """hook(module, name, child) at every registration of a child; a result replaces it."""
    return add_hook(GLOBAL.module_registration, hook)
