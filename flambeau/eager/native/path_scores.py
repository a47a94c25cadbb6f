"""Scores of paths, and their gradient, by generated kernels."""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.core.spec import Spec
from flambeau.eager.native.call import NativeCall

KINDS = (dtypes.float32, dtypes.float64)
MOST_BYTES = 1 << 26  # of scores that a thread keeps


def path_call(primitive, specs: list, params: dict, result: Spec) -> NativeCall | None:
    backward = primitive.name.endswith("_backward")
    step, skip, lengths = specs[-3:]
    if step.dtype not in KINDS or lengths.dtype is not dtypes.int64 or 0 in step.shape:
        return None
    if not all(s.is_contiguous for s in specs) or step.nbytes // step.shape[1] > MOST_BYTES:
        return None
    from flambeau.codegen.templates import PathSpec, paths

    spec = PathSpec(*step.shape, backward, step.dtype.name)
    return NativeCall(paths(spec), (*range(len(specs)), ~0), (result,))
