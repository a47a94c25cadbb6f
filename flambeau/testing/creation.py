"""`make_tensor`: random tensors of any dtype within bounds."""

from __future__ import annotations

import math
from typing import Any

from flambeau.core.dtype import dtype as DType
from flambeau.core.dtype import finfo, iinfo
from flambeau.core.errors import ValueRangeError, complaint
from flambeau.random.functions import randint
from flambeau.tensor import Tensor, empty
from flambeau.tensor.public import FUNCTIONS

rand, complex = FUNCTIONS[""]["rand"], FUNCTIONS[""]["complex"]


def make_tensor(
    *shape: Any,
    dtype: DType,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Uniform in [low, high), within what the dtype holds; by default in [-9, 9], unsigned in
    [0, 9], bool 0 or 1."""
    sizes = shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
    sizes = tuple(int(n) for n in sizes)
    low, high = _bounds(dtype, low, high)
    if noncontiguous and memory_format is not None:
        must = "noncontiguous and memory_format exclude each other"
        raise ValueRangeError(complaint("make_tensor", must))
    made = _drawn(sizes, dtype, low, high).to(device=device)
    if noncontiguous and made.numel() > 1:
        wide = empty((*sizes[:-1], sizes[-1] * 2), dtype=dtype, device=device)
        wide[..., ::2] = made
        made = wide[..., ::2]
    if memory_format is not None:
        made = made.contiguous(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = 1 if not dtype.is_floating_point else finfo(dtype).tiny
    return made.requires_grad_() if requires_grad else made


def _bounds(kind: DType, low: float | None, high: float | None) -> tuple[Any, Any]:
    if kind.is_floating_point or kind.is_complex:
        least, most = -9.0, 9.0
    elif str(kind) == "torch.bool":
        least, most = 0, 2
    else:
        least, most = max(iinfo(kind).min, -9), 10
    low = least if low is None else low
    high = most if high is None else high
    if not low < high and not (low == high and not kind.is_floating_point) or (
        math.isnan(low) or math.isnan(high)
    ):
        must = "low must be below high"
        raise ValueRangeError(complaint("make_tensor", must, {"low": low, "high": high}))
    return low, high


def _drawn(sizes: tuple, kind: DType, low: Any, high: Any) -> Tensor:
    if kind.is_complex:
        part = kind.to_real()
        return complex(_drawn(sizes, part, low, high), _drawn(sizes, part, low, high))
    if kind.is_floating_point:
        return (rand(sizes) * (high - low) + low).to(kind)
    return randint(math.floor(low), max(math.ceil(high), math.floor(low) + 1), sizes).to(kind)
