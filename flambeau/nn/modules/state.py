"""Saving and loading a module's state: parameters and persistent buffers by dotted path."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.core.errors import ArgumentError, OpError, complaint
from flambeau.nn.modules.hooks import add_hook
from flambeau.nn.modules.tables import Tables
from flambeau.nn.parameter import Parameter, is_lazy
from flambeau.tensor import Tensor

EXTRA_STATE_KEY = "_extra_state"


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What load_state_dict returns."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class StateDict(Tables):
    """The part of Module that saves to and loads from dictionaries."""

    def get_extra_state(self) -> Any:
        """Override to add a picklable object to state_dict under '_extra_state'."""
        raise OpError(self._extra_state_rule("get_extra_state"))

    def set_extra_state(self, state: Any) -> None:
        """Override to take back from load_state_dict what get_extra_state gave."""
        raise OpError(self._extra_state_rule("set_extra_state"))

    def _extra_state_rule(self, method: str) -> str:
        return complaint(
            method,
            "a module with extra state must define get_extra_state and set_extra_state",
            {"module": type(self).__name__},
        )

    def state_dict(
        self,
        *args: Any,
        destination: dict | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """Path -> tensor for all parameters and persistent buffers; they share memory.

        keep_vars: the parameters themselves instead of detached aliases.
        """
        destination, prefix, keep_vars = positional_state_arguments(
            args, destination, prefix, keep_vars
        )
        if destination is None:
            destination = OrderedDict()
            vars(destination)["_metadata"] = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise OpError(complaint("state_dict", "a post-hook must return None"))
            destination = result
        return destination

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        """This module's own entries; override to save in another form."""
        for name, tensor in self._persistent_state().items():
            if tensor is not None:
                kept = keep_vars or is_lazy(tensor)
                destination[prefix + name] = tensor if kept else tensor.detach()
        if type(self).get_extra_state is not StateDict.get_extra_state:
            destination[prefix + EXTRA_STATE_KEY] = self.get_extra_state()

    def _persistent_state(self) -> dict[str, Tensor | None]:
        left_out = self._non_persistent_buffers_set
        buffers = {name: b for name, b in self._buffers.items() if name not in left_out}
        return {**self._parameters, **buffers}

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy a state_dict into this module, or with assign let the module take its tensors.

        strict: keys must match exactly, else RuntimeError lists them all.
        """
        if not isinstance(state_dict, Mapping):
            raise ArgumentError(
                complaint("load_state_dict", "a mapping is expected", {"got": type(state_dict)})
            )
        loading = Loading(state_dict, strict, assign)
        loading.visit(self, "", loading.state)
        result = IncompatibleKeys(loading.missing, loading.unexpected)
        loading.finish(self, result)
        return result

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own entries; override to read an older form.

        Appends to the three lists instead of raising.
        """
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = self._persistent_state()
        for name, tensor in own.items():
            key = prefix + name
            if tensor is None:
                continue
            if key in state_dict:
                load_tensor(self, name, tensor, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            known = {name for name, tensor in own.items() if tensor is not None}
            unexpected_keys.extend(unknown_keys(state_dict, prefix, known, self._modules))

    def _load_extra_state(
        self, state_dict: dict, prefix: str, strict: bool, missing: list, unexpected: list
    ) -> None:
        key = prefix + EXTRA_STATE_KEY
        if type(self).set_extra_state is not StateDict.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing.append(key)
        elif strict and key in state_dict:
            unexpected.append(key)

    def _register_state_dict_hook(self, hook: Callable) -> Any:
        """hook(module, state_dict, prefix, metadata), which may return another state_dict."""
        if getattr(hook, "_from_public_api", False):
            raise OpError(
                complaint(
                    "_register_state_dict_hook",
                    "a hook registered with register_state_dict_post_hook cannot be reused",
                )
            )
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> Any:
        """hook(module, state_dict, prefix, metadata) after state_dict; it may change it."""
        vars(hook)["_from_public_api"] = True
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable) -> Any:
        """hook(module, prefix, keep_vars) before state_dict."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> Any:
        called = BoundPreHook(hook, self) if with_module else hook
        return add_hook(self._load_state_dict_pre_hooks, called)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> Any:
        """hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable) -> Any:
        """hook(module, incompatible_keys) after load_state_dict; it may change the keys."""
        return add_hook(self._load_state_dict_post_hooks, hook)


class BoundPreHook:
    """A load_state_dict pre-hook that wants the module first; survives copying and pickling."""

    def __init__(self, hook: Callable, module: Any) -> None:
        self.hook = hook
        self.module = module

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module, *args)


class Loading:
    """One load_state_dict: the state, and what was found wrong on the way."""

    def __init__(self, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> None:
        self.metadata = getattr(state_dict, "_metadata", None)
        self.state = OrderedDict(state_dict)
        if self.metadata is not None:
            vars(self.state)["_metadata"] = self.metadata
        self.strict = strict
        self.assign = assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []

    def visit(self, module: Any, prefix: str, state: dict) -> None:
        """Load module and everything below it."""
        local_metadata = {} if self.metadata is None else self.metadata.get(prefix[:-1], {})
        if self.assign:
            local_metadata["assign_to_params_buffers"] = True
        module._load_from_state_dict(
            state, prefix, local_metadata, True, self.missing, self.unexpected, self.errors
        )
        for name, child in module._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                part = {key: v for key, v in state.items() if key.startswith(below)}
                self.visit(child, below, part)
        keys = IncompatibleKeys(self.missing, self.unexpected)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, keys) is not None:
                raise OpError(
                    complaint(
                        "load_state_dict",
                        "a post-hook must return None",
                        hint="Change the lists in incompatible_keys in place.",
                    )
                )

    def finish(self, module: Any, result: IncompatibleKeys) -> None:
        """Raise if anything went wrong."""
        problems = list(self.errors)
        if self.strict:
            quoted = {
                kind: ", ".join(f'"{key}"' for key in keys)
                for kind, keys in (("Missing", self.missing), ("Unexpected", self.unexpected))
            }
            lists = [f"{k} key(s) in state_dict: {keys}." for k, keys in quoted.items() if keys]
            problems = lists + problems
        if problems:
            listing = "\n\t".join(problems)
            raise OpError(
                f"load_state_dict: state_dict must fit {type(module).__name__}; got errors:\n"
                f"\t{listing}"
            )


def positional_state_arguments(
    args: tuple, destination: dict | None, prefix: str, keep_vars: bool
) -> tuple[dict | None, str, bool]:
    """The arguments of state_dict, which once were positional."""
    if args:
        warnings.warn(
            "state_dict: pass destination, prefix and keep_vars by keyword",
            FutureWarning,
            stacklevel=3,
        )
        given: list[Any] = [destination, prefix, keep_vars]
        given[: len(args)] = args
        destination, prefix, keep_vars = given
    return destination, prefix, keep_vars


def unknown_keys(state_dict: dict, prefix: str, own: set[str], children: dict) -> list[str]:
    """The keys below prefix that are neither the module's own nor those of a child."""
    unknown = []
    for key in state_dict:
        if not key.startswith(prefix) or key == prefix + EXTRA_STATE_KEY:
            continue
        name, dot, _ = key[len(prefix) :].partition(".")
        if name not in (children if dot else own):
            unknown.append(key)
    return unknown


def load_tensor(
    module: Any,
    name: str,
    tensor: Tensor,
    key: str,
    value: Any,
    assign: bool,
    errors: list[str],
) -> None:
    """Copy value into a parameter or buffer, or put it in its place."""
    if is_lazy(tensor) and is_lazy(value):
        return
    problem = misfit(tensor, key, value)
    if problem:
        errors.append(problem)
        return
    if is_lazy(tensor):
        tensor.materialize(tuple(value.shape))
    if tensor.device.type == "meta" and value.device.type != "meta" and not assign:
        warnings.warn(
            f"load_state_dict: copying {key} into a meta tensor does nothing; use assign=True "
            "to put the checkpoint's tensor in its place",
            stacklevel=6,
        )
    try:
        with no_grad():
            if assign:
                setattr(module, name, assignable(tensor, value))
            else:
                tensor.copy_(value.reshape(tensor.shape))
    except Exception as error:
        errors.append(f"{key}: copying {tuple(value.shape)} {value.dtype} failed: {error!r}.")


def misfit(tensor: Tensor, key: str, value: Any) -> str:
    """Why value cannot be loaded into tensor; "" if it can.

    A scalar also takes a vector of one element, as very old checkpoints have them.
    """
    if not isinstance(value, Tensor):
        return f"{key}: a Tensor is expected; got {type(value).__name__}."
    if is_lazy(tensor):
        return ""
    if is_lazy(value):
        return f"{key}: the checkpoint's tensor has no shape yet, the module's has one."
    old_scalar = tensor.dim() == 0 and tuple(value.shape) == (1,)
    if value.shape == tensor.shape or old_scalar:
        return ""
    return (
        f"size mismatch for {key}: the checkpoint has {tuple(value.shape)}, "
        f"the module {tuple(tensor.shape)}."
    )


def assignable(tensor: Tensor, value: Tensor) -> Tensor:
    """value as the kind of tensor that it replaces."""
    if not isinstance(tensor, Parameter):
        return value
    if not isinstance(value, Parameter):
        return Parameter(value, requires_grad=tensor.requires_grad)
    return value.requires_grad_(tensor.requires_grad)
