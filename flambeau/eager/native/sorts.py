"""sort and topk by a generated kernel."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.spec import Spec
from flambeau.eager.native.call import NativeCall

SMALL = 2048  # elements; below, NumPy's calls are as quick
LONGEST = 1 << 31
INFINITY = {"float64": 0x7FF << 52, "float32": 0xFF << 23, "float16": 0x1F << 10,
            "bfloat16": 0xFF << 7}  # fmt: skip


def sort_call(primitive, specs: list, params: dict, result: tuple) -> NativeCall | None:
    (x,), dim = specs, params["dim"]
    if not x.ndim or x.numel < SMALL or x.shape[dim] < 2 or x.shape[dim] >= LONGEST:
        return None
    if result[0].numel == 0 or not all(s.is_contiguous for s in (x, *result)):
        return None
    kind = kind_of(x)
    if kind is None:
        return None
    from flambeau.codegen.templates import SortSpec, sort

    first = params["largest"] if primitive.name == "topk" else params["descending"]
    spec = SortSpec(
        math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :]),
        result[0].shape[dim], 8 * x.dtype.itemsize, kind, first, INFINITY.get(x.dtype.name, 0),
    )  # fmt: skip
    return NativeCall(sort(spec), (0, ~0, ~1), result, several=True)


def kind_of(x: Spec) -> str | None:
    """How the bits of an element are ordered; None for dtypes that have no order here."""
    d = x.dtype
    if d.category == dtypes.FLOAT:
        return "float" if d.name in INFINITY else None
    if d.category == dtypes.BOOL:
        return "unsigned"
    return ("signed" if d.is_signed else "unsigned") if d.category == dtypes.INTEGER else None
