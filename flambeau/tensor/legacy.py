"""`torch.Tensor(...)` called as a constructor."""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.ops.creation import full
from flambeau.tensor.interop import tensor
from flambeau.tensor.tensor import Tensor, alias


def construct(*args, device=None) -> Tensor:
    """Uninitialised memory for sizes, a float copy for data, an alias for a tensor."""
    kind = dtypes.default_dtype()
    if len(args) == 1 and isinstance(args[0], Tensor):
        return alias(args[0])
    if len(args) == 1 and not hasattr(args[0], "__index__") and not hasattr(args[0], "numel"):
        return tensor(args[0], dtype=kind, device=device)
    sizes = args[0] if len(args) == 1 and hasattr(args[0], "numel") else args or (0,)
    return full(shape=tuple(int(n) for n in sizes), value=0, dtype=kind)
