"""Values kept for the backward pass, checked against in-place writes when they are used."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.core.context import state
from flambeau.core.dtype import FLOAT
from flambeau.core.errors import AutogradError, complaint
from flambeau.tensor.tensor import Tensor, alias, storage_of

_pack_hooks: list[tuple[Callable, Callable]] = []


class SavedInput:
    """An operand and the version that its memory had."""

    __slots__ = ("tensor", "array", "version")

    def __init__(self, tensor: Tensor):
        self.tensor, self.array = tensor, tensor._array
        self.version = 0 if tensor._storage is None else tensor._storage.version


class SavedOutput:
    """An output, held by its memory alone so that node and output form no cycle."""

    __slots__ = ("plain", "version", "number")

    def __init__(self, out: Tensor, number: int):
        self.plain, self.number = alias(out), number
        self.version = storage_of(out).version


class Packed:
    """What a user's `saved_tensors_hooks` made of a value."""

    __slots__ = ("value", "unpack", "edge")

    def __init__(self, tensor: Tensor, pack: Callable, unpack: Callable):
        enabled = state.grad_enabled
        state.grad_enabled = False
        try:
            self.value, self.unpack = pack(alias(tensor)), unpack
        finally:
            state.grad_enabled = enabled
        self.edge = history_of(tensor)


def hooked() -> bool:
    """Whether the user wants to see what is saved."""
    return bool(_pack_hooks)


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """Within the block, hooks from outside do not see what is saved: it only traces."""
    before = _pack_hooks[:]
    _pack_hooks.clear()
    try:
        yield
    finally:
        _pack_hooks[:] = before


def save(value: Any):
    if not isinstance(value, Tensor):
        return value
    if _pack_hooks:
        return Packed(value, *_pack_hooks[-1])
    return SavedInput(value)


def save_output(out: Tensor, node, number: int):
    if _pack_hooks:
        packed = Packed(out, *_pack_hooks[-1])
        packed.edge = number
        return packed
    return SavedOutput(out, number)


def restore(saved: Any, node):
    """The tensor that was saved, with its history."""
    kind = type(saved)
    if kind is SavedInput:
        t = saved.tensor
        check_version(t, saved.version, node)
        if t._array is not saved.array:
            t = _with_array(t, saved.array)
        return t
    if kind is SavedOutput:
        check_version(saved.plain, saved.version, node)
        return _attached(alias(saved.plain), node, saved.number)
    if kind is Packed:
        t = saved.unpack(saved.value)
        if isinstance(saved.edge, int):
            return _attached(alias(t), node, saved.edge)
        return with_history(alias(t), saved.edge)
    return saved


def history_of(t: Tensor) -> tuple | None:
    """Where gradients of `t` go: (node, output), or (leaf, -1), or None."""
    if t._node is not None:
        return (t._node, t._output_nr)
    return (t, -1) if t._requires_grad else None


def with_history(t: Tensor, edge: tuple | None) -> Tensor:
    """`t`, a new tensor, with gradients that go where `edge` says."""
    if edge is not None and edge[1] < 0:
        from flambeau.autograd.node import Passing

        edge = (Passing(edge, t._spec), 0)
    if edge is not None:
        t._node, t._output_nr, t._requires_grad = *edge, True
    return t


def _attached(t: Tensor, node, number: int) -> Tensor:
    if t._spec.dtype.category < FLOAT:
        return t
    t._node, t._output_nr, t._requires_grad = node, number, True
    return t


def _with_array(t: Tensor, array) -> Tensor:
    """`t.data` was replaced after saving: the old memory, under the same history."""
    from flambeau.tensor.tensor import from_array

    return with_history(from_array(array), history_of(t))


def check_version(t: Tensor, version: int, node) -> None:
    now = 0 if t._storage is None else t._storage.version
    if now != version:
        raise AutogradError(complaint(
            "backward", "one of the variables needed for gradient computation has been modified "
            "by an inplace operation", dict(
                node=node.name(), shape=list(t.shape), version=now, expected_version=version),
            "Use the out-of-place form of that operation, or clone the tensor before writing."))


class saved_tensors_hooks:
    """Within the block, `pack` sees every saved tensor and `unpack` gets pack's result back."""

    def __init__(self, pack_hook: Callable, unpack_hook: Callable):
        self.hooks = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        _pack_hooks.append(self.hooks)

    def __exit__(self, *exc) -> None:
        _pack_hooks.pop()
