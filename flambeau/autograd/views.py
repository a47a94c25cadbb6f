"""In-place writes and views: keeping the history of a base and of its views consistent.

A view remembers for which version of its storage its node holds. After a write through any
alias, the base's history is "base with that window replaced" and every view's history is "that
window of the base", built when somebody asks.
"""

from __future__ import annotations

from flambeau.core.context import state
from flambeau.core.errors import AutogradError, complaint
from flambeau.core.spec import overlaps_itself
from flambeau.tensor.tensor import Tensor, alias, storage_of

UNTRACKED = -1


def window(view: Tensor, base: Tensor) -> dict:
    """The place of `view` in the memory of `base`, as parameters of the window ops."""
    s = view._spec
    return dict(size=tuple(s.shape), stride=s.strides, offset=view._offset - base._offset)


def refreshed(view: Tensor) -> None:
    """Rebuild the history of a view whose base was written since."""
    base = view._base
    if view._node_version == UNTRACKED or view._node_version == view._storage.version:
        return
    if not base._requires_grad:
        view._node_version = view._storage.version
        return
    from flambeau.autograd.node import begin_node, finish_node
    from flambeau.ops.views import as_strided

    node = begin_node(as_strided, (base,), window(view, base), False)
    finish_node(node, (view,))
    view._node, view._output_nr, view._requires_grad = node, 0, True
    view._node_version = view._storage.version


def check_writable(op: str, target: Tensor, tracked: bool) -> None:
    """Refuse writes that would lose data or history."""
    s = target._spec
    if not s.is_contiguous and overlaps_itself(s.shape, s.strides):
        raise AutogradError(complaint(
            op, "unsupported operation: more than one element of the written-to tensor refers to "
            "a single memory location", dict(shape=list(s.shape), strides=s.strides),
            "Please clone() the tensor before writing."))
    if target._array is not None and not target._array.flags.writeable:
        raise AutogradError(complaint(
            op, "the tensor's memory is read-only", dict(shape=list(s.shape)),
            "Please clone() the tensor before writing."))
    if not state.grad_enabled:
        return
    leaf = target if target._base is None else target._base
    if target is not leaf and target._node_version == UNTRACKED and (
            tracked or leaf._requires_grad):
        raise AutogradError(complaint(
            op, "a view was created in no_grad mode and is being modified inplace with grad mode "
            "enabled", dict(shape=list(s.shape)),
            "Take the view where you write, or write inside `with torch.no_grad():`."))
    if leaf._requires_grad and leaf._node is None:
        what = "a leaf Variable" if target is leaf else "a view of a leaf Variable"
        raise AutogradError(complaint(
            op, f"{what} that requires grad is being used in an in-place operation", dict(
                shape=list(s.shape)), "Write inside `with torch.no_grad():`, or clone() it first."))


def rebase(target: Tensor, node) -> None:
    """Give `target`, just written, the history `node`; pass it on to the base of a view."""
    base = target._base
    if base is None:
        set_history(target, node)
        return
    from flambeau.autograd.node import begin_node, finish_node, gradient_edge
    from flambeau.ops.windows import window_write

    written = _stand_in(target, node)
    place = dict(layout=base._spec.strides, **window(target, base))
    outer = begin_node(window_write, (base, written), place, False)
    outer.edges = [gradient_edge(base), (node, 0)]
    finish_node(outer, (base,))
    set_history(base, outer)


def set_history(target: Tensor, node) -> None:
    before, number = target._node, target._output_nr
    target._node, target._output_nr, target._requires_grad = node, 0, True
    if target._extra is not None:
        from flambeau.autograd.hooks import move_retained

        move_retained(target, before, number)


def _stand_in(target: Tensor, node) -> Tensor:
    """What was written, as an operand that has the history `node`."""
    t = alias(target)
    t._node, t._output_nr, t._requires_grad = node, 0, True
    return t


def bump(target: Tensor) -> None:
    storage_of(target).version += 1
