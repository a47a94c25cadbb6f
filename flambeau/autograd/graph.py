"""`torch.autograd.graph`: looking at the recorded graph, and at what it saves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flambeau.autograd.handles import RemovableHandle
from flambeau.autograd.hooks import register_tensor_hook
from flambeau.autograd.node import Node, gradient_edge
from flambeau.autograd.saved import saved_tensors_hooks
from flambeau.autograd.views import bump
from flambeau.core.errors import AutogradError, complaint
from flambeau.tensor.tensor import Tensor

__all__ = ["Node", "GradientEdge", "get_gradient_edge", "saved_tensors_hooks", "save_on_cpu",
           "register_multi_grad_hook", "allow_mutation_on_saved_tensors",
           "disable_saved_tensors_hooks", "increment_version"]


class GradientEdge(NamedTuple):
    """Where a gradient arrives: a node and the number of its output."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge at which the gradient of `tensor` is computed."""
    edge = gradient_edge(tensor)
    if edge is None:
        raise AutogradError(complaint("get_gradient_edge", "It is not possible to get the gradient "
                                      "edge for a Tensor that does not require gradients"))
    return GradientEdge(*edge)


class save_on_cpu(saved_tensors_hooks):
    """Saved tensors wait in CPU memory for the backward pass."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0]))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within the block, entering saved_tensors_hooks raises the message."""
    before = saved_tensors_hooks.__enter__

    def refuse(self) -> None:
        raise AutogradError(error_message)

    saved_tensors_hooks.__enter__ = refuse
    try:
        yield
    finally:
        saved_tensors_hooks.__enter__ = before


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Saved tensors are copied, so that writing to them afterwards does no harm."""

    def __init__(self):
        super().__init__(lambda t: t.clone(), lambda t: t)


def increment_version(tensor) -> None:
    """Tell autograd that the memory was written by other means."""
    for t in tensor if isinstance(tensor, (list, tuple)) else (tensor,):
        bump(t)


def register_multi_grad_hook(tensors: Sequence[Tensor], fn, *, mode: str = "all"):
    """Call fn once the gradients of all tensors (or of any of them) are there."""
    tensors = list(tensors)
    grads: list = [None] * len(tensors)
    seen: set[int] = set()

    def watch(i: int):
        def hook(grad: Tensor) -> None:
            grads[i] = grad
            seen.add(i)
            if mode == "any" and len(seen) == 1:
                fn(grad)
            if mode == "all" and len(seen) == len(tensors):
                fn(list(grads))
            if len(seen) == len(tensors):
                seen.clear()
                grads[:] = [None] * len(tensors)

        return hook

    handles = [register_tensor_hook(t, watch(i)) for i, t in enumerate(tensors)]
    return _Handles(handles)


class _Handles(RemovableHandle):
    def __init__(self, handles: list):
        super().__init__({})
        self.handles = handles

    def remove(self) -> None:
        for h in self.handles:
            h.remove()
