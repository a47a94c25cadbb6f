"""Which algorithm makes a convolution or one of its gradients."""

from __future__ import annotations

import math
from dataclasses import replace

from flambeau.codegen.target import Target
from flambeau.codegen.templates import winograd
from flambeau.codegen.templates.conv_direct import (
    DirectConv,
    Problem,
    forward_problem,
    gradient_problem,
)
from flambeau.codegen.templates.conv_spec import ConvSpec
from flambeau.codegen.templates.conv_weight import WeightGradient
from flambeau.codegen.templates.depthwise_first import DepthwiseFirst, DepthwiseWeightFirst
from flambeau.codegen.templates.depthwise_last import DepthwiseLast, DepthwiseWeightLast
from flambeau.codegen.templates.entry import Kernel, slot
from flambeau.codegen.templates.epilogue import Epilogue, Pointwise
from flambeau.codegen.templates.gemm_kernel import emit_gemm, with_swapped_operands
from flambeau.codegen.templates.gemm_plan import ELEMENTS, GemmSpec
from flambeau.codegen.templates.widened import Dense, WidenedKernel
from flambeau.codegen.templates.winograd_weight import WinogradWeight
from flambeau.codegen.templates.winograd_weight_shared import SharedWinogradWeight, suits_sharing
from flambeau.codegen.text import Module, size_of
from flambeau.core.errors import DtypeError, complaint

FEW_CHANNELS = 16  # below, transforming tiles costs more than it saves


def emit_forward(
    module: Module, name: str, spec: ConvSpec, target: Target, epilogue: Epilogue | None = None
) -> Kernel:
    """Add ``y = conv(x, w)``; its pointers: x, w, y, then the epilogue's.

    The epilogue's columns are channels and its rows are pixels (image, row, column) of y.
    """
    if is_widened(spec):
        inner = emit_forward(module, f"{name}_float", as_float(spec), target, epilogue)
        dense = [Dense(0, spec.x_count), Dense(1, spec.w_count), Dense(2, spec.y_count, True)]
        dense += [Dense(3 + i, n) for i, n in enumerate(operand_counts(spec, epilogue))]
        return WidenedKernel(module, name, target, inner, tuple(dense)).emit()
    if not spec.x_count or not spec.y_count or not spec.w_count:
        pointers = 3 + (epilogue.pointers if epilogue else 0)
        return _emit_zeros(module, name, spec, spec.y_count, pointers)
    if _is_product(spec) and not (epilogue and spec.y_layout == "NCHW"):
        return _emit_product(module, name, spec, target, epilogue)
    if suits_winograd(spec):
        return _emit_winograd(module, name, winograd.forward_problem(spec, epilogue), target)
    problem = forward_problem(spec, epilogue)
    by_plane = epilogue is None or isinstance(epilogue, Pointwise)
    if is_depthwise(spec) and (spec.x_layout == "NHWC" or by_plane):
        return _emit_depthwise(module, name, problem, target)
    return DirectConv(module, name, problem, target).emit()


def emit_input_gradient(module: Module, name: str, spec: ConvSpec, target: Target) -> Kernel:
    """Add dx; its pointers: dy, w, dx."""
    if is_widened(spec):
        inner = emit_input_gradient(module, f"{name}_float", as_float(spec), target)
        dense = Dense(0, spec.y_count), Dense(1, spec.w_count), Dense(2, spec.x_count, True)
        return WidenedKernel(module, name, target, inner, dense).emit()
    if not spec.x_count or not spec.y_count or not spec.w_count:
        return _emit_zeros(module, name, spec, spec.x_count, 3)
    if _is_product(spec):
        return _emit_product_gradient(module, name, spec, target)
    if suits_winograd(spec):
        return _emit_winograd(module, name, winograd.gradient_problem(spec), target)
    if is_depthwise(spec):
        return _emit_depthwise(module, name, gradient_problem(spec), target)
    return DirectConv(module, name, gradient_problem(spec), target).emit()


def emit_weight_gradient(module: Module, name: str, spec: ConvSpec, target: Target) -> Kernel:
    """Add dw; its pointers: x, dy, dw."""
    if is_widened(spec):
        inner = emit_weight_gradient(module, f"{name}_float", as_float(spec), target)
        dense = Dense(0, spec.x_count), Dense(1, spec.y_count), Dense(2, spec.w_count, True)
        return WidenedKernel(module, name, target, inner, dense).emit()
    if not spec.x_count or not spec.y_count or not spec.w_count:
        return _emit_zeros(module, name, spec, spec.w_count, 3)
    if _is_product(spec) and spec.x_layout == "NHWC" and spec.w_layout != "HWIO":
        pixels = spec.n * spec.h * spec.w
        product = GemmSpec(spec.k, spec.c, pixels, spec.dtype, trans_a=True)
        inner = emit_gemm(module, f"{name}_product", product, target)
        return with_swapped_operands(module, name, inner)
    if suits_winograd(spec):
        generator = SharedWinogradWeight if suits_sharing(spec) else WinogradWeight
        return generator(module, name, spec, target).emit()
    if is_depthwise(spec):
        if spec.x_layout == "NHWC":
            return DepthwiseWeightLast(module, name, spec, target).emit()
        return DepthwiseWeightFirst(module, name, spec.dtype, target, spec=spec).emit()
    return WeightGradient(module, name, spec, target).emit()


def is_widened(spec: ConvSpec) -> bool:
    """Whether whole tensors become float32 first, since the kernel reads no bfloat16 itself."""
    return spec.dtype == "bfloat16" and not suits_winograd(spec)


def is_depthwise(spec: ConvSpec) -> bool:
    """Whether every channel has a filter of its own."""
    alone = spec.groups == spec.c == spec.k and spec.r * spec.s <= 64
    return alone and spec.x_layout == spec.y_layout


def _emit_depthwise(module: Module, name: str, problem: Problem, target: Target) -> Kernel:
    if problem.source_layout == "NHWC":
        return DepthwiseLast(module, name, problem, target).emit()
    return DepthwiseFirst(module, name, problem.dtype, target, problem=problem).emit()


def as_float(spec: ConvSpec) -> ConvSpec:
    return replace(spec, dtype="float32")


def operand_counts(spec: ConvSpec, epilogue: Epilogue | None) -> list[int]:
    """Elements of the epilogue's operands: only a bias is known to be dense."""
    if epilogue is None or not epilogue.pointers:
        return []
    if not isinstance(epilogue, Pointwise):
        must = "with bfloat16 an epilogue must have no operand but a bias"
        raise DtypeError(complaint("conv", must, {"epilogue": epilogue.name}))
    return [spec.k]


def suits_winograd(spec: ConvSpec) -> bool:
    """Whether minimal filtering applies, is allowed and saves enough multiplications."""
    if not spec.winograd or (spec.r, spec.s) != (3, 3) or spec.groups != 1:
        return False
    simple = spec.stride == spec.dilation == (1, 1) and max(spec.padding) <= 2
    if not simple or spec.dtype == "float64" or min(spec.c, spec.k) < FEW_CHANNELS:
        return False
    m = spec.winograd
    tiles = math.ceil(spec.out_h / m) * math.ceil(spec.out_w / m)
    return tiles * (m + 2) ** 2 < 0.6 * 9 * spec.out_h * spec.out_w


def _emit_winograd(module: Module, name: str, problem: winograd.Problem, target: Target) -> Kernel:
    """By channels where there are more of them than tiles."""
    kernel = winograd.Winograd(module, name, problem, target)
    if kernel.all_tiles <= problem.target_channels and kernel.blocks > 1:
        return kernel.emit_by_channels()
    return kernel.emit_by_tiles()


def _is_product(spec: ConvSpec) -> bool:
    """Whether it is a plain matrix product of pixels and channels."""
    plain = spec.r == spec.s == 1 and spec.stride == (1, 1) and spec.padding == (0, 0)
    return plain and spec.groups == 1 and spec.x_layout == spec.y_layout


def _emit_product(
    module: Module, name: str, spec: ConvSpec, target: Target, epilogue: Epilogue | None
) -> Kernel:
    """A 1 x 1 convolution: pixels times channels, or channels times pixels of each image."""
    pixels, in_rows = spec.h * spec.w, spec.w_layout != "HWIO"
    if spec.x_layout == "NHWC":
        product = GemmSpec(
            spec.n * pixels, spec.k, spec.c, spec.dtype, trans_b=in_rows, epilogue=epilogue
        )
        return emit_gemm(module, name, product, target)
    product = GemmSpec(
        spec.k, pixels, spec.c, spec.dtype, trans_a=not in_rows, batch=(spec.n,), batch_a=(0,),
        batch_b=(spec.c * pixels,), batch_c=(spec.k * pixels,),
    )  # fmt: skip
    inner = emit_gemm(module, f"{name}_product", product, target)
    return with_swapped_operands(module, name, inner)


def _emit_product_gradient(module: Module, name: str, spec: ConvSpec, target: Target) -> Kernel:
    pixels, in_rows = spec.h * spec.w, spec.w_layout != "HWIO"
    if spec.x_layout == "NHWC":
        product = GemmSpec(spec.n * pixels, spec.c, spec.k, spec.dtype, trans_b=not in_rows)
        return emit_gemm(module, name, product, target)
    product = GemmSpec(
        spec.c, pixels, spec.k, spec.dtype, trans_a=in_rows, batch=(spec.n,), batch_a=(0,),
        batch_b=(spec.k * pixels,), batch_c=(spec.c * pixels,),
    )  # fmt: skip
    inner = emit_gemm(module, f"{name}_product", product, target)
    return with_swapped_operands(module, name, inner)


def _emit_zeros(module: Module, name: str, spec: ConvSpec, count: int, pointers: int) -> Kernel:
    """A result that sums over nothing."""
    f = module.function(name, [("ptr", "slots")])
    if count:
        f.clear(slot(f, f.arguments[0], 2), count * size_of(ELEMENTS[spec.dtype]))
    f.ret()
    return Kernel(name, pointers, pointers + 1)
