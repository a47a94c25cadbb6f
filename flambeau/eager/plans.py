"""Building eager plans: from an op and the specs of its operands to a closure.

A plan takes the operands and returns new tensors. Pointwise ops convert operands to the dtype
that they compute in and write straight into the result; narrow floats compute in float32 and
round once. A *kernel provider* (the loop compiler) may take over an op for a signature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.errors import DtypeError, ShapeError, complaint
from flambeau.core.spec import Spec
from flambeau.eager.memory import empty_array, laid_out
from flambeau.eager.quiet import quiet_restore, quiet_start
from flambeau.ops.elementwise import compute_dtype, is_ufunc
from flambeau.tensor.tensor import Tensor, make, make_view

KEPT = 4096  # bytes of a constant that its plan keeps
PROVIDERS: list[Callable] = []  # (primitive, specs, params, result spec) -> plan or None
INPLACE_PROVIDERS: list[Callable] = []  # (primitive, target, specs, params, plan) -> plan or None


def plan(primitive, specs: list[Spec | None], params: dict,
         providers: Sequence[Callable] = PROVIDERS) -> Callable:
    """The plan for one signature; raises the op's errors."""
    if primitive.kind == "view":
        return view_plan(primitive, specs, params)
    result = primitive.meta(*specs, **params)
    if on_meta(specs, result):
        return meta_plan(result)
    for provider in providers:
        made = provider(primitive, specs, params, result)
        if made is not None:
            return made
    if primitive.kind == "pointwise":
        return pointwise_plan(primitive, specs, params, result)
    return general_plan(primitive, specs, params, result)


def on_meta(specs: list, result) -> bool:
    first = result[0] if isinstance(result, tuple) else result
    return (isinstance(first, Spec) and first.device.type == "meta") or any(
        s is not None and s.device.type == "meta" for s in specs)


def meta_plan(result) -> Callable:
    if isinstance(result, tuple):
        return lambda *args: tuple(make(None, s) for s in result)
    return lambda *args: make(None, result)


# Views ---------------------------------------------------------------------------------------


def view_plan(primitive, specs: list, params: dict) -> Callable:
    """`meta` of a view gives (spec, offset); the result shares the operand's storage."""
    of, delta = primitive.meta(*specs, **params)
    scale = specs[0].itemsize // of.itemsize or 1
    shrink = of.itemsize // specs[0].itemsize or 1

    def view(x: Tensor) -> Tensor:
        return make_view(x, of, x._offset * scale // shrink + delta)

    return view


# Pointwise -----------------------------------------------------------------------------------


def converter(s: Spec | None, compute: np.dtype) -> Callable:
    """operand -> ndarray in the dtype of computation, or a number."""
    if s is None:
        return lambda a: None
    if s.weak:
        return number_converter(compute)
    if s.numpy == compute:
        return lambda a: a._array
    return lambda a: a._array.astype(compute)


def number_converter(compute: np.dtype) -> Callable:
    """number -> the number as an operand of `compute`; integers wrap."""
    if compute.kind == "c":
        return complex
    if compute.kind == "f":
        return float
    if compute.kind == "b":
        return bool
    bits = compute.itemsize * 8
    low = -(1 << bits - 1) if compute.kind == "i" else 0

    def wrapped(a):
        return ((int(a) - low) & ((1 << bits) - 1)) + low

    return wrapped


def pointwise_plan(primitive, specs: list, params: dict, result: Spec) -> Callable:
    wide = compute_dtype(primitive, specs).numpy
    direct = all(s is not None and not s.weak and s.numpy == wide for s in specs)
    writes = is_ufunc(primitive.ref) and not params and (
        result.numpy == wide or primitive.info["rule"] == "bool")
    if direct and writes and result.is_contiguous:
        return _direct_ufunc(primitive.ref, result, len(specs))
    converters = [converter(s, wide) for s in specs]
    ref = primitive.ref

    def run(*args):
        token = quiet_start()
        try:
            values = [c(a) for c, a in zip(converters, args)]
            if writes:
                out = empty_array(result)
                ref(*values, out=out)
            else:
                out = laid_out(np.asarray(ref(*values, **params)), result, values)
        finally:
            quiet_restore(token)
        return make(out, result)

    return run


def _direct_ufunc(ufunc: np.ufunc, result: Spec, arity: int) -> Callable:
    """No conversion, contiguous result: the hot path of small tensors."""
    shape, kind = result.shape, result.numpy
    empty = np.empty if result.nbytes < 1 << 15 else lambda shape, kind: empty_array(result)

    def unary(x):
        token = quiet_start()
        try:
            return make(ufunc(x._array, empty(shape, kind)), result)
        finally:
            quiet_restore(token)

    def binary(x, y):
        token = quiet_start()
        try:
            return make(ufunc(x._array, y._array, empty(shape, kind)), result)
        finally:
            quiet_restore(token)

    def extremum(x, y):
        """NumPy wants `out` by name here, as it may come to take more operands."""
        token = quiet_start()
        try:
            return make(ufunc(x._array, y._array, out=empty(shape, kind)), result)
        finally:
            quiet_restore(token)

    if arity == 1:
        return unary
    return extremum if ufunc in (np.maximum, np.minimum) else binary


# Everything else -----------------------------------------------------------------------------


def general_plan(primitive, specs: list, params: dict, result) -> Callable:
    ref = primitive.ref
    widen = not primitive.info.get("exact", False)
    converters = [general_converter(s, widen) for s in specs]
    several = isinstance(result, tuple)
    if not specs and not several and primitive.kind != "random" and result.nbytes <= KEPT:
        return constant_plan(np.asarray(ref(**params)), result)
    if len(specs) == 1 and not several:
        return unary_plan(ref, converters[0], params, result)

    def run(*args):
        token = quiet_start()
        try:
            values = [c(a) for c, a in zip(converters, args)]
            got = ref(*values, **params)
            if several:
                return tuple(make(laid_out(np.asarray(g), s, values), s)
                             for g, s in zip(got, result))
            return make(laid_out(np.asarray(got), result, values), result)
        finally:
            quiet_restore(token)

    return run


def constant_plan(values: np.ndarray, result: Spec) -> Callable:
    """No operands: the result is the same in every call, and a copy is the fastest way to it."""
    kept = laid_out(values, result)

    def run():
        return make(kept.copy("K"), result)

    return run


def unary_plan(ref: Callable, convert: Callable, params: dict, result: Spec) -> Callable:
    """The hot path of reductions."""
    kind = result.numpy

    def run(x):
        token = quiet_start()
        try:
            value = convert(x)
            got = ref(value, **params)
            if got.__class__ is not np.ndarray:  # NumPy gives a scalar for no dimensions
                return make(np.array(got, kind), result)
            return make(laid_out(got, result, (value,)), result)
        finally:
            quiet_restore(token)

    return run


def general_converter(s: Spec | None, widen: bool) -> Callable:
    """`ref` sees narrow floats as float32, unless the op only moves data (`exact=True`)."""
    if s is None or s.weak:
        return lambda a: a
    if widen and s.dtype.is_narrow_float:
        return lambda a: a._array.astype(np.float32)
    return lambda a: a._array


# In place ------------------------------------------------------------------------------------


def inplace_plan(primitive, target: Spec, specs: list, params: dict) -> Callable:
    """Write the result into `target`, whose dtype and layout stay."""
    made = numpy_inplace_plan(primitive, target, specs, params)
    if target.device.type == "cpu":
        for provider in INPLACE_PROVIDERS:
            native = provider(primitive, target, specs, params, made)
            if native is not None:
                return native
    return made


def numpy_inplace_plan(primitive, target: Spec, specs: list, params: dict,
                       planned: Callable = plan) -> Callable:
    """Without a kernel of its own; `planned` gives the plan of a result that is copied."""
    if primitive.write is not None:
        return write_plan(primitive, target, specs, params)
    check_target(primitive, target, primitive.meta(*specs, **params))
    if target.device.type == "meta":
        return lambda target, *args: None
    if primitive.kind == "pointwise":
        wide = compute_dtype(primitive, specs).numpy
        if is_ufunc(primitive.ref) and not params and target.numpy == wide:
            return ufunc_inplace_plan(primitive.ref, [converter(s, wide) for s in specs])
        into = primitive.info.get("into")
        if into is not None and not params and target.numpy == wide:
            return into_plan(into, [converter(s, wide) for s in specs])
    compute_plan = planned(primitive, specs, params)

    def run(target, *args):
        if target._array is not None:
            np.copyto(target._array, compute_plan(*args)._array, casting="unsafe")

    return run


def check_target(primitive, target: Spec, result: Spec) -> None:
    if not dtypes.can_cast(result.dtype, target.dtype):
        raise DtypeError(complaint(
            primitive.name, f"result type {result.dtype} can't be cast to the desired output type "
            f"{target.dtype}"))
    if result.shape != target.shape:
        raise ShapeError(complaint(
            primitive.name, "the tensor written to must have the shape of the result", dict(
                output=list(target.shape), result=list(result.shape)),
            "Broadcasting may not change the tensor that is written to."))


def ufunc_inplace_plan(ufunc: np.ufunc, converters: list) -> Callable:
    first, second = converters[0], converters[-1]

    def unary(target, x):
        token = quiet_start()
        try:
            ufunc(first(x), target._array)
        finally:
            quiet_restore(token)

    def binary(target, x, y):
        token = quiet_start()
        try:
            ufunc(first(x), second(y), target._array)
        finally:
            quiet_restore(token)

    return unary if len(converters) == 1 else binary


def into_plan(into: Callable, converters: list) -> Callable:
    """`into(target, *operands)` computes straight into the target, which may be an operand."""

    def run(target, *args):
        token = quiet_start()
        try:
            into(target._array, *[c(a) for c, a in zip(converters, args)])
        finally:
            quiet_restore(token)

    return run


def write_plan(primitive, target: Spec, specs: list, params: dict) -> Callable:
    converters = [general_converter(s, False) for s in specs]

    def run(target, *args):
        if target._array is None:
            return
        token = quiet_start()
        try:
            primitive.write(target._array, *[c(a) for c, a in zip(converters, args)], **params)
        finally:
            quiet_restore(token)

    return run
