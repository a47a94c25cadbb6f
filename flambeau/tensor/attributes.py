"""Attributes and old methods that programs ask a tensor for."""

from __future__ import annotations

from flambeau.core.device import device as Device
from flambeau.core.errors import OpError, complaint
from flambeau.core.spec import memory_order
from flambeau.tensor.conversion import to
from flambeau.tensor.layout import preserve_format
from flambeau.tensor.public import public
from flambeau.tensor.resizing import new_tensor


def _mover(kind: str) -> None:
    def method(self, device=None, non_blocking=False, memory_format=preserve_format):
        index = device if isinstance(device, int) else Device(device or kind).index
        return to(self, Device(kind, index), memory_format=memory_format)

    method.__doc__ = f"A copy on the {kind} device, where there is one."
    public(method, name=kind, function=False, out=False)


for _kind in ("cuda", "xpu", "mtia", "ipu", "hpu"):
    _mover(_kind)


@public(function=False, out=False)
def new(self, *args, device=None):
    """The old `new_empty` (sizes) and `new_tensor` (data)."""
    if not args:
        return self.new_empty(0)
    data = len(args) == 1 and isinstance(args[0], (list, tuple)) and not hasattr(args[0], "numel")
    return new_tensor(self, args[0]) if data else self.new_empty(*args)


@public(function=False, out=False)
def dim_order(self, *, ambiguity_check=False):
    """The dimensions from the outermost in memory to the innermost."""
    return tuple(memory_order(tuple(self.shape), self._spec.strides))


@public(function=False, out=False)
def is_distributed(self):
    """Is it spread over processes? No."""
    return False


@public(function=False, out=False)
def const_data_ptr(self):
    """Address of the first element, for reading."""
    return self.data_ptr()


@public(function=False, out=False)
def record_stream(self, stream):
    """Nothing: memory of the CPU is not reused before work on it is done."""


@public(function=False, out=False)
def reinforce(self, reward):
    """Gone from PyTorch as well."""
    raise OpError(complaint("reinforce", "the method was removed", {},
                            "Use torch.distributions and log_prob."))


@public(function=False, out=False)
def module_load(self, other, assign=False):
    """What `load_state_dict` puts in place of this tensor."""
    if assign:
        return other.detach() if other.requires_grad else other
    return self.detach().copy_(other)
