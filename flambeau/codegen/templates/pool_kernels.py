"""Which algorithm makes a pooling or its gradient."""

from __future__ import annotations

from dataclasses import replace

from flambeau.codegen.target import Target
from flambeau.codegen.templates.entry import Kernel
from flambeau.codegen.templates.gemm_plan import ELEMENTS
from flambeau.codegen.templates.pool_spec import PoolSpec
from flambeau.codegen.templates.pooling import AveragePool, MaxPool, MaxPoolGradient, X, Y
from flambeau.codegen.templates.pooling_planes import PlaneGradient, equal_share, suits_planes
from flambeau.codegen.templates.widened import Dense, WidenedKernel
from flambeau.codegen.text import Module
from flambeau.core.errors import DtypeError, complaint


def emit_pool(module: Module, name: str, kind: str, spec: PoolSpec, target: Target) -> Kernel:
    """Add one of ``max``, ``max_indices``, ``average``, ``max_gradient``, ``average_gradient``."""
    if spec.dtype == "bfloat16":
        inner = emit_pool(module, f"{name}_float", kind, replace(spec, dtype="float32"), target)
        count, out = spec.n * spec.c * spec.h * spec.w, spec.n * spec.c * spec.out_h * spec.out_w
        if kind.endswith("gradient"):
            operands = Dense(0, out), Dense(inner.pointers - 1, count, True)
        else:
            operands = Dense(X, count), Dense(Y, out, True)
        return WidenedKernel(module, name, target, inner, operands).emit()
    if spec.dtype not in ELEMENTS:
        must = "dtype must be float32, float64 or bfloat16"
        raise DtypeError(complaint("pool", must, {"dtype": spec.dtype}, "Convert to float32."))
    share = equal_share(spec) if kind == "average_gradient" else 0.0
    if suits_planes(spec) and (share or kind == "max_gradient"):
        return PlaneGradient(module, name, spec, target, share=share).emit()
    if kind == "max_gradient":
        return MaxPoolGradient(module, name, spec, target).emit()
    if kind.startswith("max"):
        return MaxPool(module, name, spec, target, keep_indices=kind == "max_indices").emit()
    return AveragePool(module, name, spec, target, backward=kind == "average_gradient").emit()
