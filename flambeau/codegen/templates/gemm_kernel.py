"""The best generator for each kind of matrix product."""

from __future__ import annotations

from dataclasses import replace

from flambeau.codegen.target import Target
from flambeau.codegen.templates import gemm_dot
from flambeau.codegen.templates.entry import Kernel, set_slot, slot
from flambeau.codegen.templates.gemm import Generator
from flambeau.codegen.templates.gemm_bfloat import BfloatGenerator, as_float, bfloat_plan
from flambeau.codegen.templates.gemm_plan import (
    GemmSpec,
    Plan,
    is_better_swapped,
    normalised,
    plan,
    swapped,
)
from flambeau.codegen.templates.gemm_widened import Widened
from flambeau.codegen.text import Module
from flambeau.runtime import pool


def emit_gemm(
    module: Module, name: str, spec: GemmSpec, target: Target, chosen: Plan | None = None
) -> Kernel:
    """Add the kernel of `spec` to a module; its pointers: A, B, C, the epilogue's, the tail's.

    `chosen` takes the place of the plan that shape and caches suggest.
    """
    spec = normalised(spec)
    if not (spec.m and spec.n and spec.batches):
        f = module.function(name, [("ptr", "slots")])
        f.ret()
        return Kernel(name, spec.pointers, spec.pointers + 1)
    if is_better_swapped(spec):
        inner = _emit(module, f"{name}_swapped", normalised(swapped(spec)), target)
        return with_swapped_operands(module, name, inner)
    if chosen is not None:
        return Generator(module, name, spec, target, chosen).emit()
    return _emit(module, name, spec, target)


def _emit(module: Module, name: str, spec: GemmSpec, target: Target) -> Kernel:
    threads = pool.get_num_threads()
    if spec.dtype == "bfloat16":
        return _emit_bfloat(module, name, spec, target)
    if gemm_dot.suits(spec, target):
        chosen = gemm_dot.dot_plan(spec, target, threads)
        return gemm_dot.DotGenerator(module, name, spec, target, chosen).emit()
    return Generator(module, name, spec, target, plan(spec, target, threads)).emit()


def _emit_bfloat(module: Module, name: str, spec: GemmSpec, target: Target) -> Kernel:
    if target.bfloat16_dot and spec.k:
        chosen = bfloat_plan(spec, target, pool.get_num_threads())
        return BfloatGenerator(module, name, spec, target, chosen).emit()
    inner = _emit(module, f"{name}_float", as_float(spec), target)
    return Widened(module, name, spec, target, inner).emit()


def with_swapped_operands(module: Module, name: str, inner: Kernel) -> Kernel:
    """A kernel whose first two pointers change places."""
    f = module.function(name, [("ptr", "slots")])
    (slots,) = f.arguments
    a, b = slot(f, slots, 0), slot(f, slots, 1)
    set_slot(f, slots, 0, b)
    set_slot(f, slots, 1, a)
    f.call(inner.name, "void", slots)
    f.ret()
    return replace(inner, name=name)
