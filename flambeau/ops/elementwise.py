"""How a pointwise primitive is defined: a NumPy ufunc, a promotion rule, a gradient.

Promotion rules: "same" (the common type), "float" (integers become the default float), "bool"
(compute in the common type, answer bool), "real" (the real type of a complex), "float real",
"integer" (floats refused). Categories in `refuses` have no such op. Results keep the memory order
of the operands, as PyTorch documents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import FLOAT
from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import DeviceError, DtypeError, UnsupportedError, complaint
from flambeau.core.spec import Spec, dense_strides, spec
from flambeau.ops.promotion import broadcast_shapes, floating, result_dtype
from flambeau.ops.registry import Primitive, primitive


def pointwise_specs(name: str, rule: str, operands: tuple[Spec, ...],
                    refuses: tuple[int, ...] = ()) -> tuple[Spec, DType]:
    """(spec of the result, dtype to compute in)."""
    common = result_dtype(*operands)
    if common.category in refuses:
        raise UnsupportedError(complaint(name, f"not implemented for {common}", dict(
            dtypes=[s.dtype for s in operands]), "Convert with `.to(dtype)` first."))
    compute = floating(common) if rule.startswith("float") else common
    _check_dtype(name, rule, common)
    result = dtypes.bool if rule == "bool" else (
        compute.to_real() if rule.endswith("real") else compute)
    return result_spec(name, operands, result), compute


def compute_dtype(primitive: Primitive, specs: Sequence[Spec | None]) -> DType:
    """The dtype in which a pointwise primitive computes: float32 for narrow floats, unless the
    primitive is `native`, which is to say defined by how a dtype is represented."""
    common = pointwise_specs(primitive.name, primitive.info["rule"],
                             tuple(s for s in specs if s is not None))[1]
    return common if primitive.info.get("native") else common.wide


def _check_dtype(name: str, rule: str, d: DType) -> None:
    if rule == "integer" and d.category >= FLOAT:
        raise UnsupportedError(complaint(name, "operands must be integers or bools",
                                         dict(dtype=d)))
    if d is dtypes.complex32:
        raise UnsupportedError(complaint(name, "there is no arithmetic in complex32",
                                         dict(dtype=d), "Convert with `.to(torch.complex64)`."))
    if d.itemsize == 1 and d.category == FLOAT:
        raise DtypeError(complaint(name, "there is no arithmetic in float8", dict(dtype=d),
                                   "Convert with `.to(torch.float32)` first."))


def result_spec(name: str, operands: tuple[Spec, ...], result: DType) -> Spec:
    """Broadcast shape, common device, memory order of the first operand that has the full shape."""
    tensors = [s for s in operands if not s.weak]
    if not tensors:
        return spec(result, ())
    device = common_device(name, tensors)
    first = tensors[0]
    if len(tensors) == 1 or all(s.shape == first.shape for s in tensors[1:]):
        if all(s.is_contiguous for s in tensors):
            return spec(result, first.shape, None, device)
        shape = first.shape
    else:
        shape = broadcast_shapes(name, *(s.shape for s in tensors))
    return spec(result, shape, _strides(shape, tensors), device)


def _strides(shape: tuple, tensors: list[Spec]) -> tuple | None:
    """Strides of a result: each operand's order is asked in turn, broadcast dimensions abstain."""
    full = [s for s in tensors if s.shape == shape]
    if full and all(s.strides == full[0].strides for s in full) and len(full) == len(tensors):
        return dense_strides(shape, full[0].strides)
    if any(s.ndim == len(shape) and not s.is_contiguous for s in tensors):
        return _vote(shape, tensors)
    return None


def _vote(shape: tuple, tensors: list[Spec]) -> tuple:
    """Sort dimensions by the operands' strides, the first operand with an opinion deciding."""
    rank = len(shape)
    rows = []
    for s in tensors:
        lead = rank - s.ndim
        rows.append([0 if d < lead or s.shape[d - lead] != shape[d] else s.strides[d - lead]
                     for d in range(rank)])
    order = list(range(rank))[::-1]  # innermost first
    for i in range(1, rank):
        at = i
        for j in range(i - 1, -1, -1):
            verdict = _compare(order[at], order[j], rows, shape)
            if verdict < 0:
                order[at], order[j] = order[j], order[at]
                at = j
            elif verdict > 0:
                break
    strides, step = [0] * rank, 1
    for d in order:
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def _compare(a: int, b: int, rows: list[list[int]], shape: tuple) -> int:
    """-1 if dimension a should be inside of b, 1 if outside, 0 if no operand tells."""
    for row in rows:
        if row[a] == 0 or row[b] == 0:
            continue
        if row[a] != row[b]:
            return -1 if row[a] < row[b] else 1
        if shape[a] != shape[b]:
            return -1 if shape[a] < shape[b] else 1
    return 0


def common_device(name: str, tensors: list[Spec]):
    """The one device of all operands; zero-dimensional CPU tensors go anywhere."""
    device = tensors[0].device
    for s in tensors[1:]:
        if s.device is device or s.device == device:
            continue
        if device.type == "cpu" and all(t.ndim == 0 for t in tensors if t.device == device):
            device = s.device
        elif not (s.device.type == "cpu" and s.ndim == 0):
            raise DeviceError(complaint(name, "all tensors must be on one device",
                                        dict(devices=f"{device} and {s.device}"),
                                        "Move one with `.to(device)`."))
    return device


def pointwise(name: str, ref: Callable, *, vjp=None, rule: str = "same", low: float = -2.0,
              high: float = 2.0, arity: int | None = None, lower: Callable | None = None,
              samples: Callable | None = None, scalar: str | Callable | None = None, names=None,
              refuses: tuple[int, ...] = (), takes: tuple[int, ...] = (), **info) -> Primitive:
    """Define a pointwise primitive.

    ref is a NumPy ufunc, or a function of ndarrays that gives the same in every layout. `scalar` is
    its form in the loop language: the name of an operation there (default: the primitive's own
    name), or a function of scalar expressions; `lowers` are the categories in which it holds.
    `takes`, where given, are the categories that the first operand may have, whatever numbers
    beside it would promote it to.
    """
    arity = arity or (len(names) if names else getattr(ref, "nin", None) or
                      ref.__code__.co_argcount)
    operands = tuple(names or "xyzw"[:arity])

    def meta(*operands: Spec | None, **params) -> Spec:
        present = operands if None not in operands else tuple(s for s in operands if s is not None)
        if takes and present[0].dtype.category not in takes:
            raise UnsupportedError(complaint(name, f"not implemented for {present[0].dtype}", hint=(
                "Convert with `.float()` first.")))
        return pointwise_specs(name, rule, present, refuses)[0]

    return primitive(
        name, meta=meta, ref=ref, vjp=vjp, kind="pointwise", lower=lower,
        samples=samples or (lambda rng: pointwise_samples(rng, arity, low, high)),
        operands=(operands, False), rule=rule, scalar=scalar or name, **info)


def pointwise_samples(rng, arity: int, low: float, high: float):
    """Scalars, vectors, empty and broadcast shapes; every operand within [low, high]."""
    for shapes in [((), ()), ((3,), (3,)), ((2, 3), (2, 3)), ((0, 4), (0, 4)), ((2, 1, 3), (4, 1))]:
        yield tuple(rng.uniform(low, high, shapes[min(k, 1)]) for k in range(arity)), {}


def is_ufunc(ref) -> bool:
    return isinstance(ref, np.ufunc)
