"""A primitive's loop nests as one compiled kernel.

`primitive.lower(outs, *operands, **params)` writes the nests: `outs` is a tuple of output buffers,
an operand is a Buf, a Scalar for a Python number, or None. A pointwise primitive needs no rule of
its own when its scalar form is one operation of the loop language (`scalar`), or a function of
scalar expressions.
"""

from __future__ import annotations

from collections.abc import Callable

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, complaint
from flambeau.core.spec import Spec
from flambeau.eager.native.call import NativeCall
from flambeau.loops import expr
from flambeau.loops.api import Buf, Nest, Scalar, broadcast, cast, const, nest
from flambeau.ops.elementwise import compute_dtype


def buffer(name: str, s: Spec, shape: tuple | None = None) -> Buf:
    """The operand as memory, expanded to `shape`."""
    if shape is None or tuple(s.shape) == tuple(shape):
        return Buf(name, tuple(s.shape), s.strides, s.dtype)
    lead = len(shape) - s.ndim
    strides = [0 if d < lead or s.shape[d - lead] != n else s.strides[d - lead]
               for d, n in enumerate(shape)]
    return Buf(name, tuple(shape), tuple(strides), s.dtype)


def operand(name: str, s: Spec | None, shape: tuple | None, number: dtypes.dtype):
    if s is None:
        return None
    return Scalar(name, number) if s.weak else buffer(name, s, shape)


def outputs(results: tuple[Spec, ...]) -> tuple[Buf, ...]:
    return tuple(Buf(f"out{k}", tuple(s.shape), s.strides, s.dtype)
                 for k, s in enumerate(results))


def has_lowering(primitive) -> bool:
    """Is there a rule at all? A signature may still have none."""
    if primitive.lower is not None:
        return True
    if primitive.kind != "pointwise":
        return False
    form = primitive.info["scalar"]
    return callable(form) or form in expr.OPS


def is_known(d: dtypes.dtype) -> bool:
    """Has the loop language numbers of this dtype? It has neither complex ones nor float8."""
    return not d.is_complex and (d.category != dtypes.FLOAT or d.itemsize > 1)


def number_dtype(s: Spec) -> dtypes.dtype:
    """The dtype in which a Python number reaches a kernel."""
    return dtypes.int64 if s.dtype.category <= dtypes.INTEGER else dtypes.float64


def pointwise_written(primitive, specs: list, operands: list, out: Buf):
    """One nest over the shape of `out`, or None where the loop language has no such operation."""
    wide = compute_dtype(primitive, specs)
    if wide.is_complex or out.dtype.is_complex:
        return None
    form = scalar_form(primitive, wide)
    if form is None:
        return None
    shape = out.shape

    def body(i):
        return form(*[element(x, i, wide) for x in operands])

    return nest(shape, body, out=out)


def element(x, i: tuple, wide: dtypes.dtype):
    """The operand's element for place i of a broadcast shape, in the dtype of computation."""
    if x is None:
        return None
    if isinstance(x, (bool, int, float)):
        return const(x if wide.category == dtypes.FLOAT or not isinstance(x, float) else int(x),
                     wide)
    return cast(broadcast(x, i), wide)


def written(primitive, specs: list, operands: list, params: dict, outs: tuple[Buf, ...]):
    """Nests that compute a primitive into `outs`; raises where there are none."""
    if primitive.lower is not None:
        made = primitive.lower(outs, *[as_expression(x) for x in operands], **params)
    else:
        made = pointwise_written(primitive, specs, operands, outs[0])
    if made is None:
        raise OpError(complaint(primitive.name, "there is no loop form for this signature"))
    return made


def as_expression(x):
    """Python numbers as constants of the loop language."""
    if isinstance(x, bool):
        return const(x, dtypes.bool)
    if isinstance(x, int):
        return const(x, dtypes.int64)
    return const(x, dtypes.float64) if isinstance(x, float) else x


def pointwise_nests(primitive, specs: list, result: Spec):
    wide = compute_dtype(primitive, specs)
    operands = [operand(f"x{k}", s, tuple(result.shape), wide) for k, s in enumerate(specs)]
    return pointwise_written(primitive, specs, operands, outputs((result,))[0])


def scalar_form(primitive, wide: dtypes.dtype) -> Callable | None:
    form = primitive.info["scalar"]
    if wide.category not in primitive.info.get("lowers", (wide.category,)):
        return None
    if callable(form):
        return form
    known = expr.OPS.get(form)
    if known is None or not accepts(known[1], wide):
        return None
    return lambda *values: expr.apply(form, *values)


def accepts(domain: str, d: dtypes.dtype) -> bool:
    """Does an operation of the loop language take this dtype?"""
    if d.category == dtypes.BOOL:
        return domain in (expr.ANY, expr.BITS)
    if d.category == dtypes.INTEGER:
        return domain != expr.REAL
    return domain in (expr.ANY, expr.NUMBER, expr.REAL)


def nests_of(primitive, specs: list, params: dict, results: tuple[Spec, ...]):
    """The nests of a primitive for one signature, or None."""
    if not all(s is None or is_known(s.dtype) for s in (*specs, *results)):
        return None
    if primitive.lower is not None:
        operands = [operand(f"x{k}", s, None, number_dtype(s)) if s is not None else None
                    for k, s in enumerate(specs)]
        return primitive.lower(outputs(results), *operands, **params)
    if primitive.kind == "pointwise" and not params:
        return pointwise_nests(primitive, specs, results[0])
    return None


def without_copies(nests):
    """The nests of an in-place call: what only copies the target, the first operand, is left out
    where other nests follow."""
    if isinstance(nests, Nest):
        return nests
    kept = tuple(n for n in nests if not is_copy(n))
    return kept or nests


def is_copy(n: Nest) -> bool:
    s = n.stores[0]
    return (len(n.stores) == 1 and s.combine is None and s.index == n.iters
            and s.value.kind == "load" and s.value.attr.name == "x0" and s.value.args == n.iters)


def call_of(nests, specs: list, results: tuple[Spec, ...], several: bool) -> NativeCall:
    """The nests of one signature, compiled."""
    from flambeau.codegen.kernel import compile_kernel

    tensors = tuple(k for k, s in enumerate(specs) if s is not None and not s.weak)
    names = [f"x{k}" for k in tensors] + [f"out{k}" for k in range(len(results))]
    kernel = compile_kernel(nests, parameters=names)
    numbers = tuple(int(name[1:]) for name in kernel.numbers)
    places = (*tensors, *(~k for k in range(len(results))))
    return NativeCall(kernel.entry, places, results, numbers, several)
