"""Heavy kernels for shapes known when the code is made: matrix products, convolution, attention.

Every function here gives a callable that takes addresses as ints, checks nothing and returns None;
it raises MemoryError when working memory runs out. Callables are cached per signature and may be
called from several threads at once. Convolutions and pooling are imported when code is
generated: what comes from the cache does without them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

from flambeau.codegen import target
from flambeau.codegen.templates import tuning
from flambeau.codegen.templates.affine_scan import AffineScan, AffineScanSpec
from flambeau.codegen.templates.attention import AttentionForward
from flambeau.codegen.templates.attention_backward import AttentionBackward
from flambeau.codegen.templates.attention_spec import AttentionSpec
from flambeau.codegen.templates.attention_widened import WidenedAttention
from flambeau.codegen.templates.conv_spec import ConvSpec
from flambeau.codegen.templates.entry import Kernel, build
from flambeau.codegen.templates.epilogue import Epilogue, named
from flambeau.codegen.templates.gemm_kernel import emit_gemm
from flambeau.codegen.templates.gemm_plan import GemmSpec, Plan, is_better_swapped, normalised
from flambeau.codegen.templates.path_scores import PathScores, PathSpec
from flambeau.codegen.templates.pool_spec import PoolSpec
from flambeau.codegen.templates.recurrent_spec import RecurrentSpec
from flambeau.codegen.templates.sorting import Sorting, SortSpec
from flambeau.codegen.templates.tail import Tail
from flambeau.codegen.text import Module
from flambeau.core.errors import DtypeError, complaint
from flambeau.runtime import pool

Program = Callable[..., None]


def gemm(
    m: int,
    n: int,
    k: int,
    dtype: str = "float32",
    trans_a: bool = False,
    trans_b: bool = False,
    lda: int = 0,
    ldb: int = 0,
    ldc: int = 0,
    *,
    batch: tuple[int, ...] = (),
    batch_a: tuple[int, ...] = (),
    batch_b: tuple[int, ...] = (),
    batch_c: tuple[int, ...] = (),
    alpha: float = 1.0,
    beta: float = 0.0,
    epilogue: Epilogue | str | None = None,
    out_dtype: str = "",
    epilogue_dtype: str = "",
    tail: Tail | None = None,
) -> Program:
    """C = alpha op(A) op(B) + beta C as ``program(a, b, c, *epilogue and tail pointers)``.

    Leading dimensions and batch strides are in elements; a leading dimension of 0 is that of a
    contiguous matrix. C is overwritten without being read when beta is 0. For ``bfloat16`` sums are
    float32, and C (`out_dtype`) and the epilogue's operands may be ``float32``.
    """
    spec = GemmSpec(
        m, n, k, dtype, trans_a, trans_b, lda, ldb, ldc, batch, batch_a, batch_b, batch_c,
        alpha, beta, named(epilogue), out_dtype, epilogue_dtype, tail,
    )  # fmt: skip
    host, threads = target.host(), pool.get_num_threads()
    if not tuning.is_wanted():
        return _gemm(spec, host, threads)
    return _gemm(spec, host, threads, _tuned(spec, host, threads))


@functools.lru_cache(maxsize=4096)
def _gemm(
    spec: GemmSpec, chosen: target.Target, threads: int, plan: Plan | None = None
) -> Program:
    def emit(module: Module) -> Kernel:
        return emit_gemm(module, "gemm", spec, chosen, plan)

    return build(chosen, "gemm", emit, parameters=(spec, threads, plan))


@functools.lru_cache(maxsize=4096)
def _tuned(spec: GemmSpec, chosen: target.Target, threads: int) -> Plan | None:
    """The plan of the product as it is emitted, timed without its tail; None without a choice."""
    spec = replace(normalised(spec), tail=None)
    if is_better_swapped(spec):
        return None
    return tuning.tuned_plan(spec, chosen, threads, lambda plan: _gemm(spec, chosen, threads, plan))


def conv_forward(spec: ConvSpec, epilogue: Epilogue | str | None = None) -> Program:
    """y = conv(x, w) as ``program(x, w, y, *epilogue pointers)``."""
    return _conv("forward", spec, named(epilogue), target.host(), pool.get_num_threads())


def conv_input_grad(spec: ConvSpec) -> Program:
    """dx as ``program(dy, w, dx)``."""
    return _conv("input_grad", spec, None, target.host(), pool.get_num_threads())


def conv_weight_grad(spec: ConvSpec) -> Program:
    """dw as ``program(x, dy, dw)``."""
    return _conv("weight_grad", spec, None, target.host(), pool.get_num_threads())


@functools.lru_cache(maxsize=1024)
def _conv(
    kind: str, spec: ConvSpec, epilogue: Epilogue | None, chosen: target.Target, threads: int
) -> Program:
    def emit(module: Module) -> Kernel:
        from flambeau.codegen.templates import conv

        if kind == "forward":
            return conv.emit_forward(module, "conv", spec, chosen, epilogue)
        if kind == "input_grad":
            return conv.emit_input_gradient(module, "conv", spec, chosen)
        return conv.emit_weight_gradient(module, "conv", spec, chosen)

    return build(chosen, f"conv_{kind}", emit, parameters=(spec, epilogue, threads))


def max_pool_forward(spec: PoolSpec, keep_indices: bool = True) -> Program:
    """y = max_pool(x) as ``program(x, y, indices)``, or ``program(x, y)`` without indices."""
    return _pool("max_indices" if keep_indices else "max", spec, target.host())


def max_pool_backward(spec: PoolSpec) -> Program:
    """dx as ``program(dy, indices, dx)``."""
    return _pool("max_gradient", spec, target.host())


def average_pool_forward(spec: PoolSpec) -> Program:
    """y = avg_pool(x) as ``program(x, y)``."""
    return _pool("average", spec, target.host())


def average_pool_backward(spec: PoolSpec) -> Program:
    """dx as ``program(dy, dx)``."""
    return _pool("average_gradient", spec, target.host())


def demand_float(op: str, spec: AttentionSpec) -> None:
    """Attention is for float32 and float64, and for bfloat16 where no heads are shared."""
    if spec.dtype in ("float32", "float64") or spec.dtype == "bfloat16" and spec.group == 1:
        return
    must = "dtype must be float32, float64, or bfloat16 without shared heads"
    facts = {"dtype": spec.dtype, "heads per key": spec.group}
    raise DtypeError(complaint(op, must, facts, "Convert to float32."))


@functools.lru_cache(maxsize=1024)
def _pool(kind: str, spec: PoolSpec, chosen: target.Target) -> Program:
    def emit(module: Module) -> Kernel:
        from flambeau.codegen.templates.pool_kernels import emit_pool

        return emit_pool(module, "pool", kind, spec, chosen)

    return build(chosen, f"pool_{kind}", emit, parameters=(spec,))


def attention_forward(spec: AttentionSpec) -> Program:
    """o and log-sum-exp [batch, head, query] as ``program(q, k, v, o, lse, *mask)``."""
    return _attention("forward", spec, target.host(), pool.get_num_threads())


def attention_backward(spec: AttentionSpec) -> Program:
    """Gradients as ``program(q, k, v, o, do, lse, dq, dk, dv, *mask)``; they are overwritten."""
    return _attention("backward", spec, target.host(), pool.get_num_threads())


@functools.lru_cache(maxsize=1024)
def _attention(kind: str, spec: AttentionSpec, chosen: target.Target, threads: int) -> Program:
    demand_float("attention", spec)

    def emit(module: Module) -> Kernel:
        if spec.dtype == "bfloat16":
            return WidenedAttention(module, "attention", spec, chosen, kind).emit()
        generator = AttentionForward if kind == "forward" else AttentionBackward
        return generator(module, "attention", spec, chosen).emit()

    return build(chosen, "attention", emit, parameters=(kind, spec, threads))


def sort(spec: SortSpec) -> Program:
    """The first elements of sorted lines as ``program(x, values, indices)``."""
    return _sort(spec, target.host())


@functools.lru_cache(maxsize=1024)
def _sort(spec: SortSpec, chosen: target.Target) -> Program:
    def emit(module: Module) -> Kernel:
        return Sorting(module, "sort", spec).emit()

    return build(chosen, "sort", emit, parameters=(spec,))


def recurrent_forward(spec: RecurrentSpec) -> Program:
    """All steps of a recurrent layer as ``program(*spec.forward_pointers)``."""
    return _recurrent("forward", spec, target.host(), pool.get_num_threads())


def recurrent_backward(spec: RecurrentSpec) -> Program:
    """Cotangents of gates and first state as ``program(*spec.backward_pointers)``."""
    return _recurrent("backward", spec, target.host(), pool.get_num_threads())


@functools.lru_cache(maxsize=1024)
def _recurrent(kind: str, spec: RecurrentSpec, chosen: target.Target, threads: int) -> Program:
    def emit(module: Module) -> Kernel:
        from flambeau.codegen.templates.recurrent import RecurrentForward
        from flambeau.codegen.templates.recurrent_gradient import RecurrentBackward

        generator = RecurrentForward if kind == "forward" else RecurrentBackward
        return generator(module, "recurrent", spec, chosen).emit()

    return build(chosen, f"recurrent_{kind}", emit, parameters=(spec, threads))


def scan(spec: AffineScanSpec) -> Program:
    """out[k] = a[k] + b[k] out[k - 1] as ``program(a, b, out)``."""
    return _scan(spec, target.host())


@functools.lru_cache(maxsize=1024)
def _scan(spec: AffineScanSpec, chosen: target.Target) -> Program:
    def emit(module: Module) -> Kernel:
        return AffineScan(module, "scan", spec, chosen).emit()

    return build(chosen, "scan", emit, parameters=(spec,))


def paths(spec: PathSpec) -> Program:
    """Forward as ``program(step, skip, lengths, scores)``; the gradient takes `ct` before these."""
    return _paths(spec, target.host())


@functools.lru_cache(maxsize=1024)
def _paths(spec: PathSpec, chosen: target.Target) -> Program:
    def emit(module: Module) -> Kernel:
        return PathScores(module, "paths", spec, chosen).emit()

    return build(chosen, "paths", emit, parameters=(spec,))
