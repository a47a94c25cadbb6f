"""Hooks on tensors and nodes, and the rarely needed state of a tensor that carries them."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from flambeau.autograd.handles import RemovableHandle, next_id
from flambeau.autograd.node import Node
from flambeau.core.context import state
from flambeau.core.errors import ArgumentError, AutogradError, complaint
from flambeau.tensor.tensor import Tensor

LAST = 1 << 62  # added to the ids of hooks that run after all others


class Extra:
    """Rarely needed state of a tensor.

    hooks        run on the gradient of a leaf, in order of registration
    post_hooks   run after a leaf's gradient has been accumulated
    retains      the id of the hook that `retain_grad` put on a non-leaf's node
    """

    __slots__ = ("hooks", "post_hooks", "retains", "name", "accumulator")

    def __init__(self):
        self.hooks: dict[int, Callable] = {}
        self.post_hooks: dict[int, Callable] = {}
        self.retains = None
        self.name = None
        self.accumulator = None


def extra(t: Tensor) -> Extra:
    if t._extra is None:
        t._extra = Extra()
    return t._extra


def add_hook(hooks: dict, hook: Callable) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def add_node_hook(node: Node, when: str, hook: Callable) -> RemovableHandle:
    if node.hooks is None:
        node.hooks = {"pre": {}, "post": {}}
    return add_hook(node.hooks[when], hook)


def register_tensor_hook(t: Tensor, hook: Callable) -> RemovableHandle:
    """`hook(grad) -> grad or None` each time the gradient of `t` is computed."""
    if not t.requires_grad:
        raise AutogradError(complaint(
            "register_hook", "cannot register a hook on a tensor that doesn't require gradient"))
    if t._node is None:
        return add_hook(extra(t).hooks, hook)
    return add_hook(_node_hooks_of(t), hook)


def _node_hooks_of(t: Tensor) -> dict:
    if t._node.tensor_hooks is None:
        t._node.tensor_hooks = {}
    return t._node.tensor_hooks.setdefault(t._output_nr, {})


def register_post_accumulate_grad_hook(t: Tensor, hook: Callable) -> RemovableHandle:
    if t._node is not None or not t._requires_grad:
        raise AutogradError(complaint(
            "register_post_accumulate_grad_hook", "the tensor must be a leaf that requires grad"))
    return add_hook(extra(t).post_hooks, hook)


def retain_grad(t: Tensor) -> None:
    """Keep `.grad` of a non-leaf tensor after backward."""
    if not t.requires_grad:
        raise AutogradError(complaint(
            "retain_grad", "can't retain_grad on Tensor that has requires_grad=False"))
    if t._node is None or extra(t).retains is not None:
        return
    me = weakref.ref(t)

    def keep(grad: Tensor) -> None:
        owner = me()
        if owner is None:
            return
        owner._grad = grad.clone() if owner._grad is None else owner._grad + grad
        if not state.grad_enabled:
            owner._grad = owner._grad.detach()

    extra(t).retains = LAST + next_id()
    _node_hooks_of(t)[extra(t).retains] = keep


def move_retained(t: Tensor, node: Node | None, number: int) -> None:
    """After a write in place: `.grad` belongs to the new value, no more to output `number`."""
    if t._extra.retains is not None and node is not None:
        _node_hooks_of(t)[t._extra.retains] = node.tensor_hooks[number].pop(t._extra.retains)


def has_leaf_hooks(leaf: Tensor) -> bool:
    state_ = leaf._extra
    return bool(state_.hooks or state_.post_hooks) or accumulator_with_hooks(leaf) is not None


def run_leaf_hooks(leaf: Tensor, ct: Tensor) -> Tensor:
    for hook in list(leaf._extra.hooks.values()):
        ct = checked(hook(ct), ct)
    return ct


def checked(result, ct: Tensor) -> Tensor:
    if result is None:
        return ct
    if not isinstance(result, Tensor):
        raise ArgumentError(complaint("hook", "a gradient hook must return None or a Tensor",
                                      dict(returned=type(result).__name__)))
    if result.shape != ct.shape:
        raise AutogradError(complaint(
            "hook", "a gradient hook must return a tensor of the gradient's shape",
            dict(expected=list(ct.shape), returned=list(result.shape))))
    return result


def run_tensor_hooks(node: Node, cts: list) -> list:
    cts = list(cts)
    for number, hooks in node.tensor_hooks.items():
        for key in sorted(hooks):
            if cts[number] is not None and key in hooks:
                cts[number] = checked(hooks[key](cts[number]), cts[number])
    return cts


def run_node_hooks(node: Node, when: str, values: list, outputs: list | None = None):
    for hook in list(node.hooks[when].values()):
        got = hook(tuple(values)) if when == "pre" else hook(tuple(values), tuple(outputs))
        if got is not None:
            values = list(got) if isinstance(got, (tuple, list)) else [got]
    return values


def post_accumulate(leaf: Tensor) -> None:
    for hook in list(leaf._extra.post_hooks.values()):
        hook(leaf)


class AccumulateGrad(Node):
    """The end of the graph at a leaf: where `.grad` is written. `variable` is the leaf."""

    __slots__ = ("variable",)

    def __init__(self, leaf: Tensor):
        super().__init__([], (leaf._spec,))
        self.variable = leaf


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The one AccumulateGrad of a leaf while anybody holds it."""
    state_ = extra(leaf)
    found = state_.accumulator() if state_.accumulator is not None else None
    if found is None:
        found = AccumulateGrad(leaf)
        state_.accumulator = weakref.ref(found)
    return found


def accumulator_with_hooks(leaf: Tensor) -> AccumulateGrad | None:
    found = leaf._extra.accumulator and leaf._extra.accumulator()
    return found if found is not None and found.hooks is not None else None
