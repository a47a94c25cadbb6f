"""Pooling over one- and two-dimensional windows, and its gradients, by generated kernels."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.spec import Spec
from flambeau.eager.native.call import NativeCall
from flambeau.eager.native.convolutions import layout_of, pair

KINDS = (dtypes.float32, dtypes.float64, dtypes.bfloat16)
SMALL = 1 << 8  # elements of the picture


def pool_spec(x: Spec, y: Spec, params: dict):
    """The templates' description of pooling x to y, or None where they do not apply."""
    rank = len(params["kernel"])
    if rank > 2 or x.dtype not in KINDS or x.numel < SMALL or y.numel == 0:
        return None
    if math.prod(x.shape[-rank:]) >= 1 << 31:
        return None
    layout = pool_layout(x, y)
    if layout is None:
        return None
    from flambeau.codegen.templates import PoolSpec

    lead = x.shape[:-rank]
    n, c = (1, math.prod(lead)) if layout == "NCHW" else lead
    sizes = [pair(s.shape[-rank:], 1) for s in (x, y)]
    if "dilation" in params:
        more = dict(dilation=pair(params["dilation"], 1))
    else:
        more = dict(divisor=params["divisor"], count_padding=params["count_padding"])
    return PoolSpec(n, c, *sizes[0], *sizes[1], pair(params["kernel"], 1),
                    pair(params["stride"], 1), pair(params["padding"], 0), layout=layout,
                    dtype=x.dtype.name, **more)


def pool_layout(x: Spec, y: Spec) -> str | None:
    """The layout that both have."""
    layouts = [layout_of(s) if s.ndim == 4 else "NCHW" if s.is_contiguous else None
               for s in (x, y)]
    if layouts[0] == layouts[1]:
        return layouts[0]
    for s, other in zip((x, y), layouts[::-1]):
        if other == "NHWC" and s.ndim == 4 and is_both(s):
            return "NHWC"
    return None


def is_both(s: Spec) -> bool:
    """Is a contiguous tensor channels-last as well?"""
    return s.is_contiguous and (s.shape[1] == 1 or s.shape[2] == s.shape[3] == 1)


def described(primitive, specs: list, params: dict, result):
    """The templates' description of a pooling primitive's signature, or None."""
    if primitive.name in ("max_pool", "sum_pool"):
        first = result[0] if isinstance(result, tuple) else result
        return pool_spec(specs[0], first, params)
    if primitive.name in ("max_pool_backward", "sum_unpool"):
        same = all(s.strides == specs[0].strides for s in specs)
        return pool_spec(result, specs[0], params) if same else None
    return None


def pool_call(primitive, specs: list, params: dict, result) -> NativeCall | None:
    """max_pool, sum_pool and their gradients."""
    found = described(primitive, specs, params, result)
    if found is None:
        return None
    from flambeau.codegen import templates

    maker = {"max_pool": templates.max_pool_forward,
             "max_pool_backward": templates.max_pool_backward,
             "sum_pool": templates.average_pool_forward,
             "sum_unpool": templates.average_pool_backward}[primitive.name]
    program = maker(found)
    results = result if isinstance(result, tuple) else (result,)
    arguments = (*range(len(specs)), *(~k for k in range(len(results))))
    return NativeCall(program, arguments, results, several=isinstance(result, tuple))
