"""`Optimizer`: parameter groups, per-parameter state, hooks, checkpoints.

Invariant: `param_groups` is a list of dicts that each hold `params` and every key of `defaults`;
`state` maps a parameter to its own dict. Checkpoints number parameters in group order.
"""

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from flambeau.autograd import RemovableHandle
from flambeau.core.errors import (
    ArgumentError,
    OpError,
    UnsupportedError,
    ValueRangeError,
    complaint,
)
from flambeau.optim.checks import require
from flambeau.optim.state import cast_state, numbered_groups, numbered_state
from flambeau.tensor import Tensor


class _Required:
    """Marks a default that every parameter group must give itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()
_every_step_pre_hook: "OrderedDict[int, Callable]" = OrderedDict()
_every_step_post_hook: "OrderedDict[int, Callable]" = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before every `step` of every optimizer."""
    return _registered(_every_step_pre_hook, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after every `step` of every optimizer."""
    return _registered(_every_step_post_hook, hook)


def _registered(hooks: OrderedDict, hook: Callable, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _hooked(step: Callable) -> Callable:
    """`step` between its hooks; a `super().step()` inside does not run them twice."""

    @functools.wraps(step)
    def run(self: "Optimizer", *args: Any, **kwargs: Any) -> Any:
        self._opt_called = True
        if self._in_step or not (
            self._optimizer_step_pre_hooks
            or self._optimizer_step_post_hooks
            or _every_step_pre_hook
            or _every_step_post_hook
        ):
            return step(self, *args, **kwargs)
        self._in_step = True
        try:
            return _step_between_hooks(step, self, args, kwargs)
        finally:
            self._in_step = False

    run.hooked = True  # type: ignore[attr-defined]
    return run


def _step_between_hooks(step: Callable, self: "Optimizer", args: tuple, kwargs: dict) -> Any:
    for hook in (*_every_step_pre_hook.values(), *self._optimizer_step_pre_hooks.values()):
        replaced = hook(self, args, kwargs)
        if replaced is None:
            continue
        if not (isinstance(replaced, tuple) and len(replaced) == 2):
            must = "a step pre-hook must return None or (args, kwargs)"
            raise OpError(complaint("step", must, {"returned": replaced}))
        args, kwargs = replaced
    out = step(self, *args, **kwargs)
    for hook in (*self._optimizer_step_post_hooks.values(), *_every_step_post_hook.values()):
        hook(self, args, kwargs)
    return out


class Optimizer:
    """Base of all optimizers; a subclass defines `step(closure=None)`.

    params: tensors, `(name, tensor)` pairs, or dicts with `params` and options of their own.
    defaults: the options of groups that do not give them.
    """

    _opt_called = False
    _in_step = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not getattr(step, "hooked", False):
            setattr(cls, "step", _hooked(step))  # noqa: B010

    def __init__(self, params: Iterable, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._no_hooks()
        name = type(self).__name__
        if isinstance(params, Tensor):
            must = "params must be an iterable of tensors or dicts"
            hint = f"Write {name}([tensor], ...)."
            raise ArgumentError(complaint(name, must, {"params": "one Tensor"}, hint))
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        require(groups, name, "params must hold at least one parameter", params=groups)
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group) if isinstance(group, dict) else group)

    def _no_hooks(self) -> None:
        self._optimizer_step_pre_hooks: OrderedDict = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict = OrderedDict()
        self._optimizer_state_dict_pre_hooks: OrderedDict = OrderedDict()
        self._optimizer_state_dict_post_hooks: OrderedDict = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: OrderedDict = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: OrderedDict = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._no_hooks()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = []
        for i, group in enumerate(self.param_groups):
            lines += ["", f"Parameter Group {i}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(
            [f"{type(self).__name__} (" + (lines[0] if lines else ""), *lines[1:], ")"]
        )

    # -- groups

    def add_param_group(self, param_group: Any) -> None:
        """Append a group (for instance layers unfrozen later); missing options get the defaults."""
        name = type(self).__name__
        if not isinstance(param_group, dict):
            facts = {"param_group": type(param_group).__name__}
            raise ArgumentError(complaint(name, "param_group must be a dict", facts))
        param_group["params"] = _listed(name, param_group["params"])
        _split_names(name, param_group)
        for param in param_group["params"]:
            self._check_param(param)
        for key, default in self.defaults.items():
            require(
                default is not required or key in param_group,
                name,
                f"every parameter group must give {key}",
                group=len(self.param_groups),
            )
            param_group.setdefault(key, default)
        self._check_membership(param_group)
        self.param_groups.append(param_group)

    def _check_param(self, param: object) -> None:
        name = type(self).__name__
        if not isinstance(param, Tensor):
            facts = {"param": type(param).__name__}
            raise ArgumentError(complaint(name, "every parameter must be a Tensor", facts))
        if not (self.defaults.get("differentiable") or param.is_leaf or param.retains_grad):
            must = "every parameter must be a leaf tensor (its gradient is kept only there)"
            hint = "Pass the tensor it was computed from, or .detach().requires_grad_()."
            raise ValueRangeError(complaint(name, must, {"grad_fn": param.grad_fn}, hint))

    def _check_membership(self, param_group: dict[str, Any]) -> None:
        name = type(self).__name__
        params = param_group["params"]
        if len(params) != len(set(params)):
            warnings.warn(
                f"{name}: a parameter group holds a parameter twice, and updates it twice",
                stacklevel=4,
            )
        require(
            {"param_names" in group for group in self.param_groups}
            <= {"param_names" in param_group},
            name,
            "all parameter groups must have names, or none",
            group=len(self.param_groups),
        )
        known = set(chain.from_iterable(group["params"] for group in self.param_groups))
        require(
            known.isdisjoint(params),
            name,
            "a parameter must be in one parameter group only",
            group=len(self.param_groups),
        )

    # -- stepping

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop every gradient, or with `set_to_none=False` fill it with zeros in place."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    if param.grad.grad_fn is not None:
                        param.grad.detach_()
                    else:
                        param.grad.requires_grad_(False)
                    param.grad.zero_()

    def step(self, closure: Callable | None = None) -> Any:
        """Update every parameter from its `.grad`; returns the closure's loss, if one is given."""
        facts = {"class": type(self).__name__}
        raise UnsupportedError(complaint("step", "a subclass must define it", facts))

    # -- checkpoints

    def state_dict(self) -> dict[str, Any]:
        """`{"state": {number: ...}, "param_groups": [...]}` with the live tensors, not copies."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        groups, numbers = numbered_groups(self.param_groups)
        out = {"state": numbered_state(self.state, numbers), "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, out)
            out = out if replaced is None else replaced
        return out

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`: parameters are matched by position; floating state is cast to
        its parameter's dtype and device, step counters stay float32."""
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        groups = deepcopy(state_dict["param_groups"])
        self._check_group_sizes(groups)
        numbers = chain.from_iterable(group["params"] for group in groups)
        params = chain.from_iterable(group["params"] for group in self.param_groups)
        by_number = dict(zip(numbers, params, strict=True))
        for mine, theirs in zip(self.param_groups, groups, strict=True):
            theirs["params"] = mine["params"]
            if "param_names" in mine:
                theirs.setdefault("param_names", mine["param_names"])
        state = cast_state(state_dict["state"], by_number, groups)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _check_group_sizes(self, groups: list[dict[str, Any]]) -> None:
        mine = [len(group["params"]) for group in self.param_groups]
        theirs = [len(group["params"]) for group in groups]
        require(
            mine == theirs,
            "load_state_dict",
            "the checkpoint must have the optimizer's parameter groups",
            "Build the optimizer over the same parameters in the same order.",
            optimizer_sizes=mine,
            checkpoint_sizes=theirs,
        )

    # -- hooks

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` before `step`; may return new `(args, kwargs)`."""
        return _registered(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` after `step`."""
        return _registered(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """`hook(optimizer)` before `state_dict` reads anything."""
        return _registered(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """`hook(optimizer, state_dict)`; may return another dict to hand out."""
        return _registered(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """`hook(optimizer, state_dict)` on a shallow copy; may return another dict to load."""
        return _registered(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """`hook(optimizer)` after a state dict was loaded."""
        return _registered(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def _listed(name: str, params: Any) -> list:
    """The members of a group as a list; a set has no order that a checkpoint could rely on."""
    if isinstance(params, Tensor):
        return [params]
    if isinstance(params, set):
        must = "the parameters of a group must have an order"
        raise ArgumentError(complaint(name, must, {"params": "a set"}, "Use a list."))
    return list(params)


def _split_names(name: str, param_group: dict[str, Any]) -> None:
    """Move the names of `(name, tensor)` members into `param_names`."""
    params = param_group["params"]
    named = [isinstance(param, tuple) for param in params]
    require(
        all(named) or not any(named),
        name,
        "all parameters of a group must have names, or none",
        named=sum(named),
        of=len(named),
    )
    if params and named[0]:
        param_group["params"] = [param for _, param in params]
        param_group["param_names"] = [label for label, _ in params]
