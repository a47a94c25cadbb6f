"""The bottom of dispatch: let the executor compute, then record what has a gradient."""

from __future__ import annotations

from flambeau.autograd import anomaly
from flambeau.autograd.node import begin_node, finish_node
from flambeau.autograd.views import UNTRACKED, bump, check_writable, rebase
from flambeau.core.context import state
from flambeau.core.dtype import FLOAT
from flambeau.tensor.tensor import Tensor


def dispatch(primitive, args: tuple, params: dict):
    """primitive(*args), recorded if any operand requires grad."""
    out = state.executor.execute(primitive, args, params)
    if state.grad_enabled:
        if primitive.vjp is not None:
            for a in args:
                if isinstance(a, Tensor) and (a._requires_grad or a._base is not None
                                              and a._base._requires_grad):
                    record(primitive, args, params, out)
                    break
    elif primitive.kind == "view" and isinstance(out, Tensor):
        out._node_version = UNTRACKED
    if anomaly.enabled:
        anomaly.check_forward(primitive, args, out)
    return out


def record(primitive, args: tuple, params: dict, out) -> None:
    several = isinstance(out, tuple)
    node = begin_node(primitive, args, params, several)
    if not node.rule.any:
        return
    outs = out if several else (out,)
    for number, t in enumerate(outs):
        if t._spec.dtype.category >= FLOAT:
            t._node, t._output_nr, t._requires_grad = node, number, True
    finish_node(node, outs)


def dispatch_inplace(primitive, target: Tensor, args: tuple, params: dict) -> Tensor:
    """target <- primitive(*args), with the version bumped and history replaced."""
    tracked = False
    if state.grad_enabled:
        for a in args:
            if isinstance(a, Tensor) and a._requires_grad:
                tracked = True
                break
    check_writable(primitive.name, target, tracked)
    node = None
    if tracked and primitive.vjp is not None:
        node = begin_node(primitive, args, params, False, overwritten=target)
    state.executor.execute_inplace(primitive, target, args, params)
    bump(target)
    if node is not None and node.rule.any and target._spec.dtype.category >= FLOAT:
        rebase(target, node)
        finish_node(node, (target,))
    elif state.grad_enabled and target._requires_grad and target._node is not None:
        _forget(primitive, target, args)
    if anomaly.enabled:
        anomaly.check_forward(primitive, args, target)
    return target


def _forget(primitive, target: Tensor, args: tuple) -> None:
    """An overwrite by values without history cuts the history of the written part.

    The target still requires grad, as in PyTorch: its node has no edges.
    """
    node = begin_node(primitive, args, {}, False)
    rebase(target, node)
    finish_node(node, (target,))
