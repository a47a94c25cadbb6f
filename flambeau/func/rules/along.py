"""Primitives that work along dimensions named by a parameter."""

from __future__ import annotations

from typing import Any

from flambeau.func.rules.register import rule_of, spread
from flambeau.ops.registry import Primitive
from flambeau.tensor import Tensor

SINGLE = """
    slice select slice_scatter_zeros cumsum cumprod logcumsumexp cummax cummin shifted sum mean prod
    amax amin argmax argmin max_along min_along any all var vector_norm logsumexp hash_bits
    softmax log_softmax median_along nanmedian_along mode_along sort topk flip roll unfold resample
"""
SEVERAL = """
    pick place recurrence softmax_backward log_softmax_backward cat gather scatter scatter_sum
    scatter_reduce
"""


@rule_of(*SINGLE.split(), *SEVERAL.split())
def along(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """Dimensions are counted from one further; a `shape` gets the batch in front."""
    dim = params.get("dim", params.get("dims"))
    rank = max(v.ndim - h for v, h in zip(values, here) if isinstance(v, Tensor))
    if dim is None or (rank == 0 and not isinstance(dim, tuple)):
        return NotImplemented
    moved = tuple(d + 1 for d in dim) if isinstance(dim, tuple) else dim + 1
    params = {**params, "dim" if "dim" in params else "dims": moved}
    if "shape" in params:
        params["shape"] = (size, *params["shape"])
    return primitive(*[spread(size, v, h) for v, h in zip(values, here)], **params)
