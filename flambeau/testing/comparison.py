"""`assert_close`: |actual - expected| <= atol + rtol |expected|, everywhere, or an AssertionError
that says where and by how much not."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import ArgumentError, ValueRangeError, complaint
from flambeau.tensor import Tensor, as_tensor

# dtype -> (rtol, atol), as PyTorch documents them.
TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}


class Checks:
    """What counts as a difference."""

    def __init__(self, **options: Any):
        self.__dict__.update(options)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless both are close: tensors, arrays, numbers, None, and sequences
    and mappings of them. Tolerances default by dtype, and are given both or neither."""
    if (rtol is None) != (atol is None):
        must = "rtol and atol must both be given, or neither"
        raise ValueRangeError(complaint("assert_close", must, {"rtol": rtol, "atol": atol}))
    checks = Checks(
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        device=check_device,
        dtype=check_dtype,
        stride=check_stride,
        subclasses=allow_subclasses,
    )
    found = difference(actual, expected, checks, "")
    if found is None:
        return
    if callable(msg):
        found = msg(found)
    elif msg is not None:
        found = msg
    raise AssertionError(found)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older assert_close, which does not look at dtypes and devices."""
    options: dict[str, Any] = {"check_device": False, "check_dtype": False, "check_stride": False}
    actual, expected = as_tensor(actual), as_tensor(expected)
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, msg=msg or None, **options
    )


def difference(actual: Any, expected: Any, checks: Checks, at: str) -> str | None:
    """How they differ, or None. `at` is the place inside of containers."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        return mapping_difference(actual, expected, checks, at)
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{at}"
        pairs = enumerate(zip(actual, expected, strict=True))
        return _first(difference(a, e, checks, _inside(at, i)) for i, (a, e) in pairs)
    if actual is None or expected is None:
        same = actual is None and expected is None
        return None if same else f"None mismatch: {actual} is not {expected}{at}"
    return value_difference(actual, expected, checks, at)


def mapping_difference(actual: Mapping, expected: Mapping, checks: Checks, at: str) -> str | None:
    """How two mappings differ, or None."""
    if set(actual) != set(expected):
        missing = sorted(set(expected) - set(actual), key=str)
        added = sorted(set(actual) - set(expected), key=str)
        return (
            f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {missing}"
            f"\nAdditional keys in the actual mapping: {added}{at}"
        )
    keys = sorted(actual, key=str)
    return _first(difference(actual[k], expected[k], checks, _inside(at, k)) for k in keys)


def value_difference(actual: Any, expected: Any, checks: Checks, at: str) -> str | None:
    """How two tensors, arrays or numbers differ, or None."""
    kinds = (Tensor, np.ndarray, numbers.Number, np.generic)
    if not isinstance(actual, kinds) or not isinstance(expected, kinds):
        facts = {"actual": type(actual).__name__, "expected": type(expected).__name__}
        raise ArgumentError(complaint("assert_close", "both must be tensors or numbers", facts))
    alone = not isinstance(actual, (Tensor, np.ndarray))
    if alone != (not isinstance(expected, (Tensor, np.ndarray))) or (
        not checks.subclasses and type(actual) is not type(expected)
    ):
        facts = {"actual": type(actual).__name__, "expected": type(expected).__name__}
        raise ArgumentError(complaint("assert_close", "both must be of one type", facts))
    a, e = _tensor(actual, alone), _tensor(expected, alone)
    return attribute_difference(a, e, checks, at) or element_difference(a, e, checks, alone, at)


def _tensor(value: Any, alone: bool) -> Tensor:
    """A number at its widest; a tensor without history."""
    if not alone:
        return as_tensor(value).detach()
    kind = {bool: dtypes.bool, int: dtypes.int64, complex: dtypes.complex128}
    return as_tensor(value, dtype=kind.get(type(value), dtypes.float64))


def attribute_difference(a: Tensor, e: Tensor, checks: Checks, at: str) -> str | None:
    """How shape, device, dtype or strides differ, or None."""
    pairs: list[tuple[str, Any, Any]] = [("shape", a.shape, e.shape)]
    if checks.device:
        pairs.append(("device", a.device, e.device))
    if checks.dtype:
        pairs.append(("dtype", a.dtype, e.dtype))
    if checks.stride:
        pairs.append(("stride()", a.stride(), e.stride()))
    for name, ours, theirs in pairs:
        if ours != theirs:
            return f"The values for attribute '{name}' do not match: {ours} != {theirs}.{at}"
    return None


def tolerances(a: DType, e: DType, checks: Checks) -> tuple[float, float]:
    """(rtol, atol): those given, or the wider ones of the two dtypes."""
    if checks.rtol is not None:
        return checks.rtol, checks.atol
    pairs = [TOLERANCES.get(a, (0.0, 0.0)), TOLERANCES.get(e, (0.0, 0.0))]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def element_difference(
    a: Tensor, e: Tensor, checks: Checks, alone: bool, at: str
) -> str | None:
    """How the elements differ, or None."""
    if a.device.type == "meta" or not a.numel():
        return None
    rtol, atol = tolerances(a.dtype, e.dtype, checks)
    x, y = _wide(a), _wide(e)
    with np.errstate(all="ignore"):
        gap = np.abs(x - y)
        close = (x == y) | (_finite(gap) & (gap <= atol + rtol * np.abs(y)))
        if checks.equal_nan and x.dtype != object:
            close |= np.isnan(x) & np.isnan(y)
    if close.all():
        return None
    if alone or not x.ndim:
        return _scalar_text("Scalars", x.item(), y.item(), rtol, atol) + at
    return _array_text(x, y, gap, ~close, rtol, atol) + at


def _wide(t: Tensor) -> np.ndarray:
    """The elements in a dtype whose differences do not overflow."""
    if t.dtype.is_complex:
        return t.to(dtypes.complex128).numpy()
    exact = not t.dtype.is_floating_point and t.dtype is not dtypes.bool
    return t.numpy().astype(object if exact else float) if exact else t.to(dtypes.float64).numpy()


def _finite(values: np.ndarray) -> np.ndarray:
    """Where a difference is a number; Python's own integers, held as objects, always are."""
    return np.ones(values.shape, bool) if values.dtype == object else np.isfinite(values)


def _scalar_text(what: str, x: Any, y: Any, rtol: float, atol: float) -> str:
    kind = "equal" if rtol == atol == 0 else "close"
    gap = abs(x - y)
    bounds = "" if kind == "equal" else f" (up to {atol} allowed)"
    relative = gap / abs(y) if y else float("inf")
    bounds_r = "" if kind == "equal" else f" (up to {rtol} allowed)"
    return (
        f"{what} are not {kind}!\n\nExpected {y} but got {x}.\n"
        f"Absolute difference: {gap}{bounds}\nRelative difference: {relative}{bounds_r}"
    )


def _array_text(
    x: np.ndarray, y: np.ndarray, gap: np.ndarray, wrong: np.ndarray, rtol: float, atol: float
) -> str:
    kind = "equal" if rtol == atol == 0 else "close"
    count, total = int(wrong.sum()), wrong.size
    exact = gap.dtype == object
    gap = np.where(wrong, gap.astype(np.int64 if exact else float), 0)
    with np.errstate(all="ignore"):
        size = np.abs(y.astype(np.float32) if exact else y)
        relative = np.where(wrong, gap / size, 0)
    lines = [f"Tensor-likes are not {kind}!\n",
             f"Mismatched elements: {count} / {total} ({100 * count / total:.1f}%)"]  # fmt: skip
    for name, values, bound in (("absolute", gap, atol), ("relative", relative, rtol)):
        filled = np.where(np.isnan(values), np.inf, values)
        place = np.unravel_index(int(np.argmax(filled)), filled.shape)
        index = tuple(map(int, place))
        allowed = "" if kind == "equal" else f" (up to {bound} allowed)"
        lines.append(f"Greatest {name} difference: {values[place]} at index {index}{allowed}")
    return "\n".join(lines)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _inside(at: str, key: Any) -> str:
    return f"\n\nThe failure occurred for item [{key!r}]" if not at else f"{at}[{key!r}]"


def _first(found: Any) -> str | None:
    return next((text for text in found if text is not None), None)
