"""The recurrence out[k] = a[k] + b[k] out[k - 1] by a generated kernel."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.spec import Spec
from flambeau.eager.native.call import NativeCall

KINDS = (dtypes.float32, dtypes.float64)
SMALL = 256  # elements; below, NumPy's calls are as quick


def scan_call(primitive, specs: list, params: dict, result: Spec) -> NativeCall | None:
    a, b, dim = *specs, params["dim"]
    if a.shape != b.shape or a.dtype is not b.dtype or a.dtype not in KINDS or a.numel < SMALL:
        return None
    if not (a.is_contiguous and b.is_contiguous):
        return None
    from flambeau.codegen.templates import AffineScanSpec, scan

    spec = AffineScanSpec(math.prod(a.shape[:dim]), a.shape[dim], math.prod(a.shape[dim + 1 :]),
                          params["reverse"], a.dtype.name)
    return NativeCall(scan(spec), (0, 1, ~0), (result,))
